import { createHash } from 'node:crypto';
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib';
import { answer, type RecordedRequest } from '../../../harness/recording-upstream.ts';

const json = 'Content-Type: application/vnd.api+json\r\n';
const zeros = Buffer.alloc(64 * 1024 * 1024);
const gzipped = gzipSync(zeros);
/** Quality 4 takes much less time than the best, and compresses zeros as well. */
const brotli = brotliCompressSync(zeros, { params: { [zlib.BROTLI_PARAM_QUALITY]: 4 } });
const cart = (id: string) => JSON.stringify({ data: { type: 'carts', id, attributes: { name: 'a cart' } } });

/** Answers to `GET /carts/{name}` that exhaust a reader which decodes them without a limit, or that are malformed. */
const bombs: Readonly<Record<string, { coding: string; body: Buffer }>> = {
  'bomb-gzip': { coding: 'gzip', body: gzipped },
  'bomb-brotli': { coding: 'br', body: brotli },
  'bomb-twice': { coding: 'gzip, gzip', body: gzipSync(gzipped) },
  'bomb-members': { coding: 'gzip', body: Buffer.concat(Array.from({ length: 8 }, () => gzipped)) },
  'coding-lies': { coding: 'gzip', body: Buffer.from(cart('coding-lies')) },
  'coding-cut': { coding: 'gzip', body: gzipSync(cart('coding-cut')).subarray(0, -6) },
  'coding-unknown': { coding: 'x-unknown', body: Buffer.from(cart('coding-unknown')) },
  'coding-many': { coding: Array(40).fill('gzip').join(', '), body: gzipSync(cart('coding-many')) },
};

/** A shop that answers every request: a request that reaches it was not refused. */
export function answerAsShop({ head }: RecordedRequest): string | Buffer {
  const [method = '', target = ''] = head.split(' ', 2);
  const [path = ''] = target.split('?', 1);
  if (method === 'HEAD') return answer('', json);
  if (path === '/url-resolver') return resolve(target);
  const [, id] = /^\/carts\/([\w-]+)$/.exec(path) ?? [];
  if (id === undefined) return answer('ok');
  const bomb = bombs[id];
  if (bomb !== undefined && method === 'GET') return withBody(bomb.body, bomb.coding);
  return method === 'DELETE' ? 'HTTP/1.1 204 No Content\r\n\r\n' : answer(cart(id), json);
}

/** Entity ids are derived from the URL, so that an answer for another URL is noticed. */
function resolve(target: string): string {
  const url = new URLSearchParams(target.slice(target.indexOf('?') + 1)).get('url') ?? '';
  if (url.includes('unknown')) {
    const error = { detail: 'Url not found.', status: 404, code: '2802' };
    return answer(JSON.stringify({ errors: [error] }), json, '404 Not Found');
  }
  const entityId = createHash('sha256').update(url).digest('hex').slice(0, 12);
  const attributes = { entityType: 'abstract-products', entityId };
  return answer(JSON.stringify({ data: [{ type: 'url-resolver', id: null, attributes }] }), json);
}

function withBody(body: Buffer, coding: string): Buffer {
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${json}Content-Encoding: ${coding}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}
