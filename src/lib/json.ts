/** A value that somebody else wrote: nothing about its members is known. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** A map: neither null nor a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What has members: a map or a list. */
export function isContainer(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Octets or text -> JSON object; undefined for anything else. Strict: no byte order mark, no invalid UTF-8. Of members
 * that are there twice the last one counts, as with every JavaScript parser (RFC 7519 section 4 allows it).
 */
export function parseJsonObject(json: Uint8Array | string): JsonObject | undefined {
  const value = parseJson(json);
  return isObject(value) ? value : undefined;
}

/** The same for any value; undefined: it is not JSON. */
export function parseJson(json: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof json === 'string' ? json : utf8.decode(json));
  } catch {
    return undefined;
  }
}
