import { hexDigit } from './form-encoding.ts';

/** A name for `mayBeNamed`. */
export function foldName(name: string): string {
  return name.toLowerCase().replace(/[ .[]/g, '_');
}

/**
 * Whether some backend may take the name of a pair `name=value` for `folded`. PHP decodes escapes in names, drops spaces in
 * front, ends a name at `[` (but takes one that is never closed for `_`) and at a null, and reads spaces and dots as `_`;
 * others do not tell case apart, or drop spaces at the end. A name that still has a `%` when it is decoded may be any name: CGI.pm
 * and ASP.NET read `%u0061`, and some shops decode twice.
 *
 * One pass, without a text of its own: there may be thousands of pairs.
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

/** The octet of `%XX`; -1 for any other text. */
function escapedOctet(text: string, at: number): number {
  const [high, low] = [hexDigit(text.charCodeAt(at + 1)), hexDigit(text.charCodeAt(at + 2))];
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

const separators = /[&;]/;

/** Whether a query may have the parameter. PHP's `arg_separator.input` may say that `;` separates, too. */
export function mayHaveParameter(query: string, folded: string): boolean {
  return (
    query.length > 1 &&
    query
      .slice(1)
      .split(separators)
      .some((pair) => mayBeNamed(pair, folded))
  );
}
