import { isUtf8 } from 'node:buffer';
import type { Method } from './canonical-request.ts';

const percent = 0x25;
const plus = 0x2b;
const space = 0x20;

/**
 * Decodes one name or value of a query as the shop's PHP does: `+` is a space, `%XX` an octet, and a `%` without two hex
 * digits stands for itself. `text` has octets (one char each, as Node gives a request target). Undefined when the
 * octets are not UTF-8; nothing is thrown on the way, since a query may have thousands of such texts.
 */
export function decodeFormText(text: string): string | undefined {
  const octets = decodeOctets(Buffer.from(text, 'latin1'));
  return isUtf8(octets) ? octets.toString() : undefined;
}

/** The same for octets, in place. */
export function decodeOctets(octets: Buffer): Buffer {
  let length = 0;
  for (let i = 0; i < octets.length; i += 1) {
    const octet = octets[i] as number;
    const high = octet === percent ? hexDigit(octets[i + 1]) : -1;
    const low = high < 0 ? -1 : hexDigit(octets[i + 2]);
    if (low >= 0) {
      octets[length++] = high * 16 + low;
      i += 2;
    } else {
      octets[length++] = octet === plus ? space : octet;
    }
  }
  return octets.subarray(0, length);
}

/** -1: it is no hex digit. */
export function hexDigit(octet: number | undefined): number {
  if (octet === undefined) return -1;
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30;
  const folded = octet | 0x20;
  return folded >= 0x61 && folded <= 0x66 ? folded - 0x57 : -1;
}

/**
 * Whether an upstream may read form parameters, and so a method override, from the body: a POST whose type is
 * urlencoded, multipart, or not given. Only the beginning counts: PHP ends the type at the first `;`, `,` or space.
 */
export function isFormPost(method: Method, contentType: string | undefined): boolean {
  return method === 'POST' && (contentType === undefined || formType.test(contentType));
}

const formType = /^\s*(?:$|[;,]|application\/x-www-form-urlencoded|multipart\/)/i;
