import { trimEndWhile } from './field-list.ts';

/**
 * Gives a canonical segment its id, by which paths are matched; never throws. Each literal of a row has its own id, and all
 * other segments share one, so that the spelling of a request never reaches the router's syntax and long segments cost no more.
 */
export type IdOf = (segment: string) => number;

export interface SegmentInterner {
  /** Gives a literal (folded or not) an id; the same id for every spelling of it. */
  intern(literal: string): number;
  pack(): PackedLiterals;
}

/** Folded literals as a hash table in arrays: processes and threads pass it on without making an object of each. */
export interface PackedLiterals {
  /** UTF-16 of all literals, in the order of their ids. */
  readonly text: Uint16Array;
  /** Id -> start of its text. One entry more: the end of the last text. */
  readonly starts: Int32Array;
  /** Slot -> id + 1; 0: empty. The search begins at the hash and takes the next slots. The length is a power of two. */
  readonly slots: Int32Array;
}

/** The id of a segment that is empty, or empty once folded. */
export const emptyId = 0;
/** The id of every segment that is not a literal of any row. */
export const unknownId = -2;

/** Segments without any of these are their own folded form. */
const mayFold = /[A-Z%; .]|[^\x21-\x7e]/;

export function createSegmentInterner(): SegmentInterner {
  const ids = new Map<string, number>([['', emptyId]]);
  return {
    intern(literal) {
      const folded = foldSegment(literal);
      const id = ids.get(folded) ?? ids.size;
      ids.set(folded, id);
      return id;
    },
    pack: () => packLiterals([...ids.keys()]),
  };
}

function packLiterals(literals: readonly string[]): PackedLiterals {
  const starts = new Int32Array(literals.length + 1);
  for (const [id, literal] of literals.entries()) starts[id + 1] = (starts[id] as number) + literal.length;
  const text = new Uint16Array(starts.at(-1) as number);
  const slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * literals.length)));
  for (const [id, literal] of literals.entries()) {
    for (let i = 0; i < literal.length; i += 1) text[(starts[id] as number) + i] = literal.charCodeAt(i);
    let slot = hashOf(literal) & (slots.length - 1);
    while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
    slots[slot] = id + 1;
  }
  return { text, starts, slots };
}

/** FNV-1a. Only the list decides which literals share a slot, so that no request can make look-ups long. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash ^ (hash >>> 15);
}

export function openLiterals({ text, starts, slots }: PackedLiterals): IdOf {
  let longest = 0;
  for (let id = 1; id < starts.length; id += 1)
    longest = Math.max(longest, (starts[id] as number) - (starts[id - 1] as number));
  const isAt = (id: number, segment: string): boolean => {
    const start = starts[id] as number;
    if (segment.length !== (starts[id + 1] as number) - start) return false;
    for (let i = 0; i < segment.length; i += 1) if (text[start + i] !== segment.charCodeAt(i)) return false;
    return true;
  };
  const find = (segment: string): number | undefined => {
    if (segment.length > longest) return undefined;
    let slot = hashOf(segment) & (slots.length - 1);
    for (; slots[slot] !== 0; slot = (slot + 1) & (slots.length - 1)) {
      const id = (slots[slot] as number) - 1;
      if (isAt(id, segment)) return id;
    }
    return undefined;
  };
  return (segment) =>
    find(segment) ?? (mayFold.test(segment) ? find(foldSegment(segment)) : undefined) ?? unknownId;
}

/**
 * The form in which segments are compared: escapes decoded, `;params` cut off, dots and spaces at the end dropped,
 * case folded. It ignores more than any one shop does: if some upstream takes two segments for the same, both must
 * fold to the same text.
 */
export function foldSegment(segment: string): string {
  const text = looseSegment(segment);
  const params = text.indexOf(';');
  return trimEndWhile(params < 0 ? text : text.slice(0, params), isIgnoredAtTheEnd);
}

/** Escapes decoded and case folded, nothing cut off. */
export function looseSegment(segment: string): string {
  return mayFold.test(segment) ? foldCase(decodeSegment(segment)) : segment;
}

/** As any upstream may compare names: lower case, and for all but ASCII `foldText`. Exported for its tests. */
export function foldCase(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text.toLowerCase() : foldText(text);
}

/**
 * Folds what a collation of a database takes for equal: case by Unicode's rules (`ſ` is an s, the Kelvin sign a k, `ß` is ss),
 * accents, letters of full width, invisible characters, letters with a stroke (`ø` is an o), digits of all scripts.
 */
export function foldText(text: string): string {
  return decomposeLinearly(text)
    .replace(/[\p{Mn}\p{Me}\p{Default_Ignorable_Code_Point}]+/gu, '')
    .toUpperCase()
    .toLowerCase()
    .replace(/[^\0-\x7f]/gu, (character) => (likeAscii.test(character) ? toAscii(character) : character));
}

