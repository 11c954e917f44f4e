/** What the escapes of a path come to: the canonical path, or why it is refused. */
export type DecodedEscapes = { readonly path: string } | { readonly fault: string };

/**
 * Decodes the escapes of unreserved octets and puts the others in upper case (RFC 3986 section 6.2.2). Everything else
 * about an escape is checked on the path decoded as a whole, as an upstream reads it.
 */
export function decodeEscapes(sent: string): DecodedEscapes {
  const decoded = decodeWhole(sent);
  if (decoded === undefined) return { fault: 'bad-escape' };
  const found = neverInDecodedPath.exec(decoded);
  if (found !== null) return { fault: faultOf(found[0]) };
  return { path: sent.replace(/%[0-9a-f]{2}/gi, canonicalEscape) };
}

/** Control characters, C1 included; what ends a path or stands for a slash elsewhere; an escape within an escape. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const neverInDecodedPath = /[\u0000-\u001f\u007f-\u009f\\#?]|%[0-9a-f]{2}/i;

function faultOf(found: string): string {
  if (found.startsWith('%')) return 'double-escape';
  if (found === '\\') return 'backslash';
  if (found === '#') return 'fragment';
  return found === '?' ? 'encoded-question-mark' : 'control-character';
}

/** Undefined: bad percent-encoding, or octets that are not UTF-8 (overlong forms and surrogates are not). */
function decodeWhole(sent: string): string | undefined {
  try {
    return decodeURIComponent(sent);
  } catch {
    return undefined;
  }
}

function canonicalEscape(sent: string): string {
  const octet = String.fromCharCode(Number.parseInt(sent.slice(1), 16));
  return /[A-Za-z0-9._~-]/.test(octet) ? octet : sent.toUpperCase();
}
