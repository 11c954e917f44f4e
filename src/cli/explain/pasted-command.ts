import { parseArgs } from 'node:util';
import { parse } from 'shell-quote';
import { trimOws } from '../../http/field-list.ts';

/** A request as found in a curl command or a HAR entry. */
export interface PastedParts {
  /** In its exact case. */
  readonly method: string;
  /** A whole URL. */
  readonly url: string;
  /** Name, value, name, value … */
  readonly fields: readonly string[];
  /** Undefined: absent or unknown. */
  readonly body?: string | undefined;
  /** How the text was read, and which parts are not known. */
  readonly notes: readonly string[];
}

const value = { type: 'string', multiple: true } as const;
const flag = { type: 'boolean', multiple: true } as const;

/** The options of curl that are read, and those that do not affect the request. */
const options = {
  request: { ...value, short: 'X' },
  url: value,
  header: { ...value, short: 'H' },
  data: { ...value, short: 'd' },
  'data-ascii': value,
  'data-binary': value,
  'data-raw': value,
  json: value,
  cookie: { ...value, short: 'b' },
  user: { ...value, short: 'u' },
  'oauth2-bearer': value,
  'user-agent': { ...value, short: 'A' },
  referer: { ...value, short: 'e' },
  head: { ...flag, short: 'I' },
  'path-as-is': flag,
  compressed: flag,
  fail: { ...flag, short: 'f' },
  globoff: { ...flag, short: 'g' },
  'http1.1': flag,
  http2: flag,
  include: { ...flag, short: 'i' },
  insecure: { ...flag, short: 'k' },
  location: { ...flag, short: 'L' },
  'show-error': { ...flag, short: 'S' },
  silent: { ...flag, short: 's' },
  verbose: { ...flag, short: 'v' },
  cacert: value,
  'max-time': { ...value, short: 'm' },
  output: { ...value, short: 'o' },
  proxy: { ...value, short: 'x' },
  resolve: value,
  'write-out': { ...value, short: 'w' },
} as const;

/**
 * Reads a curl command as curl does: the words of a POSIX shell, then the options. Linear in the length of the text.
 * Undefined: the text is not a curl command. A string: why it cannot be read.
 */
export function readCurl(text: string): PastedParts | string | undefined {
  const [start] = /^\s*(?:\$ )?(?=curl\s)/.exec(text) ?? [];
  if (start === undefined) return undefined;
  const command = text.slice(start.length);
  if (/\^["\r\n]/.test(command)) return 'it is a command for cmd: copy it as cURL (bash)';
  const words = splitWords(command);
  if (typeof words === 'string') return words;
  const notes = ['read from a curl command'];
  // In single quotes a variable is plain text. The name is not printed: it may be part of a password.
  if (/\$\{?[A-Z_]/.test(command.replace(/'[^']*'/g, '')))
    notes.push('variables are taken as they stand: what the shell would put there is not known');
  try {
    const { tokens, positionals } = parseArgs({
      args: words.slice(1),
      options,
      allowPositionals: true,
      tokens: true,
    });
    const given = tokens.filter(({ kind }) => kind === 'option') as readonly GivenOption[];
    return toParts(given, positionals, notes);
  } catch (fault) {
    if (!isOfOptions(fault)) throw fault;
    return 'it has an option that is not read here: give the method and the URL, and -H for a field';
  }
}

function isOfOptions(fault: unknown): boolean {
  return fault instanceof TypeError && String(Object(fault).code).startsWith('ERR_PARSE_ARGS_');
}

/** The words of the first command, with variables unchanged. A string: why the text cannot be split. */
function splitWords(command: string): string[] | string {
  // A backslash at the end of a line continues the command, except in single quotes.
  const line = command.replace(/'[^']*'|\\\r?\n/g, (part) => (part.startsWith("'") ? part : ' '));
  const words: string[] = [];
  try {
    for (const word of parse(line, (name) => `$${name}`)) {
      if (typeof word === 'string') words.push(word);
      else if ('pattern' in word) words.push(word.pattern);
      else if ('op' in word) return word.op === '&' ? 'it ends at "&": put quotes around the URL' : words;
    }
  } catch {
    return 'the shell cannot expand "${" in it: put the value there';
  }
  return words;
}

interface GivenOption {
  readonly name: keyof typeof options;
  readonly value: string;
}

/** Options that set a field -> the line of the field. */
const fieldOptions: Readonly<Record<string, (given: string) => string>> = {
  header: (line) => line,
  cookie: (cookies) => `Cookie: ${cookies}`,
  user: (credentials) => `Authorization: Basic ${Buffer.from(credentials).toString('base64')}`,
  'oauth2-bearer': (token) => `Authorization: Bearer ${token}`,
  'user-agent': (name) => `User-Agent: ${name}`,
  referer: (url) => `Referer: ${url}`,
};

/** What curl sends: its own defaults for the method and the type. */
function toParts(
  given: readonly GivenOption[],
  positionals: readonly string[],
  notes: string[],
): PastedParts | string {
  const has = (name: keyof typeof options) => given.some((one) => one.name === name);
  const valuesOf = (name: keyof typeof options) =>
    given.filter((one) => one.name === name).map((one) => one.value);
  const urls = [...valuesOf('url'), ...positionals];
  const [url] = urls;
  if (url === undefined || urls.length > 1)
    return `the curl command has ${url === undefined ? 'no URL' : 'several URLs'}`;
  if (/^[^?#]*\/\.{1,2}(?:[/?#]|$)/.test(url) && !has('path-as-is'))
    return 'curl takes "." and ".." out of the path: write the path that is sent, or --path-as-is';

  const lines = given.flatMap((one) => fieldOptions[one.name]?.(one.value) ?? []);
  const body = readData(given, notes);
  const isJson = has('json');
  const names = new Set(lines.map((line) => line.split(':', 1)[0]?.toLowerCase()));
  const addDefault = (name: string, type: string) => {
    if (!names.has(name.toLowerCase())) lines.push(`${name}: ${type}`);
  };
  if (body !== undefined)
    addDefault('Content-Type', isJson ? 'application/json' : 'application/x-www-form-urlencoded');
  if (isJson) addDefault('Accept', 'application/json');
  return {
    method: valuesOf('request').at(-1) ?? (has('head') ? 'HEAD' : body === undefined ? 'GET' : 'POST'),
    url,
    fields: lines.flatMap((line) => fieldOf(line, notes)),
    ...{ body, notes },
  };
}

/** Name and value. Empty if the line is not a field, or has no value: then it removes a field that curl adds. */
function fieldOf(line: string, notes: string[]): string[] {
  const end = line.indexOf(':');
  if (end < 1) notes.push(`-H ${line}: it is no field, or its file is not known`);
  const content = trimOws(line.slice(end + 1));
  return end < 1 || content === '' ? [] : [line.slice(0, end), content];
}

/** The values of -d are joined by `&`, those of --json by nothing. */
function readData(given: readonly GivenOption[], notes: string[]): string | undefined {
  let body: string | undefined;
  for (const { name, value: data } of given) {
    if (name !== 'json' && !name.startsWith('data')) continue;
    const isFile = name !== 'data-raw' && data.startsWith('@');
    if (isFile) notes.push(`${data}: the content of that file is not known`);
    const text = isFile ? '' : data;
    body = body === undefined ? text : `${body}${name === 'json' ? '' : '&'}${text}`;
  }
  return body;
}
