import { fieldValue } from '../../http/field-list.ts';
import { isObject, type JsonObject } from '../../lib/json.ts';
import type { PastedParts } from './pasted-command.ts';

const start =
  /^\s*(?:(?:const|let|var)\s+[\w$]{1,60}\s*=\s*)?(?:await\s+|return\s+)?(?:(?:window|globalThis|self)\.)?fetch\s*\(/;

/**
 * Reads a call of fetch, as browsers copy it or people write it. Only literals are read and nothing is run; notes name what is
 * not a literal. Undefined: the text is not a call of fetch. Linear in its length.
 */
export function readFetch(text: string): PastedParts | undefined {
  const opening = start.exec(text);
  if (opening === null) return undefined;
  const notes = ['read from a call of fetch'];
  const reader = new LiteralReader(text, opening[0].length);
  const url = reader.readValue();
  const hasOptions = reader.take(',');
  const options = hasOptions ? reader.readValue() : undefined;
  if (reader.stopped !== undefined) {
    const place = text.slice(reader.stopped, reader.stopped + 20);
    notes.push(`from ${JSON.stringify(place)} on it is no literal: what stands there is not known`);
  }
  const given = isObject(options) ? options : {};
  const { method, headers, body, referrer, ...others } = given;
  const unused = Object.keys(others);
  if (unused.length > 0) notes.push(`of fetch's options these play no part: ${unused.join(' ')}`);
  const fields = fieldsOf(headers);
  if (typeof referrer === 'string') fields.push('Referer', referrer);
  const lacks = (name: string) => fieldValue(fields, name) === undefined;
  if (given.credentials === 'include' && lacks('cookie')) notes.push('the cookies are not in it');
  if (typeof body === 'string' && lacks('content-type'))
    fields.push('Content-Type', 'text/plain;charset=UTF-8');
  return {
    method: typeof method === 'string' ? normaliseMethod(method) : 'GET',
    url: typeof url === 'string' ? asFetched(url, notes) : '/',
    fields,
    body: typeof body === 'string' ? body : undefined,
    unreadable: typeof url === 'string' ? undefined : 'the URL of this call of fetch is no literal',
    notes,
  };
}

/** As in the Fetch standard ("normalize a method"); the case of other methods is kept. */
function normaliseMethod(method: string): string {
  const upper = method.toUpperCase();
  return ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT'].includes(upper) ? upper : method;
}

/** The URL as fetch normalises it: without dot segments, and with slashes for backslashes. */
function asFetched(url: string, notes: string[]): string {
  if (!URL.canParse(url)) return url;
  const { href } = new URL(url);
  if (href !== url && href !== `${url}/`) notes.push(`fetch sends ${href}`);
  return href;
}

/** The fields of an object, of `new Headers({…})`, or of pairs. */
function fieldsOf(headers: unknown): string[] {
  const pairs: readonly unknown[] = Array.isArray(headers)
    ? headers
    : isObject(headers)
      ? Object.entries(headers)
      : [];
  return pairs.flatMap((pair) => {
    const [name, value] = Array.isArray(pair) ? pair : [];
    return typeof name === 'string' && typeof value === 'string' ? [name, value] : [];
  });
}

const deepest = 32;
/** Calls around a literal that do not change its meaning for a request. */
const wrappers = ['JSON.stringify', 'new Headers', 'new URL', 'new URLSearchParams', 'encodeURI'] as const;

/** Reads literals of JavaScript: strings, numbers, words, arrays and objects. Stops at anything else. */
class LiteralReader {
  readonly #text: string;
  #at: number;
  /** Where it stopped; undefined: not yet. */
  stopped: number | undefined;

  constructor(text: string, at: number) {
    this.#text = text;
    this.#at = at;
  }

  /** Undefined also for what is not a literal; then the reader has stopped. */
  readValue(depth = 0): unknown {
    this.#skip();
    if (this.stopped !== undefined || depth > deepest) return this.#stop();
    const char = this.#text.charAt(this.#at);
    if (char === '"' || char === "'" || char === '`') return this.#readString(char);
    if (char === '{') return this.#readObject(depth);
    if (char === '[') return this.#readArray(depth);
    const wrapper = wrappers.find((name) => this.#text.startsWith(`${name}(`, this.#at));
    if (wrapper !== undefined) return this.#readWrapped(wrapper, depth);
    const word = /^[A-Za-z0-9_.+-]{1,40}/.exec(this.#text.slice(this.#at, this.#at + 40))?.[0] ?? '';
    if (!Object.hasOwn(words, word) && (word === '' || Number.isNaN(Number(word)))) return this.#stop();
    this.#at += word.length;
    return Object.hasOwn(words, word) ? words[word] : Number(word);
  }

  /** Whether this sign comes next; if so, it is consumed. */
  take(sign: string): boolean {
    this.#skip();
    const isNext = this.stopped === undefined && this.#text.startsWith(sign, this.#at);
    if (isNext) this.#at += sign.length;
    return isNext;
  }

  #stop(): undefined {
    this.stopped ??= this.#at;
    return undefined;
  }

  #skip(): void {
    for (;;) {
      while (/\s/.test(this.#text.charAt(this.#at))) this.#at += 1;
      const isComment = this.#text.startsWith('//', this.#at);
      if (!isComment) return;
      const end = this.#text.indexOf('\n', this.#at);
      this.#at = end === -1 ? this.#text.length : end;
    }
  }

  #readWrapped(wrapper: (typeof wrappers)[number], depth: number): unknown {
    this.#at += wrapper.length + 1;
    const value = this.readValue(depth + 1);
    if (!this.take(')')) return this.#stop();
    if (wrapper === 'JSON.stringify') return JSON.stringify(value);
    if (wrapper === 'new URLSearchParams')
      return String(new URLSearchParams(isObject(value) ? toTexts(value) : String(value)));
    return value;
  }

  #readString(quote: string): string | undefined {
    let value = '';
    for (this.#at += 1; this.#at < this.#text.length; this.#at++) {
      const char = this.#text.charAt(this.#at);
      if (char === quote) {
        this.#at += 1;
        return value;
      }
      if (quote === '`' && this.#text.startsWith('${', this.#at)) return this.#stop();
      if (char === '\\') value += this.#readEscape();
      else value += char;
    }
    return this.#stop();
  }

  /** ECMA-262 section 12.9.4; leaves the reader on the last character of the escape. */
  #readEscape(): string {
    this.#at += 1;
    const next = this.#text.charAt(this.#at);
    const code = /^(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\})/.exec(
      this.#text.slice(this.#at, this.#at + 9),
    )?.[0];
    if (code === undefined) return escapes[next] ?? next;
    this.#at += code.length - 1;
    const number = Number.parseInt(code.replace(/[^0-9a-fA-F]/g, ''), 16);
    return number > 0x10ffff ? '' : String.fromCodePoint(number);
  }

  /** If it stops, the members so far are returned. */
  #readObject(depth: number): Record<string, unknown> {
    const members: Record<string, unknown> = Object.create(null);
    this.#at += 1;
    while (this.stopped === undefined && !this.take('}')) {
      const name = this.#readName();
      if (name === undefined || !this.take(':')) {
        this.#stop();
        break;
      }
      const value = this.readValue(depth + 1);
      if (value !== undefined) members[name] = value;
      if (this.stopped === undefined && !this.take(',') && !this.#isNext('}')) this.#stop();
    }
    return members;
  }

  #readName(): string | undefined {
    this.#skip();
    const char = this.#text.charAt(this.#at);
    if (char === '"' || char === "'") return this.#readString(char);
    const name = /^[\w$]{1,60}/.exec(this.#text.slice(this.#at, this.#at + 60))?.[0];
    this.#at += name?.length ?? 0;
    return name;
  }

  #readArray(depth: number): unknown[] {
    const items: unknown[] = [];
    this.#at += 1;
    while (this.stopped === undefined && !this.take(']')) {
      items.push(this.readValue(depth + 1));
      if (this.stopped === undefined && !this.take(',') && !this.#isNext(']')) this.#stop();
    }
    return items;
  }

  #isNext(sign: string): boolean {
    this.#skip();
    return this.#text.startsWith(sign, this.#at);
  }
}

