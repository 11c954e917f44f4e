import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { ShopSettings } from '../settings.ts';
import { PlainRefusal, ShopError } from './refusals.ts';
import type { Answer, Resource, ResourceCall } from './resource.ts';

/** An answer as bytes: what a cut connection cuts. */
export type Written = {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

const jsonApi = { 'content-type': 'application/vnd.api+json' };

/** `path`: `/` and the path's segments, without empty ends. */
export function writeResult(answer: Answer, call: ResourceCall, path: string): Written {
  const fields = { 'content-language': call.locale === 'de' ? 'de_DE' : 'en_US', ...answer.fields };
  if (answer.plain !== undefined) {
    const { contentType, body } = answer.plain;
    return written(answer.status, { ...fields, 'content-type': contentType }, body);
  }
  if (answer.data === undefined) return written(answer.status, fields, '');
  const document = writeDocument(answer.data, call, path);
  return written(answer.status, { ...fields, ...jsonApi }, toJson(document, call.settings));
}

/** Anything that is no refusal is a bug of the shop, and reads as one. */
export function writeFailure(error: unknown, settings: ShopSettings): Written {
  if (error instanceof PlainRefusal) return writePlain(error.status, error.message);
  if (!(error instanceof ShopError)) return writePlain(500, 'Internal Server Error');
  const { status, errors } = error;
  const challenge = status === 401 && { 'www-authenticate': 'Bearer realm="Access to shop API"' };
  return written(status, { ...jsonApi, ...challenge }, toJson({ errors }, settings));
}

function writePlain(status: number, text: string): Written {
  const close = status === 413 && { connection: 'close' };
  return written(status, { 'content-type': 'text/html; charset=UTF-8', ...close }, text);
}

export function written(status: number, fields: Readonly<Record<string, string>>, body: string): Written {
  return { status, fields: { 'cache-control': 'no-cache, private', ...fields }, body: Buffer.from(body) };
}

/** A real shop says `Unprocessable Content`; not every version of Node does. */
export function sendWritten(response: ServerResponse, { status, fields, body }: Written): void {
  const reason = status === 422 ? 'Unprocessable Content' : (STATUS_CODES[status] ?? 'Unknown');
  const isBodiless = status === 204 || status === 304;
  const length = isBodiless ? {} : { 'content-length': String(body.length) };
  response.writeHead(status, reason, { ...fields, ...length });
  response.end(isBodiless ? undefined : body);
}

/** With PHP's escapes, if they are wanted: `\/` and `\u0026`, `\u0027`, `\u0022`, `\u003C`, `\u003E` inside strings. */
function toJson(value: unknown, { phpJson }: ShopSettings): string {
  const json = JSON.stringify(value);
  if (!phpJson) return json;
  return json.replace(/\\["\\]|[/&'<>]/g, (found) => {
    if (found === '\\\\') return found;
    if (found === '/') return '\\/';
    return `\\u00${found.at(-1)?.charCodeAt(0).toString(16).toUpperCase()}`;
  });
}

/** A JSON:API document: `include` adds relationships, `fields[type]` thins attributes out; neither by default. */
function writeDocument(data: Resource | readonly Resource[], call: ResourceCall, path: string): object {
  const seen = new Map<string, object>();
  const shown = Array.isArray(data)
    ? data.map((resource) => writeElement(resource, call, seen))
    : writeElement(data as Resource, call, seen);
  const links = Array.isArray(data) && { links: { self: call.settings.domain + path + selfQuery(call) } };
  return { data: shown, ...links, ...(seen.size > 0 && { included: [...seen.values()] }) };
}

/** Decoded on purpose, as a real shop writes it: `%26` comes back as `&`. */
export function selfQuery(call: ResourceCall): string {
  const pairs = [...call.query.values].map(([name, value]) => `${name}=${value}`);
  return pairs.length > 0 ? `?${pairs.join('&')}` : '';
}

function writeElement(resource: Resource, call: ResourceCall, seen: Map<string, object>): object {
  const { type, id, attributes, related: known = {} } = resource;
  const self = resource.self ?? (id === null ? `/${type}` : `/${type}/${id}`);
  const wanted = call.query.items.get(`fields[${type}]`)?.split(',');
  const thin = Object.entries(attributes).filter(([name]) => wanted?.includes(name) ?? true);
  const relationships: Record<string, object> = {};
  for (const name of (call.query.values.get('include') ?? '').split(',')) {
    const found = Object.hasOwn(known, name) ? (known[name]?.() ?? []) : [];
    if (found.length > 0) relationships[name] = { data: found.map(({ type, id }) => ({ type, id })) };
    for (const each of found) {
      const key = `${each.type}/${each.id}`;
      if (seen.has(key)) continue;
      // Its place is taken first: what it relates to may lead back to it.
      seen.set(key, {});
      seen.set(key, writeElement(each, call, seen));
    }
  }
  return {
    ...{ type, id, attributes: Object.fromEntries(thin) },
    links: { self: call.settings.domain + self },
    ...(Object.keys(relationships).length > 0 && { relationships }),
  };
}

/** What is to go wrong with one request; counters are used up when it is decided, not when it happens. */
export type Fault = { readonly kind: 'fail' | 'reset'; readonly isAfterWork: boolean } | null;

export function nextFault(settings: ShopSettings): Fault {
  if (settings.resetNext > 0) {
    settings.resetNext -= 1;
    return { kind: 'reset', isAfterWork: settings.failAfterWork || settings.resetAt === 'mid-body' };
  }
  const isCounted = settings.failNext > 0;
  if (isCounted) settings.failNext -= 1;
  const isFailing = isCounted || (settings.failRate > 0 && Math.random() < settings.failRate);
  return isFailing ? { kind: 'fail', isAfterWork: settings.failAfterWork } : null;
}

/** `answer` is null when the work was never begun. A cut body announces its whole length, and half of it is sent. */
export function sendFaulty(
  response: ServerResponse,
  settings: ShopSettings,
  fault: Fault,
  answer: Written | null,
): void {
  if (fault?.kind === 'fail') {
    sendWritten(response, writePlain(settings.failStatus, 'Failed on purpose.'));
  } else if (answer === null || settings.resetAt === 'before-answer' || answer.body.length === 0) {
    response.socket?.resetAndDestroy();
  } else {
    const { status, fields, body } = answer;
    response.writeHead(status, { ...fields, 'content-length': String(body.length) });
    response.write(body.subarray(0, Math.ceil(body.length / 2)), () => response.socket?.destroy());
  }
}
