import { isCompactToken } from '../../access/bearer-credentials.ts';
import { isObject, type JsonObject, parseJsonObject } from '../../lib/json.ts';
import { readHar } from './har.ts';
import { type PastedParts, readCurl } from './pasted-command.ts';

/** The request in a pasted text. */
interface PastedRequest {
  /** Undefined: the text has none. */
  readonly method: string | undefined;
  /** The request target as it would be sent. */
  readonly target: string;
  readonly host: string;
  readonly version?: '1.0' | '1.1';
  /** Flat. */
  readonly fields?: readonly string[];
  readonly body?: string | undefined;
  /** Fields and body are complete: the text is the request itself, not a line about it. */
  readonly isWhole?: boolean;
  /** Its outcome, by a record of shopward's log. */
  readonly record?: PastedRecord;
  /** Why the text is not a request; the rest is then a guess, and should not be explained. */
  readonly unreadable?: string | undefined;
  /** How the text was read, where that is not obvious. */
  readonly notes: readonly string[];
}

/** The outcome of a request, by shopward's log or the console. */
export interface PastedRecord {
  readonly requestId: string;
  readonly decision: string;
  readonly status: number;
  readonly rejection: string | undefined;
  readonly reason: string | undefined;
  /** The refusal that observe mode has not enforced. */
  readonly observed: string | undefined;
}

const logLine = /["'`]([A-Za-z]+) ([^\s"]+) HTTP\/\d(?:\.\d)?["'`]/;
const wholeUrl = /^https?:\/\/([^/?#]*)([^#]*)(#.*)?$/is;
const hostAndPath =
  /^(?:localhost|(?:\d+\.){3}\d+|\[[0-9a-f:.]+\]|(?:[a-z0-9-]+\.)+[a-z]{2,})(?::\d+)?(?=[/?]|$)/i;
const enclosing: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['<', '>'],
  ['(', ')'],
]);

/**
 * Reads a text that is an access token: a JSON Web Token, or a token of any form (RFC 6750 section 2.1) with `Bearer` in front.
 * Undefined: it is something else. An opaque token without `Bearer` could as well be a path.
 */
export function readPastedToken(pasted: string): string | undefined {
  const text = withoutQuotes(pasted.trim());
  const start = /^(?:authorization: *)?(?:bearer +)?/i.exec(text)?.[0] ?? '';
  const token = text.slice(start.length);
  if (/bearer/i.test(start) && opaqueToken.test(token)) return token;
  return token.startsWith('ey') && isCompactToken(token) ? token : undefined;
}

const opaqueToken = /^[\w.~+-][\w.~+/-]*=*$/;
/** A word that is unlikely to be the first segment of a path. */
const maybeToken = /^(?=.*\d)[\w.~+-]{20,}=*$/;
/** Printed where the text may be an opaque token. */
export const tokenHint = 'if this is an access token: shopward token';

/**
 * Reads a request as people copy it: `GET /x`, a URL, a line of an access log, a record of shopward's log, a curl command, a HAR
 * file or one entry of it; also in quotes. Only what cannot be part of a request is changed, with a note: a path with `..` or a
 * backslash stays as it is. Linear in the length of the text; nothing of it is run.
 */
export function readPastedRequest(pasted: string): PastedRequest {
  const parts = readCurl(pasted);
  if (parts !== undefined) return ofParts(parts);
  const document = recordIn(pasted);
  const har = document && readHar(document);
  if (har !== undefined) return ofParts(har);
  const found = document && ofRecord(document);
  if (found === undefined) {
    const line = readLine(pasted, []);
    return { ...line, unreadable: whyUnreadable(pasted.trim(), line) };
  }
  const read = readLine(found.line, [found.note]);
  return found.record === undefined ? read : { ...read, record: found.record };
}

function ofParts(all: PastedParts): PastedRequest {
  const { url, target, version = '1.1', notes, ...parts } = all;
  const more = [...notes];
  const read = readTarget(url, more);
  return { ...parts, version, ...read, ...(target && { target }), isWhole: true, notes: more };
}

function readLine(text: string, notes: string[]): PastedRequest {
  const methods: string[] = [];
  let rest = withoutQuotes(text.trim());
  const line = logLine.exec(text);
  for (let inner = leadingMethod(rest); inner !== undefined; inner = leadingMethod(rest)) {
    // A line of a log may begin with any word.
    if (line !== null && !startsQuoted(inner.rest)) break;
    methods.push(inner.method);
    rest = withoutQuotes(inner.rest);
    if (line !== null) break;
  }
  if (line !== null) {
    methods.push((line[1] ?? '').toUpperCase());
    rest = line[2] ?? '';
  }
  const [method, other = method] = methods;
  if (other !== method) notes.push(`the text says ${other}; ${method} is explained`);
  rest = withoutVersion(rest);
  const { target, host } = readTarget(readEscapes(rest, notes), notes);
  return { method, target, host, notes };
}

const knownMethods =
  /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|CONNECT|SEARCH|QUERY|PROPFIND|REPORT)$/;
const guessed = 'a "/" was put in front';

