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

const space = 0x20;
const nothing = -1;
const letters = Buffer.from('method');
const bracket = 0x5b;
const underscores: ReadonlySet<number> = new Set([...Buffer.from('_.'), bracket]);

/** The octet of a name at `at`, decoded as PHP's urldecode does: a bad escape stands for itself. */
function octetAt(query: string, at: number): number {
  const code = query.charCodeAt(at);
  if (at >= query.length || isSeparator(code) || code === 0x3d) return nothing;
  if (code === 0x2b) return space;
  return isEscape(query, at) ? Number.parseInt(query.slice(at + 1, at + 3), 16) : code;
}

function after(query: string, at: number): number {
  return at + (isEscape(query, at) ? 3 : 1);
}

function isEscape(query: string, at: number): boolean {
  return query.charCodeAt(at) === 0x25 && isHex(query.charCodeAt(at + 1)) && isHex(query.charCodeAt(at + 2));
}

function isHex(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x66);
}

function isSeparator(code: number): boolean {
  return code === 0x26 || code === 0x3b;
}