/** Letters and digits that may be equal to ASCII, and marks that may be equal to nothing. */
const likeAscii = /[\p{N}\p{Mc}\p{Cf}\p{Lm}\p{Script=Latin}\u{1f150}-\u{1f1a5}]/u;
const ligatures = 'aa ae ao au av ay db dz ls lz oe oo qp ss th ts tz vy zw';
const asciiNames = ['', ...'0123456789abcdefghijklmnopqrstuvwxyz', ...ligatures.split(' ')];
const baseLetters = new Intl.Collator('und', { sensitivity: 'base' });
/** Some 5,000 characters at most. */
const known = new Map<string, string>();

function toAscii(one: string): string {
  const name = known.get(one) ?? asciiNames.find((other) => baseLetters.compare(other, one) === 0) ?? one;
  known.set(one, name);
  return name;
}

/**
 * Decomposes (NFKD) in linear time. Sorting a run of combining marks takes time quadratic in its length, so each run is cut
 * by U+034F after 30 marks, as in the Stream-Safe Text Process (UAX #15 section 13). No word has that many.
 */
function decomposeLinearly(text: string): string {
  return text.replace(/\p{M}{1,30}/gu, (run) => (run.length < 30 ? run : `${run}\u034f`)).normalize('NFKD');
}

/** Percent-decodes a segment. If it is not valid UTF-8, only escapes of ASCII are decoded. */
export function decodeSegment(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment.replace(/%[0-7][0-9a-f]/gi, (octet) =>
      String.fromCharCode(Number.parseInt(octet.slice(1), 16)),
    );
  }
}

function isIgnoredAtTheEnd(code: number): boolean {
  return code <= 0x20 || code === 0x2e || code === 0x7f || code === 0xa0;
}

/**
 * Whether a shop may take the segment for a version and drop it: letters, perhaps none, and a number. The reference shop
 * takes `getPathVersionPrefix()` and digits, perhaps with a dot and more digits.
 */
export function isVersionSegment(segment: string | undefined): boolean {
  return segment !== undefined && digit.test(segment) && versionText.test(foldSegment(segment));
}

const digit = /\d/;
const versionText = /^[a-z]*\d+(?:\.\d+)*$/;

export type FormatSuffixes = ReadonlySet<string>;

export function foldSuffixes(suffixes: readonly string[] = []): FormatSuffixes {
  return new Set(suffixes.map((suffix) => suffix.toLowerCase()));
}

/** The segment without its format suffix; undefined: it has none. */
export function withoutFormatSuffix(
  segment: string | undefined,
  suffixes: FormatSuffixes,
): string | undefined {
  if (segment === undefined || suffixes.size === 0 || !segment.includes('.')) return undefined;
  const folded = foldSegment(segment);
  const dot = folded.lastIndexOf('.');
  if (dot <= 0) return undefined;
  if (!suffixes.has('*') && !suffixes.has(folded.slice(dot + 1))) return undefined;
  const name = folded.slice(0, dot);
  // `;params` may end in a suffix, too.
  const [sent = ''] = segment.split(/;|%3b/i, 1);
  const cut = sent.slice(0, Math.max(0, sent.toLowerCase().lastIndexOf(folded.slice(dot))));
  return foldSegment(cut) === foldSegment(name) ? cut : name;
}

/** The segment without one format suffix, and without two: of `orders.en.json` some shops cut off both, Spring 5 all suffixes. */
export function withoutFormatSuffixes(segment: string | undefined, suffixes: FormatSuffixes): string[] {
  const bare = withoutFormatSuffix(segment, suffixes);
  if (bare === undefined) return [];
  const [name, more] = foldSegment(bare).split('.', 2);
  const barer = suffixes.has('*') ? more !== undefined && name : withoutFormatSuffix(bare, suffixes);
  return barer ? [bare, barer] : [bare];
}

/**
 * Decodes the escapes of unreserved octets, and writes the others in upper case (RFC 3986 section 6.2.2). Further
 * checks of escapes look at the fully decoded path, as an upstream would read it.
 */
export function decodeEscapes(sent: string): { readonly path: string } | { readonly fault: string } {
  let decoded: string;
  try {
    decoded = decodeURIComponent(sent);
  } catch {
    // Bad percent-encoding, or octets that are not UTF-8, such as overlong forms and surrogates.
    return { fault: 'bad-escape' };
  }
  const found = neverInDecodedPath.exec(decoded);
  if (found !== null) return { fault: faultOf(found[0]) };
  return { path: sent.replace(/%[0-9a-f]{2}/gi, canonicalEscape) };
}

/** Control characters, C1 included; characters that end a path or mean a slash elsewhere; an escape within an escape. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const neverInDecodedPath = /[\u0000-\u001f\u007f-\u009f\\#?]|%(?:u00)?[0-9a-f]{2}/i;

function faultOf(found: string): string {
  if (found.startsWith('%')) return 'double-escape';
  if (found === '\\') return 'backslash';
  if (found === '#') return 'fragment';
  return found === '?' ? 'encoded-question-mark' : 'control-character';
}

function canonicalEscape(sent: string): string {
  const octet = String.fromCharCode(Number.parseInt(sent.slice(1), 16));
  return /[A-Za-z0-9._~-]/.test(octet) ? octet : sent.toUpperCase();
}
