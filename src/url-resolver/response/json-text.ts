/** Everything but what may stand in a JSON string, in HTML and in a script alike. */
const special = /[^\x20\x21\x23-\x3b\x3d\x3f-\x5b\x5d-\x7e]/;
const everySpecial = new RegExp(special, 'g');

/**
 * The inside of a JSON string (RFC 8259 section 7) in US-ASCII: quote, backslash, `<`, `>`, controls and all beyond ASCII
 * (U+2028, lone surrogates) are written as `\uXXXX`.
 */
export function jsonText(text: string): string {
  return special.test(text) ? text.replace(everySpecial, escapeUnit) : text;
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
