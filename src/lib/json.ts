/** An object from outside: its members are unknown. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether it is an object, and neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether it is an object or an array. */
export function isContainer(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parses a JSON object; undefined for anything else. No byte order mark, no invalid UTF-8; the last of equal names counts. */
export function parseJsonObject(json: Uint8Array | string): JsonObject | undefined {
  const value = parseJson(json);
  return isObject(value) ? value : undefined;
}

/** Parses any JSON value with the same strictness; undefined: it is not JSON. */
export function parseJson(json: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof json === 'string' ? json : utf8.decode(json));
  } catch {
    return undefined;
  }
}
