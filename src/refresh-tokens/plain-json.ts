import type { FormField } from './plain-form.ts';
import type { NotPlain } from './plain-request.ts';

/** Levels of nesting; readers give up at depths of their own, and answer as if there had been nothing. */
const deepest = 32;

/**
 * Every name of a JSON text with its value, at any depth, duplicates included, which `JSON.parse` would hide. The text is
 * valid (RFC 8259) or it is refused: no comments, no byte order mark, no escapes that only some readers know.
 */
export function readJson(text: string): readonly FormField[] | NotPlain {
  try {
    JSON.parse(text);
  } catch {
    return 'syntax';
  }
  const found: FormField[] = [];
  /** Where each object and list begins that is open. */
  const open: number[] = [];
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit === openBrace || unit === openBracket) open.push(i);
    else if (unit === closeBrace || unit === closeBracket) open.pop();
    if (open.length > deepest) return 'too-many-fields';
    if (unit !== quote) continue;
    const end = literalEnd(text, i);
    const next = inkAt(text, end);
    const isName = text.charCodeAt(next) === colon;
    const valueAt = isName ? inkAt(text, next + 1) : i;
    const isText = text.charCodeAt(valueAt) === quote;
    const valueEnd = isText ? literalEnd(text, valueAt) : valueAt;
    const absent = text.startsWith('null', valueAt) ? '' : null;
    const literal = text.slice(i, end);
    found.push({
      // A text in a list has no name of its own.
      name: isName ? textOf(literal) : '',
      isExact: !isName || !literal.includes('\\'),
      value: isText ? textOf(text.slice(valueAt, valueEnd)) : absent,
      place: `body ${open.at(-1)}`,
    });
    i = valueEnd - 1;
  }
  return found;
}

const quote = 0x22;
const colon = 0x3a;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/** Index behind the closing quote. */
function literalEnd(text: string, start: number): number {
  let i = start + 1;
  while (i < text.length && text.charCodeAt(i) !== quote) i += text.charCodeAt(i) === backslash ? 2 : 1;
  return i + 1;
}

function inkAt(text: string, from: number): number {
  let i = from;
  while (i < text.length && text.charCodeAt(i) <= 0x20) i += 1;
  return i;
}

function textOf(literal: string): string {
  return literal.includes('\\') ? String(JSON.parse(literal)) : literal.slice(1, -1);
}
