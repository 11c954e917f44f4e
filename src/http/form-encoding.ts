import { isUtf8 } from 'node:buffer';

/**
 * Decodes one name or value of a query as the shop's PHP does: `+` is a space, `%XX` an octet, and a `%` without two hex
 * digits stands for itself. `text` has octets (one char each, as Node gives a request target). Undefined when the
 * octets are not UTF-8; nothing is thrown on the way, since a query may have thousands of such texts.
 */
export function decodeFormText(text: string): string | undefined {
  const octets = decodeOctets(Buffer.from(text, 'latin1'));
  return isUtf8(octets) ? octets.toString() : undefined;
}

/** The same for octets; overwrites them. */
export function decodeOctets(octets: Buffer): Buffer {
  let length = 0;
  for (let i = 0; i < octets.length; i += 1) {
    const octet = octets[i] as number;
    const high = octet === 0x25 ? hexDigit(octets[i + 1]) : -1;
    const low = high < 0 ? -1 : hexDigit(octets[i + 2]);
    if (low >= 0) {
      octets[length++] = high * 16 + low;
      i += 2;
    } else {
      octets[length++] = octet === 0x2b ? 0x20 : octet;
    }
  }
  return octets.subarray(0, length);
}

function hexDigit(octet: number | undefined): number {
  if (octet === undefined) return -1;
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30;
  const folded = octet | 0x20;
  return folded >= 0x61 && folded <= 0x66 ? folded - 0x57 : -1;
}

/**
 * Whether an upstream may read form parameters, and so a method override, from the body of a POST of this type: urlencoded,
 * multipart, or not given. Only the beginning counts: PHP ends the type at the first `;`, `,` or space.
 */
export function isFormType(contentType: string | undefined): boolean {
  return contentType === undefined || formType.test(contentType);
}

const formType = /^\s*(?:$|[;,]|application\/x-www-form-urlencoded|multipart\/)/i;

/** Folds a name for `mayBeNamed`. */
export function foldName(name: string): string {
  return name.toLowerCase().replace(/[ .[]/g, '_');
}

/**
 * Whether some backend may take the name of a pair `name=value` for `folded`. PHP decodes escapes in names, drops spaces in
 * front, ends a name at a null or `[`, and reads spaces, dots and a `[` that is never closed as `_`; others ignore case, or
 * drop spaces at the end. A name that still has a `%` when it is decoded may be any name: CGI.pm and ASP.NET read `%u0061`,
 * and some shops decode twice.
 *
 * One pass that allocates no text: there may be thousands of pairs.
 */
export function mayBeNamed(pair: string, folded: string): boolean {
  if (pair.length < folded.length && !pair.includes('%')) return false;
  let known = 0;
  let reading: 'begun' | 'over' | 'other' = 'begun';
  let isCut = false;
  for (let at = 0; at < pair.length; at += 1) {
    let code = pair.charCodeAt(at);
    if (code === 0x3d) break;
    if (code === 0x25) {
      code = escapedOctet(pair, at);
      if (code < 0 || code === 0x25) return true;
      at += 2;
    } else if (code === 0x2b) code = 0x20;
    if (reading === 'other' || isCut) continue;
    const isBlank = code === 0x20 || (code >= 0x09 && code <= 0x0d) || code === 0xa0;
    if (isBlank && known === 0) continue;
    if (known < folded.length) {
      if (foldedCode(code) === folded.charCodeAt(known)) known += 1;
      else reading = 'other';
    } else if (isBlank) reading = 'over';
    else if (reading === 'begun' && (code === 0x5b || code === 0)) isCut = true;
    else reading = 'other';
  }
  return reading !== 'other' && known === folded.length;
}

/** Lower case; `_` for a space, a dot and an open bracket. */
function foldedCode(code: number): number {
  if (code >= 0x41 && code <= 0x5a) return code + 0x20;
  return code === 0x20 || code === 0x2e || code === 0x5b ? 0x5f : code;
}

function escapedOctet(text: string, at: number): number {
  const [high, low] = [hexDigit(text.charCodeAt(at + 1)), hexDigit(text.charCodeAt(at + 2))];
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/** Names that have the word, or escapes that may stand for it, each with what precedes it. No text is looked at twice. */
const suspects = /(?:^\?|[&;])[^=&;]*(?:method|%)[^=&;]*/gi;
/** Where Symfony and WordPress, PrestaShop, and ServiceStack look for the method; PHP folds names as `mayBeNamed` says. */
const overriding = /^\s*(?:(?:ps[ +_.[]|[_.[])method|x-(?:http-)?method(?:-override)?)[\s+]*(?:$|[[=\0])/i;

/** Each such name has the word, an escape that may be a letter, or a `%` that begins no escape. */
const mayHaveWord = /method|%(?!2[0-46-9a-f]|3[a-f]|5[b-f]|[89a-f][\da-f])/i;

/**
 * Whether some shop may take a parameter of the query for the method. PHP's `arg_separator.input` may make `;` a separator, too.
 * Java reads 10,000 parameters, so more than 1,000 suspects are refused unread.
 */
export function mayOverrideMethod(query: string): boolean {
  if (!mayHaveWord.test(query)) return false;
  const names = [...query.matchAll(suspects).take(1_001)];
  return names.length > 1_000 || names.some(([name]) => overriding.test(decodeName(name)));
}

/** Without the separator and leading spaces, and decoded up to three times, also `%u005f`. Each of 22 letters may be encoded. */
function decodeName(sent: string): string {
  return unescape(unescape(unescape(sent.replace(/^.(?:\+|%20)*/, '').slice(0, 300))));
}
