import { isUtf8 } from 'node:buffer';
import type { Method } from './canonical-request.ts';

const percent = 0x25;
const plus = 0x2b;
const space = 0x20;

/**
 * Decodes one name or value of a query as the shop's PHP does: `+` is a space, `%XX` an octet, and a `%` without two hex
 * digits stands for itself. `text` holds octets (one char each, as Node gives a request target). Undefined when the
 * octets are not UTF-8; nothing is thrown on the way, since a query may hold thousands of such texts.
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

/**
 * Whether a query has a name that PHP reads as `_method`, which overrides the method of a POST in Symfony. `;` counts
 * as a separator too, since PHP's `arg_separator.input` may say so. One pass without a copy: a query may be all separators.
 */
export function overridesMethod(query: string): boolean {
  for (let at = 1; at < query.length; at++) {
    if (isMethodParameter(query, at)) return true;
    while (at < query.length && !isSeparator(query.charCodeAt(at))) at++;
  }
  return false;
}

/**
 * PHP's own steps: decode, drop leading spaces, cut at NUL or `[`, dot and space become `_`. An unclosed `[` becomes `_`
 * as well, so that both readings of a bracket count.
 */
function isMethodParameter(query: string, start: number): boolean {
  let at = start;
  while (octetAt(query, at) === space) at = after(query, at);
  const first = octetAt(query, at);
  if (!underscores.has(first)) return false;
  for (const letter of letters) {
    at = after(query, at);
    if (octetAt(query, at) !== letter) return false;
  }
  const end = octetAt(query, after(query, at));
  return end === nothing || end === 0 || (end === bracket && first !== bracket);
}

const nothing = -1;
const letters = Buffer.from('method');
const bracket = 0x5b;
const underscores: ReadonlySet<number> = new Set([...Buffer.from('_.'), bracket]);

/** The octet of a name at `at`, decoded as PHP's urldecode does: a bad escape stands for itself. */
function octetAt(query: string, at: number): number {
  const code = query.charCodeAt(at);
  if (at >= query.length || isSeparator(code) || code === 0x3d) return nothing;
  if (code === plus) return space;
  return isEscape(query, at) ? Number.parseInt(query.slice(at + 1, at + 3), 16) : code;
}

function after(query: string, at: number): number {
  return at + (isEscape(query, at) ? 3 : 1);
}

/** Beyond the end the codes are NaN, which is no hex digit. */
function isEscape(query: string, at: number): boolean {
  if (query.charCodeAt(at) !== percent) return false;
  return hexDigit(query.charCodeAt(at + 1)) >= 0 && hexDigit(query.charCodeAt(at + 2)) >= 0;
}

function isSeparator(code: number): boolean {
  return code === 0x26 || code === 0x3b;
}
