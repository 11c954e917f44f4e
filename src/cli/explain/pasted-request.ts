import { isObject, parseJsonObject } from '../../lib/json.ts';

/** What a text that somebody pasted asks for. */
interface PastedRequest {
  /** Undefined: the text names none. */
  readonly method: string | undefined;
  /** The request target as it would stand on the wire. */
  readonly target: string;
  readonly host: string;
  /** How the text was read, where that is not plain to see. */
  readonly notes: readonly string[];
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
 * Reads a request as people copy it: `GET /x`, a request line with its version, a line of an access log (a JSON record
 * too) or of curl's output, a curl command, a whole URL, in quotes, with the escapes of JSON, HTML or a log. Only what cannot be meant is changed, and a
 * note says so: a path with `..` or a backslash stays what it is.
 */
export function readPastedRequest(pasted: string): PastedRequest {
  const notes: string[] = [];
  const found = findRequestLine(pasted);
  if (found !== undefined) notes.push(found.note);
  const text = found?.line ?? pasted;
  const methods: string[] = [];
  let rest = withoutQuotes(text.trim().replace(/^> /, ''));
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

/** Any number of pairs of quotes, and the commas behind them. One pass: quotes without end are pasted too. */
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

/** The first index from `at` on, in steps of 1 or -1, that is no white space, or `limit`. */
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

/** Escapes of where the text was copied from, none of which a client sends. */
function readEscapes(text: string, notes: string[]): string {
  let plain = text;
  const replace = (pattern: RegExp, by: (match: string, group: string) => string, what: string) => {
    const next = plain.replace(pattern, by);
    if (next !== plain) notes.push(what);
    plain = next;
  };
  if (!/(?<!\\)\//.test(plain.replace(/^https?:\\?\/\\?\//i, ''))) {
    replace(/\\\//g, () => '/', String.raw`"\/" was read as "/", an escape of JSON`);
  }
  const octet = (_: string, hex: string) => String.fromCharCode(Number.parseInt(hex, 16));
  replace(/\\u00([0-9a-f]{2})/gi, octet, String.raw`"\u00.." was read as an escape of JSON`);
  replace(/\\x([0-9a-f]{2})/gi, octet, String.raw`"\x.." was read as an escape of the log`);
  replace(/&amp;/g, () => '&', '"&amp;" was read as "&", an escape of HTML');
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
  notes.push('a "/" was put in front');
  return { target: `/${text}`, host: 'localhost' };
}

/** A request that stands in something larger, as `METHOD target` or a request line of a log. */
interface FoundLine {
  readonly line: string;
  /** Where it was found, for people. */
  readonly note: string;
}

/** Reads a record of a JSON log (shopward's own among them, pretty or not) or a curl command; undefined: it is neither. */
function findRequestLine(text: string): FoundLine | undefined {
  return ofRecord(text) ?? ofCurl(text);
}

function ofRecord(text: string): FoundLine | undefined {
  const fields = parseJsonObject(recordIn(text));
  if (fields === undefined) return undefined;
  const { request } = fields;
  const note = 'read from a record of a log';
  if (typeof request === 'string') return { line: request, note };
  const source = isObject(request) ? request : fields;
  const method = source.method ?? source.request_method;
  const target = source.path ?? source.uri ?? source.url ?? source.request_uri;
  if (typeof target !== 'string') return undefined;
  return { line: typeof method === 'string' ? `${method} ${target}` : target, note };
}

/** In front of a pretty record there are a time and a level, never a slash; behind one perhaps the comma of a list. */
function recordIn(text: string): string {
  const start = text.search(/[/{]/);
  const json = start === -1 ? '' : text.slice(start).trimEnd();
  return json.endsWith(',') ? json.slice(0, -1) : json;
}

function ofCurl(text: string): FoundLine | undefined {
  if (!/^\s*(\$ )?curl\s/.test(text)) return undefined;
  const url = /(?:^|[\s"'])(https?:\/\/[^\s"']+)/i.exec(text)?.[1];
  if (url === undefined) return undefined;
  // Short options may be run together: -sd '{}'
  const given = /\s(?:-[A-Za-z]*X|--request)[\s=]*["']?([A-Za-z]+)/.exec(text)?.[1];
  const sendsBody = /\s(?:-[A-Za-z]*d|--data[^\s='"]*|--json)[\s='"]/.test(text);
  const implied = /\s(?:-[A-Za-z]*I|--head)\s/.test(text) ? 'HEAD' : sendsBody ? 'POST' : 'GET';
  return {
    line: `${given ?? implied} ${url}`,
    note: 'read from a curl command, without its fields: -H gives them',
  };
}
