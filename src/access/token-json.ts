const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Octets -> JSON object; undefined for anything else. Strict: no byte order mark, no invalid UTF-8. Of members that are
 * there twice the last one counts, as with every JavaScript parser (RFC 7519 section 4 allows it).
 */
export function parseJsonObject(octets: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(octets));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
