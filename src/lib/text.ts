/**
 * Copies a string that outlives its request. V8 makes substrings, and concatenations of them, as pointers into the whole
 * string: a path of 150 octets would keep its request line of 64 KiB in memory.
 */
export function copyText(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}

/** The first `most` characters of a text; a longer text is copied and ends with `…`. */
export function cutText(text: string, most: number): string {
  return text.length > most ? copyText(`${text.slice(0, most)}…`) : text;
}

/** A UTF-16 unit as JSON, JavaScript and quoted YAML escape it. */
export function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
