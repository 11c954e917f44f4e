import { trimOws } from '../../http/field-list.ts';
import { splitCmd, splitShell } from './shell-words.ts';

/** A request as its command or code spells it. */
export interface PastedParts {
  /** As it is sent: case counts. Undefined: not named. */
  readonly method: string | undefined;
  /** A whole URL, or what stands for one. */
  readonly url: string;
  /** In place of the URL's own path and query. */
  readonly target?: string | undefined;
  /** Flat. */
  readonly fields: readonly string[];
  /** Undefined: none, or it is not known. */
  readonly body?: string | undefined;
  readonly version?: '1.0' | '1.1';
  /** How the text was read, and what of it was not used. */
  readonly notes: readonly string[];
}

/** What one option of curl does to the request; undefined: it was understood, and changes nothing. */
type Use = (request: CurlRequest, value: string) => void;

/** What curl makes of its options, before its defaults are added. */
interface CurlRequest {
  method: string | undefined;
  readonly urls: string[];
  /** Name and value of each -H; an empty value takes curl's own field away. */
  readonly fields: [name: string, value: string][];
  /** Parts of -d, joined by `&`, and of --json, joined by nothing. */
  data: string | undefined;
  /** Names and values of -F. */
  readonly parts: [name: string, value: string][];
  type: string | undefined;
  query: string | undefined;
  isQuery: boolean;
  isHead: boolean;
  isUpload: boolean;
  keepsPath: boolean;
  version: '1.0' | '1.1';
  target: string | undefined;
  readonly notes: string[];
}

/**
 * Reads a curl command as curl does: the words of a POSIX shell or of cmd, then its options. What changes the request is
 * taken; what does not, or cannot be known here, is named. Undefined: the text is no curl command. Linear in its length.
 */
