import { jsonText } from './json-text.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: octets of a request target, one char each
const notAscii = /[^\x00-\x7f]/;
const everyNotAscii = new RegExp(notAscii, 'g');

/**
 * The request's own URL, ready to stand in a JSON string: following it makes the same request. A raw octet beyond ASCII
 * is written as `%XX`, which is the same octet and may stand in a URL.
 */
export function selfLink(base: string, target: string): string {
  return base + jsonText(notAscii.test(target) ? target.replace(everyNotAscii, encodeOctet) : target);
}

function encodeOctet(octet: string): string {
  return `%${octet.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
