import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { ShopSettings } from '../settings.ts';
import type { Answer, ResourceCall } from './call.ts';
import { writeDocument } from './document.ts';
import { contentLanguages } from './locale.ts';
import { phpJson } from './php-json.ts';
import { PlainRefusal, ShopError } from './shop-error.ts';

/** An answer as bytes: what a cut connection cuts. */
export type Written = {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

const jsonApi = 'application/vnd.api+json';

export function writeResult(answer: Answer, call: ResourceCall, path: string): Written {
  const fields = { 'content-language': contentLanguages[call.locale], ...answer.fields };
  if (answer.plain !== undefined) {
    const { contentType, body } = answer.plain;
    return written(answer.status, { ...fields, 'content-type': contentType }, body);
  }
  if (answer.data === undefined) return written(answer.status, fields, '');
  const document = writeDocument(answer.data, { call, path });
  return written(answer.status, { ...fields, 'content-type': jsonApi }, toJson(document, call.settings));
}

/** Anything that is no refusal is a bug of the shop, and reads as one. */
export function writeFailure(error: unknown, settings: ShopSettings): Written {
  if (error instanceof PlainRefusal) return writePlain(error.status, error.message);
  if (!(error instanceof ShopError)) return writePlain(500, 'Internal Server Error');
  const challenge =
    error.status === 401
      ? { 'www-authenticate': 'Bearer realm="Access to shop API"' }
      : ({} as Record<string, string>);
  return written(
    error.status,
    { 'content-type': jsonApi, ...challenge },
    toJson({ errors: error.errors }, settings),
  );
}

export function writePlain(status: number, text: string): Written {
  const close = status === 413 ? { connection: 'close' } : {};
  return written(status, { 'content-type': 'text/html; charset=UTF-8', ...close }, text);
}

export function writeJson(status: number, value: unknown): Written {
  return written(status, { 'content-type': 'application/json' }, JSON.stringify(value));
}

/** A real shop says `Unprocessable Content`; not every version of Node does. */
export function sendWritten(response: ServerResponse, answer: Written): void {
  const reason = answer.status === 422 ? 'Unprocessable Content' : (STATUS_CODES[answer.status] ?? 'Unknown');
  const isBodiless = answer.status === 204 || answer.status === 304;
  const length = isBodiless ? {} : { 'content-length': String(answer.body.length) };
  response.writeHead(answer.status, reason, { ...answer.fields, ...length });
  response.end(isBodiless ? undefined : answer.body);
}

function written(status: number, fields: Readonly<Record<string, string>>, body: string): Written {
  return {
    status,
    fields: { 'cache-control': 'no-cache, private', ...fields },
    body: Buffer.from(body, 'utf8'),
  };
}

function toJson(value: unknown, settings: ShopSettings): string {
  return settings.phpJson ? phpJson(value) : JSON.stringify(value);
}