const words: JsonObject = {
  true: true,
  false: false,
  null: null,
  undefined: undefined,
};
const escapes: Readonly<Record<string, string>> = {
  ...{ n: '\n', r: '\r', t: '\t', b: '\b', f: '\f', v: '\v', '0': '\0', '\n': '' },
};

function toTexts(members: JsonObject): Record<string, string> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, String(value)]));
}

/** Reads a HAR file, one entry of it, or the request of one (HAR 1.2): the first one that was refused, else the first. */
export function readHar(document: JsonObject): PastedParts | undefined {
  const { log } = document;
  const entries =
    isObject(log) && Array.isArray(log.entries)
      ? log.entries.filter(isObject)
      : [Array.isArray(document.headers) ? { request: document } : document];
  const isRefused = ({ response }: JsonObject) =>
    isObject(response) && typeof response.status === 'number' && response.status >= 400;
  const place = Math.max(0, entries.findIndex(isRefused));
  const { request } = entries[place] ?? {};
  if (!isObject(request) || typeof request.url !== 'string' || !Array.isArray(request.headers))
    return undefined;
  const pairs = request.headers
    .filter(isObject)
    .map(({ name, value }) => [String(name), String(value)] as const);
  const { postData } = request;
  const which = isRefused(entries[place] ?? {}) ? 'the first one that was refused' : 'the first one';
  return {
    method: typeof request.method === 'string' ? request.method : 'GET',
    url: request.url,
    // In HTTP/2 names with a colon are the request line. Content-Length is computed again.
    fields: pairs.flatMap(([name, value]) =>
      name.startsWith(':') || /^(?:host|content-length|connection)$/i.test(name) ? [] : [name, value],
    ),
    body: isObject(postData) ? postedText(postData) : undefined,
    notes: [
      entries.length > 1
        ? `entry ${place + 1} of ${entries.length} of a HAR file: ${which}`
        : 'read from a HAR entry',
    ],
  };
}

/** The text of `postData`, or the form that its `params` are. */
function postedText({ text, params, mimeType }: JsonObject): string | undefined {
  if (typeof text === 'string' && text !== '') return text;
  const isForm = typeof mimeType === 'string' && /^application\/x-www-form-urlencoded\b/i.test(mimeType);
  if (!isForm || !Array.isArray(params)) return typeof text === 'string' ? text : undefined;
  const pairs = params.filter(isObject).map(({ name, value = '' }) => [String(name), String(value)]);
  return String(new URLSearchParams(pairs));
}