/** Why a text is not a request. A line with a path always is one, since a refusal for its spelling can be explained. */
function whyUnreadable(text: string, { method, target, notes }: PastedRequest): string | undefined {
  if (/^(?:\$session\b|invoke-(?:webrequest|restmethod)\b|iwr\s|irm\s)/i.test(text))
    return 'it is PowerShell: copy it as cURL';
  if (/^(?:await\s+)?fetch\s*\(/.test(text)) return 'it is a call of fetch: copy it as cURL';
  if (logLine.test(text)) return undefined;
  // An address of IPv6 begins with a bracket, too.
  if (/^(?:\{|\[(?![0-9a-f:.]+\]))/i.test(text))
    return 'it is JSON, or the start of it, without a request in it';
  if (text.includes('\n'))
    return 'it has several lines: paste the request line alone, with -H for a field, or a curl command';
  const isOdd = method !== undefined && !knownMethods.test(method);
  const hasGuess = notes.includes(guessed);
  const [path = ''] = target.split('?', 1);
  if (hasGuess && (isOdd || /[\s<>(){}"'`;]/.test(path))) return 'it has neither a path nor a URL';
  return isOdd && /\s/.test(path) ? `${method} is no method` : undefined;
}

/** Removes all pairs of quotes, and commas after them, in one pass: a text may consist of quotes. */
function withoutQuotes(text: string): string {
  let start = 0;
  let end = text.length;
  for (;;) {
    const hasComma = /[,;]/.test(text.charAt(end - 1)) && /["'`>)]/.test(text.charAt(end - 2));
    const last = hasComma ? end - 2 : end - 1;
    const close = enclosing.get(text.charAt(start));
    if (close === undefined || last <= start || text.charAt(last) !== close) return text.slice(start, end);
    start = skipSpaces(text, start + 1, 1, last);
    end = skipSpaces(text, last - 1, -1, start - 1) + 1;
  }
}

/** The first index from `at` on, in steps of 1 or -1, without white space, or `limit`. */
function skipSpaces(text: string, at: number, step: 1 | -1, limit: number): number {
  let index = at;
  while (index !== limit && /\s/.test(text.charAt(index))) index += step;
  return index;
}

function withoutVersion(text: string): string {
  const version = /\sHTTP\/\d(?:\.\d)?$/.exec(text);
  return version === null ? text : text.slice(0, version.index).trimEnd();
}

function startsQuoted(text: string): boolean {
  return enclosing.has(text.charAt(0));
}

function leadingMethod(text: string): { method: string; rest: string } | undefined {
  const [start, method] = /^([A-Za-z]+)\s+(?=\S)/.exec(text) ?? [];
  if (start === undefined || method === undefined || text.startsWith('HTTP/', start.length)) return undefined;
  return { method: method.toUpperCase(), rest: text.slice(start.length) };
}

/** Decodes nginx's log escapes (`\x22`), which no client sends. */
function readEscapes(text: string, notes: string[]): string {
  const octet = (_: string, hex: string) => String.fromCharCode(Number.parseInt(hex, 16));
  const plain = text.replace(/\\x([0-9a-f]{2})/gi, octet);
  if (plain !== text) notes.push(String.raw`"\x.." was read as an escape of the log`);
  return plain;
}

function readTarget(text: string, notes: string[]): { target: string; host: string } {
  const url = wholeUrl.exec(text);
  if (url !== null) {
    const [, authority = '', rest = '', fragment] = url;
    const host = authority.slice(authority.lastIndexOf('@') + 1);
    if (host !== authority) notes.push('the user in front of the host was left out');
    if (fragment !== undefined) notes.push('the fragment was left out: clients do not send it');
    return { target: rest.startsWith('/') ? rest : `/${rest}`, host: host || 'localhost' };
  }
  if (text.startsWith('/') || text === '*') return { target: text, host: 'localhost' };
  const host = hostAndPath.exec(text)?.[0];
  if (host !== undefined) {
    notes.push(`"${host}" was read as the host`);
    const rest = text.slice(host.length);
    return { target: rest.startsWith('/') ? rest : `/${rest}`, host };
  }
  notes.push(guessed);
  if (maybeToken.test(text)) notes.push(tokenHint);
  return { target: `/${text}`, host: 'localhost' };
}

/** A log record: its request line, and its outcome. */
interface FoundRecord {
  readonly line: string;
  readonly note: string;
  readonly record?: PastedRecord;
}

/** Marks in shopward's log where something was cut out of a path. */
const cut = /\u2026/g;

function ofRecord(record: JsonObject): FoundRecord | undefined {
  // A container's runtime keeps each line as the text of an object of its own.
  const fields = typeof record.log === 'string' ? (parseJsonObject(record.log) ?? record) : record;
  const { request } = fields;
  const note = 'read from a record of a log, which has no query, no fields and no body';
  if (typeof request === 'string') return { line: request, note };
  const source = isObject(request) ? request : fields;
  const method = source.method ?? source.request_method;
  const target = source.path ?? source.uri ?? source.url ?? source.request_uri;
  if (typeof target !== 'string') return undefined;
  const line = typeof method === 'string' && method !== 'other' ? `${method} ${target}` : target;
  const own = ownRecord(fields);
  if (own === undefined) return { line, note };
  const isCut = line.includes('\u2026');
  const cutNote = isCut ? '; "cut" stands for what the log leaves out of paths' : '';
  return { line: line.replace(cut, 'cut'), note: `${note}${cutNote}`, record: own };
}

function ownRecord({
  requestId,
  decision,
  status,
  rejection,
  reason,
  observed,
}: JsonObject): PastedRecord | undefined {
  const isOwn = typeof requestId === 'string' && typeof decision === 'string' && typeof status === 'number';
  if (!isOwn) return undefined;
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
  return {
    requestId,
    decision,
    status,
    rejection: text(rejection),
    reason: text(reason),
    observed: text(observed),
  };
}

/** In front of a record there are a time, a level and a message; after one perhaps the comma of a list. */
function recordIn(text: string): JsonObject | undefined {
  const trimmed = text.trim();
  const start = trimmed.startsWith('{') ? 0 : trimmed.search(/\s\{"/);
  if (start === -1) return undefined;
  const json = trimmed.slice(start);
  return parseJsonObject(json.endsWith(',') ? json.slice(0, -1) : json);
}
