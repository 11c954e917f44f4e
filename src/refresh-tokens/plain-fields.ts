import { isUtf8 } from 'node:buffer';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type FieldList, fieldValues } from '../http/field-list.ts';
import { decodeOctets } from '../http/form-encoding.ts';

/** A name and its value, from a query, a form or JSON. */
export interface FormField {
  /** Decoded. */
  readonly name: string;
  /** Whether the name is written without an unusual escape. */
  readonly isExact: boolean;
  /** Decoded; `null`: not a string. */
  readonly value: string | null;
  /** Where it stands: the query, the form, or one object of the JSON. Every parser reads the fields of one place together. */
  readonly place: string;
}

/** Why a token request is not plain, which means that two parsers could read it in two ways; a word for the log. */
export type NotPlain =
  | 'content-type'
  | 'content-coding'
  | 'charset'
  | 'too-long'
  | 'syntax'
  | 'too-many-fields'
  | 'other-spelling'
  | 'repeated'
  | 'not-text'
  | 'token-characters'
  | 'method';

/** How the body of a token request is written. */
type PlainType =
  | { readonly kind: 'json' }
  | { readonly kind: 'form' }
  | { readonly kind: 'multipart'; readonly boundary: string };

/** Octets of the longest body that is read; a token request has a few KiB. */
const readableBytes = 65_536;

const codingFields = ['content-encoding', 'content-transfer-encoding'];

/**
 * The type of a body, or why it is not plain. Plain is a single Content-Type (RFC 9110 section 8.3) of JSON, an urlencoded form
 * or multipart/form-data, in UTF-8, without a coding: shops choose their parser by it in different ways, and some ignore it.
 */
export function readType(fields: FieldList): PlainType | NotPlain {
  if (codingFields.some((name) => fieldValues(fields, name).length > 0)) return 'content-coding';
  const [value, ...more] = fieldValues(fields, 'content-type');
  if (value === undefined || more.length > 0) return 'content-type';
  const [, type = '', rest = ''] = mediaType.exec(value) ?? [];
  const parameters = readParameters(rest);
  if (parameters === undefined) return 'content-type';
  if ((parameters.get('charset') ?? 'utf-8').toLowerCase() !== 'utf-8') return 'charset';
  const allows = (...names: string[]) => [...parameters.keys()].every((name) => names.includes(name));
  const lower = type.toLowerCase();
  if (jsonType.test(lower))
    return allows('charset', 'version', 'profile', 'ext') ? { kind: 'json' } : 'content-type';
  if (lower === 'application/x-www-form-urlencoded')
    return allows('charset') ? { kind: 'form' } : 'content-type';
  const boundary = parameters.get('boundary') ?? '';
  const isMultipart = lower === 'multipart/form-data' && allows('boundary') && plainBoundary.test(boundary);
  return isMultipart ? { kind: 'multipart', boundary } : 'content-type';
}

/** All fields of query and body, if every parser reads them alike; otherwise why they are not plain. */
export function readFields(
  { fields, query }: Pick<CanonicalRequest, 'fields' | 'query'>,
  body: Buffer,
): readonly FormField[] | NotPlain {
  const ofQuery = readForm(query.slice(1), 'query');
  if (typeof ofQuery === 'string' || body.length === 0) return ofQuery;
  if (body.length > readableBytes) return 'too-long';
  const type = readType(fields);
  if (typeof type === 'string') return type;
  if (!isUtf8(body) || body.includes(0)) return 'charset';
  const ofBody = readBody(type, body.toString('utf8'));
  return typeof ofBody === 'string' ? ofBody : [...ofQuery, ...ofBody];
}

function readBody(type: PlainType, text: string): readonly FormField[] | NotPlain {
  if (type.kind === 'json') return readJson(text);
  if (type.kind === 'multipart') return readMultipart(text, type.boundary);
  return formStart.test(text) ? readForm(text) : 'syntax';
}

/** A form begins with a name. JSON, XML and comments begin otherwise, by which some parsers recognise them. */
const formStart = /^[\w%+.*~!$@&]/;

const mediaType = /^([\w.+-]+\/[\w.+-]+)[ \t]*((?:;.*)?)$/;
const jsonType = /^application\/(?:[\w.-]+\+)?json$/;
/** Boundaries as clients make them; others are read in too many ways. */
const plainBoundary = /^[\w-]{1,70}$/;
const parameter = /;[ \t]*([\w-]+)=(?:([\w./+:-]+)|"([\w./+:# -]*)")[ \t]*/y;

/** Parameters by lower-case name; undefined where one is malformed or repeated. */
function readParameters(text: string): ReadonlyMap<string, string> | undefined {
  const found = new Map<string, string>();
  parameter.lastIndex = 0;
  for (let at = 0; at < text.length; at = parameter.lastIndex) {
    const match = parameter.exec(text);
    const name = match?.[1]?.toLowerCase();
    if (match === null || name === undefined || found.has(name)) return undefined;
    found.set(name, match[2] ?? match[3] ?? '');
  }
  return found;
}

/** Fields of one form. PHP and Express ignore those after the 1000th. */
const maxFields = 256;

/** application/x-www-form-urlencoded (WHATWG URL section 5), and queries. */
function readForm(text: string, place = 'body'): readonly FormField[] | NotPlain {
  const found: FormField[] = [];
  for (let start = 0; start < text.length; ) {
    const ampersand = text.indexOf('&', start);
    const end = ampersand === -1 ? text.length : ampersand;
    if (end > start) {
      if (found.length === maxFields) return 'too-many-fields';
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

/** Whether a name is sent as it is, or as every encoder would escape it. */
function isPlainly(sent: string, name: string): boolean {
  return sent === name || (name.isWellFormed() && sent === encodeURIComponent(name));
}

/** Decodes percent-encoding and `+`. A malformed escape is left as it is, invalid UTF-8 becomes U+FFFD. Never throws. */
export function decode(text: string): string {
  return text.includes('%') ? decodeOctets(Buffer.from(text)).toString() : text.replaceAll('+', ' ');
}

/**
 * Reads multipart/form-data (RFC 7578) in its plainest form: nothing before the first boundary or after the last, no files, no
 * codings, no quotes or escapes within names.
 */
function readMultipart(text: string, boundary: string): readonly FormField[] | NotPlain {
  const delimiter = `--${boundary}`;
  if (!text.startsWith(`${delimiter}\r\n`)) return 'syntax';
  const [, ...parts] = `\r\n${text}`.split(`\r\n${delimiter}`);
  const last = parts.pop();
  if (last !== '--' && last !== '--\r\n') return 'syntax';
  if (parts.length > maxFields) return 'too-many-fields';
  const found: FormField[] = [];
  for (const part of parts) {
    const blank = part.indexOf('\r\n\r\n');
    // A boundary that only lenient parsers see, for example after a bare line feed.
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

/** Levels of nesting. Parsers have limits of their own, and some read nothing of a deeper text. */
const deepest = 32;

/**
 * All members of a JSON text at any depth, with duplicates, which `JSON.parse` would hide. Refuses what is not valid by
 * RFC 8259: comments, a byte order mark, escapes that only some parsers know.
 */
function readJson(text: string): readonly FormField[] | NotPlain {
  try {
    JSON.parse(text);
  } catch {
    return 'syntax';
  }
  const found: FormField[] = [];
  /** The index of each object and list that is open. */
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
      // A string in a list has no name.
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

/** Index after the closing quote. */
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
