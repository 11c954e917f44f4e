import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { ShopSettings } from '../settings.ts';
import { PlainRefusal, ShopError } from './refusals.ts';
import type { Answer, Resource, ResourceCall } from './resource.ts';

type Fields = Readonly<Record<string, string>>;

/** An answer as bytes, so that it can be cut off. */
export type Written = { readonly status: number; readonly fields: Fields; readonly body: Buffer };

const jsonApi = { 'content-type': 'application/vnd.api+json' };

/** `path`: `/` and the segments of the path, without slashes at both ends. */
export function writeResult(answer: Answer, call: ResourceCall, path: string): Written {
  const { status, data, body = '' } = answer;
  const language = { 'content-language': call.locale === 'de' ? 'de_DE' : 'en_US' };
  if (data === undefined) return written(status, { ...language, ...answer.fields }, body);
  const document = JSON.stringify(writeDocument(data, call, path));
  return written(status, { ...language, ...jsonApi, ...answer.fields }, document);
}

/** An error that is not a refusal is a bug of the shop, and becomes 500. */
export function writeFailure(error: unknown): Written {
  if (error instanceof PlainRefusal) return writePlain(error.status, error.message);
  if (!(error instanceof ShopError)) return writePlain(500, 'Internal Server Error');
  const { status, errors } = error;
  const challenge = status === 401 && { 'www-authenticate': 'Bearer realm="Access to shop API"' };
  return written(status, { ...jsonApi, ...challenge }, JSON.stringify({ errors }));
}

function writePlain(status: number, text: string): Written {
  const close = status === 413 && { connection: 'close' };
  return written(status, { 'content-type': 'text/html; charset=UTF-8', ...close }, text);
}

export function written(status: number, fields: Fields, body: string): Written {
  return { status, fields: { 'cache-control': 'no-cache, private', ...fields }, body: Buffer.from(body) };
}

/** A real shop writes `Unprocessable Content`; some versions of Node do not. */
export function sendWritten(response: ServerResponse, { status, fields, body }: Written): void {
  const reason = status === 422 ? 'Unprocessable Content' : (STATUS_CODES[status] ?? 'Unknown');
  const isBodiless = status === 204 || status === 304;
  const length = !isBodiless && { 'content-length': String(body.length) };
  response.writeHead(status, reason, { ...fields, ...length });
  response.end(isBodiless ? undefined : body);
}

/** A JSON:API document. `include` adds relationships, `fields[type]` selects attributes. */
function writeDocument(data: Resource | readonly Resource[], call: ResourceCall, path: string): object {
  const seen = new Map<string, object>();
  const shown = [data].flat().map((resource) => writeElement(resource, call, seen));
  const included = seen.size > 0 && { included: [...seen.values()] };
  if (!Array.isArray(data)) return { data: shown[0], ...included };
  return { data: shown, links: { self: call.settings.domain + path + selfQuery(call) }, ...included };
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
      // Added first, because its relations may lead back to it.
      seen.set(key, {});
      seen.set(key, writeElement(each, call, seen));
    }
  }
  const links = { self: call.settings.domain + self };
  const relations = Object.keys(relationships).length > 0 && { relationships };
  return { type, id, attributes: Object.fromEntries(thin), links, ...relations };
}

/** A fault of one request. The counters of the settings fall when it is chosen, not when it happens. */
export type Fault = { readonly kind: 'fail' | 'reset'; readonly isAfterWork: boolean };

export function nextFault(settings: ShopSettings): Fault | null {
  const { failAfterWork, resetAt } = settings;
  if (settings.resetNext > 0) {
    settings.resetNext -= 1;
    return { kind: 'reset', isAfterWork: failAfterWork || resetAt === 'mid-body' };
  }
  if (settings.failNext === 0) return null;
  settings.failNext -= 1;
  return { kind: 'fail', isAfterWork: failAfterWork };
}

/** `answer` is null if no work was done. A cut answer announces its whole body, and sends half of it. */
export function sendFaulty(
  response: ServerResponse,
  { failStatus, resetAt }: ShopSettings,
  { kind }: Fault,
  answer: Written | null,
): void {
  if (kind === 'fail') sendWritten(response, writePlain(failStatus, 'Failed on purpose.'));
  else if (answer === null || resetAt === 'before-answer' || answer.body.length === 0) {
    response.socket?.resetAndDestroy();
  } else {
    const { status, fields, body } = answer;
    response.writeHead(status, { ...fields, 'content-length': String(body.length) });
    response.write(body.subarray(0, Math.ceil(body.length / 2)), () => response.socket?.destroy());
  }
}
