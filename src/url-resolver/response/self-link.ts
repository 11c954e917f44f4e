import { jsonText } from './json-text.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: octets of a request target, one char each
const everyNotAscii = /[^\x00-\x7f]/g;

/**
 * A raw query, ready to stand in the JSON string of a `links.self`: following the link makes the same request. A raw octet
 * beyond ASCII is written as `%XX`, which is the same octet and may stand in a URL.
 */
export function jsonQuery(query: string): string {
  return jsonText(query.replace(everyNotAscii, encodeOctet));
}

function encodeOctet(octet: string): string {
  return `%${octet.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
