import { once } from 'node:events';
import { connect } from 'node:net';
import type { DemoShop } from '../../../demo/shop.ts';

export type Reply = {
  readonly status: number;
  readonly reason: string;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; `{}` if it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: JSON:API documents are walked by the tests that know them.
  readonly json: any;
};

export type Send = {
  readonly as?: string;
  readonly body?: object | string;
  readonly headers?: Record<string, string>;
};

/** Sends one request; `as` signs in with a token of that customer. */
export async function send(
  shop: DemoShop,
  line: string,
  { as, body, headers = {} }: Send = {},
): Promise<Reply> {
  const [method = 'GET', path = '/'] = line.split(' ');
  const token: Record<string, string> =
    as === undefined ? {} : { authorization: `Bearer ${await shop.issueTokenFor(as)}` };
  const type: Record<string, string> = typeof body === 'object' ? { 'content-type': 'application/json' } : {};
  const response = await fetch(shop.url + path, {
    method,
    headers: { ...type, ...token, ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  const { status, statusText: reason } = response;
  return { status, reason, headers: response.headers, text, json: isJson ? JSON.parse(text) : {} };
}

export function resource(type: string, attributes: object, id?: string): object {
  return { data: id === undefined ? { type, attributes } : { type, id, attributes } };
}

/** Sends bytes unchanged and reads until the shop closes. A client library would correct malformed requests. */
export async function sendRaw(shop: DemoShop, head: string, body = ''): Promise<string> {
  const socket = connect(shop.port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => {});
  socket.write(`${head}\r\nHost: shop.example\r\nConnection: close\r\n\r\n${body}`);
  await once(socket, 'close');
  return Buffer.concat(chunks).toString('utf8');
}

export function statusOf(raw: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(raw)?.[1] ?? 0);
}
