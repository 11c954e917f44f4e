import { createRequire } from 'node:module';
import { parse } from 'node:querystring';
import { Readable } from 'node:stream';
import { gunzipSync, inflateRawSync, inflateSync } from 'node:zlib';
import type { TokenReader, WireRequest } from './wire-request.ts';

const load = createRequire(import.meta.url);
// It has no types.
const bodyParser = load('body-parser');

type Params = Readonly<Record<string, unknown>>;
type Middleware = (incoming: unknown, response: object, next: (fault?: unknown) => void) => void;

const middlewares: readonly Middleware[] = [
  bodyParser.json({ strict: false, type: () => true }),
  bodyParser.json({ type: ['json', '+json'] }),
  bodyParser.urlencoded({ extended: true, type: () => true }),
  bodyParser.urlencoded({ extended: false }),
];

/** Reads as shops on Node do: with the platform's parsers for any type, and with Express's for the given type and any. */
export const nodeReader: TokenReader = {
  read: (requests) => Promise.all(requests.map(readOne)),
  close: async () => undefined,
};

async function readOne(request: WireRequest): Promise<readonly string[]> {
  const body = Buffer.from(request.body, 'base64');
  const found = new Set<string>();
  for (const octets of [body, ...undone(body)]) {
    for (const text of [octets.toString('utf8'), octets.toString('utf16le'), octets.toString('latin1')]) {
      attempt(() => fromParams(JSON.parse(text), found));
      attempt(() => fromParams(JSON.parse(text.replace(/^\ufeff/, '')), found));
      for (const form of [text, `${text}&${request.query}`, request.query]) {
        // As CGI.pm and ASP.NET do.
        attempt(() => fromParams(parse(form.replace(/%u00([0-9a-f]{2})/gi, '%$1')), found));
        attempt(() => fromParams(parse(form), found));
        attempt(() => fromParams(parse(form.replaceAll(';', '&')), found));
        attempt(() => fromParams(Object.fromEntries(new URLSearchParams(form)), found));
      }
    }
  }
  for (const middleware of middlewares) fromParams(await throughMiddleware(middleware, request, body), found);
  return [...found];
}

function undone(body: Buffer): Buffer[] {
  const options = { maxOutputLength: 1_048_576 };
  return [gunzipSync, inflateSync, inflateRawSync].flatMap((undo) => {
    try {
      return [undo(body, options)];
    } catch {
      return [];
    }
  });
}

/** Looks at any depth. Case, `_` and `-` in names are ignored, as by frameworks that map them to fields of objects. */
function fromParams(params: unknown, found: Set<string>): void {
  if (typeof params !== 'object' || params === null) return;
  walk(params, found, 0);
}

function walk(value: unknown, found: Set<string>, depth: number): void {
  if (typeof value !== 'object' || value === null || depth > 100) return;
  const { grant_type: grant } = value as Params;
  const last = Array.isArray(grant) ? grant.at(-1) : grant;
  const exchanges = last === undefined || last === null || last === 'refresh_token';
  for (const [name, inner] of Object.entries(value)) {
    const isMeant = exchanges && name.replace(/[_-]/g, '').toLowerCase() === 'refreshtoken';
    for (const one of Array.isArray(inner) ? inner : [inner]) {
      if (isMeant && (typeof one === 'string' || typeof one === 'number')) found.add(String(one));
    }
    walk(inner, found, depth + 1);
  }
}

function throughMiddleware(middleware: Middleware, request: WireRequest, body: Buffer): Promise<unknown> {
  const incoming = Object.assign(Readable.from([body]), {
    method: 'POST',
    headers: {
      'content-type': request.contentType,
      'content-length': String(body.length),
      ...(request.contentEncoding !== '' && { 'content-encoding': request.contentEncoding }),
    },
    body: undefined as unknown,
  });
  return new Promise((resolve) => middleware(incoming, {}, () => resolve(incoming.body)));
}

function attempt(act: () => void): void {
  try {
    act();
  } catch {
    // Not its format.
  }
}
