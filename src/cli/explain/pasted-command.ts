import { parse } from 'shell-quote';
import { type CurlRequest, curlOptions, longOf, otherWithValue, removed } from './curl-options.ts';

/** A request as found in a curl command or a HAR entry. */
export interface PastedParts {
  /** In its exact case. Undefined: none is given. */
  readonly method: string | undefined;
  /** A whole URL, or a part of one. */
  readonly url: string;
  /** In place of the URL's own path and query. */
  readonly target?: string | undefined;
  /** Flat. */
  readonly fields: readonly string[];
  /** Undefined: there is none, or it is not known. */
  readonly body?: string | undefined;
  readonly version?: '1.0' | '1.1' | undefined;
  /** Why this is not a request: the text does not say what it asks for. */
  readonly unreadable?: string | undefined;
  /** How the text was read, and which parts were not used. */
  readonly notes: readonly string[];
}

/**
 * Reads a curl command as curl does: the words of a POSIX shell, then its options. Notes name options that have no effect on
 * the request, or an unknown one. Undefined: the text is not a curl command. Linear in its length.
 */
export function readCurl(text: string): PastedParts | undefined {
  const start = /^\s*(?:[$>#%]\s+)?(?:(?:sudo|time|env|[A-Z_]+=\S{0,8192})\s+){0,9}(?=curl(?:\.exe)?\s)/.exec(
    text,
  );
  if (start === null) return undefined;
  const command = text.slice(start[0].length);
  const request: CurlRequest = {
    ...{ method: undefined, urls: [], fields: [], data: undefined, parts: [], type: undefined },
    ...{ query: undefined, isQuery: false, isHead: false, isUpload: false, keepsPath: false, version: '1.1' },
    ...{ target: undefined, notes: ['read from a curl command'] },
  };
  if (/\^["\r\n]/.test(command)) return unreadable('it is a command for cmd: copy it as cURL (bash)');
  const words = splitWords(command, request.notes);
  if (words === undefined) return unreadable('the shell cannot expand "${" in it: put the value there');
  // Most in single quotes is no variable. It is not repeated: what looks like one may be part of a password.
  if (/\$\{?[A-Z_]/.test(command.replace(/'[^']*'/g, '')))
    request.notes.push('variables are taken as they stand: what the shell would put there is not known');
  const unused = applyOptions(words.slice(1), request);
  if (unused.length > 0) request.notes.push(`of curl's options these play no part: ${unused.join(' ')}`);
  return toParts(request);
}

function unreadable(why: string): PastedParts {
  return { method: undefined, url: '/', fields: [], notes: [], unreadable: why };
}

/** The words of the first command. Variables stay as they are. Undefined: an expansion is malformed. */
function splitWords(command: string, notes: string[]): string[] | undefined {
  // A backslash at the end of a line continues the command, except in single quotes.
  const line = command.replace(/'[^']*'|\\\r?\n/g, (part) => (part.startsWith("'") ? part : ' '));
  const words: string[] = [];
  try {
    for (const word of parse(line, (name) => `$${name}`)) {
      if (typeof word === 'string') words.push(word);
      else if ('pattern' in word) words.push(word.pattern);
      else if ('op' in word) {
        if (word.op === '&')
          notes.push('the command ends at "&": put quotes around the URL if it goes on there');
        return words;
      }
    }
  } catch {
    return undefined;
  }
  return words;
}

/** Applies the options, and returns the words that have no effect. */
function applyOptions(words: readonly string[], request: CurlRequest): string[] {
  const unused: string[] = [];
  let onlyUrls = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (onlyUrls || !word.startsWith('-') || word === '-') request.urls.push(word);
    else if (word === '--') onlyUrls = true;
    else if (word.startsWith('--')) at += applyLong(word, words[at + 1], request, unused);
    else at += applyShort(word, words[at + 1], request, unused);
  }
  return unused;
}

/** Applies a long option, and returns how many further words it took. */
function applyLong(word: string, next: string | undefined, request: CurlRequest, unused: string[]): 0 | 1 {
  const equals = word.indexOf('=');
  const name = equals === -1 ? word.slice(2) : word.slice(2, equals);
  const known = Object.hasOwn(curlOptions, name) ? curlOptions[name] : undefined;
  if (known?.isFlag) {
    known.use(request, '');
    return 0;
  }
  // curl itself does not know `--request=PATCH`; people write it, and mean it.
  const value = equals === -1 ? next : word.slice(equals + 1);
  if (known !== undefined && value !== undefined) known.use(request, value);
  else unused.push(`--${name}`);
  const takesNext = known !== undefined || otherWithValue.has(name);
  return equals === -1 && next !== undefined && takesNext ? 1 : 0;
}

/** Letters may be run together, and the value may follow at once: `-sXPATCH`. */
function applyShort(word: string, next: string | undefined, request: CurlRequest, unused: string[]): 0 | 1 {
  for (let at = 1; at < word.length; at++) {
    const letter = word.charAt(at);
    const known = curlOptions[longOf.get(letter) ?? ''];
    if (known?.isFlag) known.use(request, '');
    else if (known === undefined && !otherWithValue.has(letter)) unused.push(`-${letter}`);
    else {
      const inside = word.slice(at + 1);
      const value = inside === '' ? next : inside;
      if (known !== undefined && value !== undefined) known.use(request, value);
      else unused.push(`-${letter}`);
      return inside === '' && next !== undefined ? 1 : 0;
    }
  }
  return 0;
}

/** What curl sends: its own defaults for the method, the type and the path. */
function toParts(request: CurlRequest): PastedParts {
  const { parts, urls, notes, version } = request;
  const [url = '', ...others] = urls;
  if (others.length > 0) notes.push(`${others.length} more words were left out; the first is the URL`);
  const multipart = parts.length === 0 ? undefined : multipartOf(parts);
  const body = multipart?.body ?? (request.isQuery ? undefined : request.data);
  const hasBody = body !== undefined || request.isUpload;
  const implied = request.isHead ? 'HEAD' : request.isUpload ? 'PUT' : hasBody ? 'POST' : 'GET';
  const given = new Map(request.fields.map(([name, value]) => [name.toLowerCase(), value]));
  const fields = request.fields.flatMap(([name, value]) => (value === removed ? [] : [name, value]));
  const addDefault = (name: string, value: string) => {
    if (!given.has(name.toLowerCase())) fields.push(name, value);
  };
  if (hasBody && !request.isUpload) {
    addDefault('Content-Type', multipart?.type ?? request.type ?? 'application/x-www-form-urlencoded');
  }
  if (request.type !== undefined) addDefault('Accept', request.type);
  const query = [request.isQuery ? request.data : undefined, request.query].filter(
    (one) => one !== undefined,
  );
  const asked = query.length === 0 ? url : withQuery(url, query.join('&'));
  return {
    method: request.method ?? implied,
    url: request.keepsPath ? asked : withoutDotSegments(asked, notes),
    target: request.target,
    unreadable: url === '' && request.target === undefined ? 'the curl command has no URL' : undefined,
    ...{ fields, body, notes, version },
  };
}

function withQuery(url: string, query: string): string {
  const [address = ''] = url.split('#', 1);
  return `${address}${address.includes('?') ? '&' : '?'}${query}`;
}

function multipartOf(parts: CurlRequest['parts']): { type: string; body: string } {
  const boundary = '------------------------shopward';
  const texts = parts.map(
    ([name, value]) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${name.replaceAll('"', '\\"')}"\r\n\r\n${value}\r\n`,
  );
  return { type: `multipart/form-data; boundary=${boundary}`, body: `${texts.join('')}--${boundary}--\r\n` };
}

/** Removes dot segments (RFC 3986 section 5.2.4), as curl does. */
function withoutDotSegments(url: string, notes: string[]): string {
  const end = url.search(/[?#]/);
  const address = end === -1 ? url : url.slice(0, end);
  const host = address.indexOf('://');
  const start = address.indexOf('/', host === -1 ? 0 : host + 3);
  if (start === -1 || !/\/\.{1,2}(?:\/|$)/.test(address)) return url;
  const kept: string[] = [];
  const segments = address.slice(start + 1).split('/');
  for (const [at, segment] of segments.entries()) {
    const isLast = at === segments.length - 1;
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
    if (isLast && (segment === '.' || segment === '..')) kept.push('');
  }
  notes.push('curl takes "." and ".." out of the path itself; with --path-as-is it does not');
  return `${address.slice(0, start)}/${kept.join('/')}${end === -1 ? '' : url.slice(end)}`;
}
