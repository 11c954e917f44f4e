import type { NotPlain } from './token-request.ts';

/** A name and its value. */
export interface FormField {
  /** Decoded. */
  readonly name: string;
  /** Written without any escape. */
  readonly isExact: boolean;
  /** Decoded; `null`: not a text. */
  readonly value: string | null;
  /** Fields of one place are read together by every reader: a query, a form, an object of JSON. */
  readonly place: string;
}

/** Fields of one form; PHP and Express stop at 1000 and do not say so. */
const most = 256;

/** application/x-www-form-urlencoded (WHATWG URL section 5), and queries. */
export function readForm(text: string, place = 'body'): readonly FormField[] | NotPlain {
  const found: FormField[] = [];
  for (let start = 0; start < text.length; ) {
    const ampersand = text.indexOf('&', start);
    const end = ampersand === -1 ? text.length : ampersand;
    if (end > start) {
      if (found.length === most) return 'too-many-fields';
      const pair = text.slice(start, end);
      const equals = pair.indexOf('=');
      const sent = equals === -1 ? pair : pair.slice(0, equals);
      const name = decode(sent);
      found.push({
        name,
        isExact: isPlainly(sent, name),
        value: equals === -1 ? '' : decode(pair.slice(equals + 1)),
        place,
      });
    }
    start = end + 1;
  }
  return found;
}

/** As it stands, or as every encoder would escape it. */
function isPlainly(sent: string, name: string): boolean {
  return sent === name || (name.isWellFormed() && sent === encodeURIComponent(name));
}

/** A bad escape stands for itself, and octets that are no UTF-8 for U+FFFD; nothing is thrown. */
export function decode(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  const octets = Buffer.from(spaced);
  let length = 0;
  for (let i = 0; i < octets.length; i += 1) {
    const high = octets[i] === 0x25 ? hexDigit(octets[i + 1]) : -1;
    const low = high === -1 ? -1 : hexDigit(octets[i + 2]);
    octets[length] = low === -1 ? (octets[i] as number) : high * 16 + low;
    if (low !== -1) i += 2;
    length += 1;
  }
  return octets.toString('utf8', 0, length);
}

function hexDigit(octet: number | undefined): number {
  if (octet === undefined) return -1;
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30;
  const lower = octet | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/**
 * multipart/form-data (RFC 7578) in its plainest form: nothing before the first boundary nor behind the last, no file,
 * no coding, names without quotes or escapes within.
 */
export function readMultipart(text: string, boundary: string): readonly FormField[] | NotPlain {
  const delimiter = `--${boundary}`;
  if (!text.startsWith(`${delimiter}\r\n`)) return 'syntax';
  const [, ...parts] = `\r\n${text}`.split(`\r\n${delimiter}`);
  const last = parts.pop();
  if (last !== '--' && last !== '--\r\n') return 'syntax';
  if (parts.length > most) return 'too-many-fields';
  const found: FormField[] = [];
  for (const part of parts) {
    const blank = part.indexOf('\r\n\r\n');
    // A boundary that only lenient readers see, behind a bare line feed, say.
    if (blank === -1 || part.includes(delimiter)) return 'syntax';
    const name = nameOfPart(part.slice(0, blank));
    if (name === undefined) return 'syntax';
    found.push({ name, isExact: true, value: part.slice(blank + 4), place: 'body' });
  }
  return found;
}

const disposition = /^content-disposition: ?form-data; ?name=(?:"([ !#$&-[\]-~\u00a0-\uffff]*)"|([\w.-]+))$/i;
const harmless =
  /^(?:content-type: ?text\/plain(?:; ?charset="?(?:utf-8|us-ascii)"?)?|content-length: ?\d+)$/i;

function nameOfPart(head: string): string | undefined {
  const [first, ...lines] = head.split('\r\n');
  if (first !== '') return undefined;
  let name: string | undefined;
  for (const line of lines) {
    const match = disposition.exec(line);
    if (match === null ? !harmless.test(line) : name !== undefined) return undefined;
    if (match !== null) name = match[1] ?? match[2];
  }
  return name;
}

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
