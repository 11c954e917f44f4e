import { normaliseLinearly } from '../http/path-folding.ts';

/** The name of a field that holds a token or a grant, as it was configured, and what it folds to. */
export interface FieldName {
  readonly exact: string;
  readonly folded: string;
}

export function fieldNameOf(exact: string): FieldName {
  return { exact, folded: foldName(exact) };
}

/**
 * What is left of a name when everything is taken away that some reader does not look at: case by Unicode's rules (Go
 * takes the Kelvin sign for a `k`), compatibility forms, accents, and whatever is neither letter nor digit of ASCII (PHP
 * makes `_` of spaces, dots and an open `[`; frameworks take camelCase for snake_case).
 */
export function foldName(name: string): string {
  const plain = isAscii(name) ? name : normaliseLinearly(name, 'NFKD').toUpperCase();
  return plain.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/**
 * Whether some reader may take `name` for the field although it is not spelled so. A longer word, such as
 * `refresh_token_expires_in`, is another field; with brackets, dots, quotes or controls in it, it may be the same one,
 * nested or cut short.
 */
export function isOtherSpelling(name: string, { exact, folded }: FieldName): boolean {
  if (name === exact || isTooShort(name, folded)) return false;
  const found = foldName(name);
  return found === folded || (found.includes(folded) && !word.test(name));
}

/**
 * Whether a value could be taken for the field by a reader of another format: it spells the name, with more around it
 * than words have. `refresh_token` as a grant and `refresh-tokens` as a type are words.
 */
export function hidesField(value: string, { folded }: FieldName): boolean {
  return !isTooShort(value, folded) && !plainWords.test(value) && foldName(value).includes(folded);
}

/** Only what is not ASCII can grow, U+FDFA to 18 characters. */
function isTooShort(text: string, folded: string): boolean {
  return text.length < folded.length && (isAscii(text) || text.length * 18 < folded.length);
}

const word = /^[\w-]*$/;
const plainWords = /^[\w .:/-]*$/;

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}
