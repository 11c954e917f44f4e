import { parse } from 'node:querystring';
import { decodeOctets } from '../request/form-decode.ts';

/** Values that stand behind any of the names, in whatever format a text may be read. `null`: too many to judge. */
export type NamedValues = readonly string[] | null;

/** Occurrences that are judged; an honest request has one. */
const most = 8;

/**
 * Every value that a shop could read behind one of `names` (folded, see `foldName`): in JSON, urlencoded or multipart.
 * The formats are not told apart, since shops tell them apart in ways of their own. Linear in the length of the text.
 */
export function findNamedValues(text: string, names: ReadonlySet<string>): NamedValues {
  const found = new Set<string>();
  for (const find of [findInJson, findInForm, findInParts]) {
    const values = find(text, names);
    if (values === null) return null;
    for (const value of values) if (value.trim() !== '') found.add(value);
  }
  return found.size > most ? null : [...found];
}

/** PHP makes `_` of spaces and dots and cuts at NUL, `[…]` makes a list; frameworks take camelCase for snake_case. */
export function foldName(name: string): string {
  const end = name.search(nameEnd);
  return (end <= 0 ? name : name.slice(0, end)).replace(/[^A-Za-z0-9]+/g, '').toLowerCase();
}

const nameEnd = /[\0[]/;

/** Walks over the string literals: whatever follows a name that is meant, up to the next name, is its value. */
function findInJson(text: string, names: ReadonlySet<string>): NamedValues {
  const found: string[] = [];
  let isMeant = false;
  for (let start = text.indexOf('"'); start !== -1; ) {
    const end = literalEnd(text, start);
    if (end === -1) break;
    const next = nextInk(text, end);
    if (text[next] === ':') {
      isMeant = names.has(foldName(unescapeLiteral(text.slice(start, end))));
      const bare = isMeant ? bareValue(text, next + 1) : undefined;
      if (bare !== undefined) found.push(bare);
    } else if (isMeant) {
      found.push(unescapeLiteral(text.slice(start, end)));
    }
    if (found.length > most) return null;
    start = text.indexOf('"', end);
  }
  return found;
}

/** Index behind the closing quote, -1 when there is none. */
function literalEnd(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit === 0x5c) i += 1;
    else if (unit === 0x22) return i + 1;
  }
  return -1;
}

function nextInk(text: string, from: number): number {
  let i = from;
  while (i < text.length && text.charCodeAt(i) <= 0x20) i += 1;
  return i;
}

/** A number where a string was to be expected: PHP would make a string of it. */
function bareValue(text: string, from: number): string | undefined {
  const at = nextInk(text, from);
  return /^-?\d[\w.+-]*/.exec(text.slice(at, at + 4096))?.[0];
}

function unescapeLiteral(literal: string): string {
  if (!literal.includes('\\')) return literal.slice(1, -1);
  try {
    return String(JSON.parse(literal));
  } catch {
    return literal.slice(1, -1);
  }
}

/** Node's own decoding throws, and catches, for each value that is not UTF-8. */
function decodeText(text: string): string {
  return decodeOctets(Buffer.from(text)).toString();
}

function findInForm(text: string, names: ReadonlySet<string>): NamedValues {
  const found: string[] = [];
  // No limit of its own: what stands behind the thousandth field counts too.
  for (const [name, value] of Object.entries(
    parse(text, '&', '=', { maxKeys: 0, decodeURIComponent: decodeText }),
  )) {
    if (!names.has(foldName(name))) continue;
    found.push(...(Array.isArray(value) ? value : [value ?? '']));
    if (found.length > most) return null;
  }
  return found;
}

const partName = /\bname\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))/gi;
const blankLine = /\r?\n\r?\n/g;
const valueEnd = /\r?\n--/g;

/** Parts of a multipart form (RFC 7578), found by their names alone: boundaries are read in too many ways. */
function findInParts(text: string, names: ReadonlySet<string>): NamedValues {
  const found: string[] = [];
  for (const match of text.matchAll(partName)) {
    if (!names.has(foldName(match[1] ?? match[2] ?? match[3] ?? ''))) continue;
    if (found.length === most) return null;
    const start = endOf(blankLine, text, match.index);
    if (start === -1) break;
    valueEnd.lastIndex = start;
    found.push(text.slice(start, valueEnd.exec(text)?.index ?? text.length));
  }
  return found;
}

/** Index behind the first match from `from` on, -1 when there is none. */
function endOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text) === null ? -1 : pattern.lastIndex;
}
