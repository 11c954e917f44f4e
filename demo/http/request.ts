import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import Negotiator from 'negotiator';
import type { Locale } from '../data/catalogue.ts';
import { PlainRefusal } from './refusals.ts';

/**
 * One step of a path: `/carts/ID` is the pair (carts, ID). `null`: the path has no id; an empty string: it has an empty
 * one.
 */
export type ResourcePair = { readonly type: string; readonly id: string | null };

/** Parameters as PHP reads them: names are mangled, the last value of a name counts, `a[]=1` is a list. */
export type PhpParameters = {
  readonly values: ReadonlyMap<string, string>;
  /** Items of lists by their full name, such as `page[limit]`. */
  readonly items: ReadonlyMap<string, string>;
  readonly lists: ReadonlySet<string>;
};

/** A request as the shop's framework passes it on. */
export type ShopRequest = {
  /** After a method override. */
  readonly method: string;
  readonly pairs: readonly ResourcePair[];
  readonly query: PhpParameters;
  readonly fields: IncomingHttpHeaders;
  /** Fields of a form in a POST; PHP reads no other forms. */
  readonly form: PhpParameters | null;
  /** The parsed JSON; `undefined` without a valid body. */
  readonly json: unknown;
};

const formTypes = ['application/x-www-form-urlencoded', 'multipart/form-data'];

/** Larger bodies get 413. */
const mostBodyBytes = 2 * 1024 * 1024;

export async function readRequest(request: IncomingMessage): Promise<ShopRequest> {
  const bytes = await readBytes(request);
  const { headers: fields } = request;
  const contentType = fields['content-type'] ?? '';
  const isForm = formTypes.some((type) => contentType.toLowerCase().startsWith(type));
  const form = isForm && request.method === 'POST' ? await readForm(bytes, contentType) : null;
  const { pairs, query: encoded } = readPath(request.url ?? '/');
  const query = readParameters(encoded);
  const json = isForm ? undefined : parseJson(bytes);
  return { method: overridden(request, form, query), pairs, query, fields, form, json };
}

/**
 * Reads a request target as a real shop does, aliases included: slashes and backslashes at both ends are ignored, `//`
 * inside is an empty id, nothing is percent-decoded, dot segments stay, `/index.php` is skipped.
 */
export function readPath(target: string): { pairs: ResourcePair[]; query: string } {
  const absolute = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(target)?.[0] ?? '';
  const [pathAndQuery = ''] = (target.slice(absolute.length) || '/').split('#', 1);
  const [path = ''] = pathAndQuery.split('?', 1);
  const inner = path.replace(/^\/index\.php(?=\/|$)/, '').replace(/^[/\\]+|[/\\]+$/g, '');
  const segments = inner === '' ? [] : inner.split('/');
  const pairs: ResourcePair[] = [];
  for (let at = 0; at < segments.length; at += 2) {
    pairs.push({ type: segments[at] ?? '', id: segments[at + 1] ?? null });
  }
  return { pairs, query: pathAndQuery.slice(path.length + 1) };
}

export function joinPairs(pairs: readonly ResourcePair[]): string {
  return pairs.map(({ type, id }) => `/${type}${id === null ? '' : `/${id}`}`).join('');
}

/**
 * Method override is ON, as in a real shop: the field `X-HTTP-Method-Override`, the form field `_method` or the query
 * parameter `_method` replaces the method of a POST. A proxy that reads only the method forwards such requests.
 */
function overridden(
  { method = '', headers }: IncomingMessage,
  ...parameters: (PhpParameters | null)[]
): string {
  if (method !== 'POST') return method;
  const named = [headers['x-http-method-override'], ...parameters.map((each) => each?.values.get('_method'))];
  return String(named.find(Boolean) ?? method).toUpperCase();
}

/** The language that Accept-Language prefers, `en` or `de`; default `en`. */
export function localeOf(fields: IncomingHttpHeaders): Locale {
  const headers = { 'accept-language': (fields['accept-language'] ?? '').replaceAll('_', '-') };
  return new Negotiator({ headers }).languages(['en', 'de'])[0] === 'de' ? 'de' : 'en';
}

function readParameters(encoded: string): PhpParameters {
  const parts = encoded.split('&').map((part) => {
    const [name = ''] = part.split('=', 1);
    return [phpDecode(name), phpDecode(part.slice(name.length + 1))] as const;
  });
  return collect(parts);
}

/** Names lose leading spaces and end at a NUL; dots and spaces become `_`. */
function collect(parts: readonly (readonly [string, string])[]): PhpParameters {
  const values = new Map<string, string>();
  const items = new Map<string, string>();
  const lists = new Set<string>();
  for (const [rawName, value] of parts) {
    const cut = rawName.replace(/^ +/, '').split('\0', 1)[0] ?? '';
    const bracket = cut.indexOf('[');
    const isList = bracket > 0;
    const name = (isList ? cut.slice(0, bracket) : cut).replace(/[. ]/g, '_');
    if (name === '') continue;
    if (isList) {
      lists.add(name);
      values.delete(name);
      items.set(rawName.trimStart(), value);
    } else {
      lists.delete(name);
      values.set(name, value);
    }
  }
  return { values, items, lists };
}

/** `urldecode` of PHP: `+` is a space, and a `%` that starts no escape stays. */
export function phpDecode(text: string): string {
  return rawPhpDecode(text.replace(/\+/g, ' '));
}

/** `rawurldecode` of PHP. */
export function rawPhpDecode(text: string): string {
  const bytes = Buffer.from(text, 'utf8').toString('latin1');
  const decoded = bytes.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(decoded, 'latin1').toString('utf8');
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    length += chunk.length;
    if (length > mostBodyBytes) throw new PlainRefusal(413, 'Request Entity Too Large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Node's own reader of forms; an unreadable form has no fields. */
async function readForm(bytes: Buffer, contentType: string): Promise<PhpParameters> {
  const response = new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } });
  const form = await response.formData().catch(() => new FormData());
  return collect([...form].filter((part): part is [string, string] => typeof part[1] === 'string'));
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
