/**
 * Whether a query has a name that PHP reads as `_method`, which overrides the method of a POST in Symfony. `;` counts
 * as a separator too, since PHP's `arg_separator.input` may say so.
 */
export function overridesMethod(query: string): boolean {
  if (query.length < 2) return false;
  return query.slice(1).split(/[&;]/).some(isMethodParameter);
}

/**
 * PHP's own steps: decode, drop leading spaces, cut at NUL or `[`, dot and space become `_`. An unclosed `[` becomes `_`
 * as well, so that both readings of a bracket count.
 */
function isMethodParameter(parameter: string): boolean {
  const equals = parameter.indexOf('=');
  const name = decodeFormName(equals < 0 ? parameter : parameter.slice(0, equals)).replace(/^ +/, '');
  const [upToNul = ''] = name.split('\0', 1);
  const folded = upToNul.replace(/[. ]/g, '_');
  return folded.split('[', 1)[0] === '_method' || folded.replaceAll('[', '_') === '_method';
}

/** Octet by octet, as PHP's urldecode: a bad escape stands for itself. */
function decodeFormName(name: string): string {
  return name
    .replaceAll('+', ' ')
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