export function readCurl(text: string): PastedParts | undefined {
  const start = /^\s*(?:[$>#%]\s+)?(?=curl(?:\.exe)?\s)/.exec(text);
  if (start === null) return undefined;
  const command = text.slice(start[0].length);
  const isCmd = /\^["\r\n]/.test(command);
  const words = isCmd ? splitCmd(command) : splitShell(command);
  const request: CurlRequest = {
    ...{ method: undefined, urls: [], fields: [], data: undefined, parts: [], type: undefined },
    ...{ query: undefined, isQuery: false, isHead: false, isUpload: false, keepsPath: false, version: '1.1' },
    ...{ target: undefined, notes: ['read from a curl command'] },
  };
  const unused = applyOptions(words.slice(1), request);
  if (unused.length > 0) request.notes.push(`of curl's options these play no part: ${unused.join(' ')}`);
  return toParts(request);
}

/** Sets a text; `fixed`: whatever stands after the option. */
function setting(name: 'method' | 'target' | 'version', fixed?: '1.0'): Use {
  return (request, value) => {
    Object.assign(request, { [name]: fixed ?? value });
  };
}

function flag(name: 'isQuery' | 'isHead' | 'keepsPath'): Use {
  return (request) => {
    request[name] = true;
  };
}

/** The options that say something about the request, by their long and their short name. */
const uses: Readonly<Record<string, { readonly short?: string; readonly isFlag?: true; readonly use: Use }>> =
  {
    request: { short: 'X', use: setting('method') },
    url: { use: ({ urls }, value) => void urls.push(value) },
    header: { short: 'H', use: addField },
    data: { short: 'd', use: (request, value) => addData(request, value, '&', '@') },
    'data-ascii': { use: (request, value) => addData(request, value, '&', '@') },
    'data-binary': { use: (request, value) => addData(request, value, '&', '@') },
    'data-raw': { use: (request, value) => addData(request, value, '&') },
    'data-urlencode': { use: (request, value) => addData(request, encodeData(value), '&') },
    json: {
      use(request, value) {
        addData(request, value, '', '@');
        request.type = 'application/json';
      },
    },
    form: { short: 'F', use: addPart },
    'form-string': { use: addPart },
    get: { short: 'G', isFlag: true, use: flag('isQuery') },
    head: { short: 'I', isFlag: true, use: flag('isHead') },
    'upload-file': {
      short: 'T',
      use(request, value) {
        request.isUpload = true;
        request.notes.push(`-T ${value}: what that file holds is not known`);
      },
    },
    cookie: {
      short: 'b',
      use({ fields, notes }, value) {
        if (value.includes('=')) fields.push(['Cookie', value]);
        else notes.push(`-b ${value}: the cookies of that file are not known`);
      },
    },
    user: {
      short: 'u',
      use: ({ fields }, value) => void fields.push(['Authorization', `Basic ${btoaUtf8(value)}`]),
    },
    'oauth2-bearer': { use: ({ fields }, value) => void fields.push(['Authorization', `Bearer ${value}`]) },
    'user-agent': { short: 'A', use: ({ fields }, value) => void fields.push(['User-Agent', value]) },
    referer: { short: 'e', use: ({ fields }, value) => void fields.push(['Referer', value]) },
    range: { short: 'r', use: ({ fields }, value) => void fields.push(['Range', `bytes=${value}`]) },
    compressed: {
      isFlag: true,
      use: ({ fields }) => void fields.push(['Accept-Encoding', 'deflate, gzip, br, zstd']),
    },
    'path-as-is': { isFlag: true, use: flag('keepsPath') },
    'request-target': { use: setting('target') },
    'url-query': {
      use(request, value) {
        request.query = joinWith('&', request.query, encodeData(value));
      },
    },
    'http1.0': { short: '0', isFlag: true, use: setting('version', '1.0') },
  };

const longOf = new Map(Object.entries(uses).flatMap(([name, { short }]) => (short ? [[short, name]] : [])));

/** Letters and names of other options that are followed by a value. */
const otherWithValue: ReadonlySet<string> = new Set([
  ...'oxmwcDKEQtyYzCPUh',
  ...'output proxy max-time write-out cookie-jar dump-header config cert quote speed-time speed-limit'.split(
    ' ',
  ),
  ...'time-cond continue-at ftp-port proxy-user connect-timeout retry retry-delay retry-max-time'.split(' '),
  ...'cacert capath key cert-type key-type pass ciphers tls13-ciphers resolve connect-to interface'.split(
    ' ',
  ),
  ...'limit-rate max-redirs max-filesize noproxy socks5 socks5-hostname socks4 proto proto-redir'.split(' '),
  ...'local-port dns-servers doh-url expect100-timeout keepalive-time stderr trace trace-ascii'.split(' '),
  ...'aws-sigv4 netrc-file tls-max unix-socket abstract-unix-socket output-dir rate variable'.split(' '),
]);

/** Gives every word that changed nothing. */
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

/** Gives how many further words it took. */
function applyLong(word: string, next: string | undefined, request: CurlRequest, unused: string[]): 0 | 1 {
  const equals = word.indexOf('=');
  const name = equals === -1 ? word.slice(2) : word.slice(2, equals);
  const known = Object.hasOwn(uses, name) ? uses[name] : undefined;
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
    const known = uses[longOf.get(letter) ?? ''];
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

function addField({ fields, notes }: CurlRequest, line: string): void {
  const end = line.search(/[:;]/);
  if (line.startsWith('@')) notes.push(`-H ${line}: the fields of that file are not known`);
  else if (end < 1) notes.push(`-H ${line}: it is no field`);
  // `Name;` is a field without a value, `Name:` takes one of curl's own away.
  else if (line.charAt(end) === ';') fields.push([line.slice(0, end), '']);
  else fields.push([line.slice(0, end), trimOws(line.slice(end + 1)) || removed]);
}

/** No field can have it as its value. */
const removed = '\n';

function addData(request: CurlRequest, value: string, joint: string, fileSign?: string): void {
  if (fileSign !== undefined && value.startsWith(fileSign)) {
    request.notes.push(`-d ${value}: what that file holds is not known`);
    request.data = joinWith(joint, request.data, '');
  } else request.data = joinWith(joint, request.data, value);
}

function addPart({ parts, notes }: CurlRequest, value: string): void {
  const equals = value.indexOf('=');
  const content = value.slice(equals + 1);
  if (/^[@<]/.test(content)) notes.push(`-F ${value}: what that file holds is not known`);
  parts.push([value.slice(0, Math.max(0, equals)), /^[@<]/.test(content) ? '' : content]);
}

function joinWith(joint: string, before: string | undefined, more: string): string {
  return before === undefined ? more : before + joint + more;
}

/** `name=content` and `=content`; the name is taken as it is. */
function encodeData(value: string): string {
  const equals = value.indexOf('=');
  const name = equals > 0 ? `${value.slice(0, equals)}=` : '';
  return name + encodeURIComponent(value.slice(equals + 1).toWellFormed());
}

function btoaUtf8(text: string): string {
  return Buffer.from(text).toString('base64');
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

/** RFC 3986 section 5.2.4, as curl does before it asks. */
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
