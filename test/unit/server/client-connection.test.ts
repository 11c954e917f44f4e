import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { heartbeats } from '../../../src/lib/per-tick.ts';
import { Listener } from '../../../src/server/listener.ts';
import { openRawConnection, type RawConnection } from '../../harness/raw-client.ts';

let listener: Listener;
let client: RawConnection;
/** Requests to `/delayed`, which wait for their answer. */
let delayed: (() => void)[] = [];
afterEach(async () => {
  client.close();
  await listener.drain({ graceMs: 0, withinMs: 0 });
});

/** Connects a client to a listener that answers with method, target and body, at the end of the body. */
async function start(): Promise<void> {
  delayed = [];
  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    if (incoming.headers.expect !== undefined) response.writeContinue();
    let body = '';
    for await (const chunk of incoming) body += chunk;
    const end = () => response.end(`${incoming.method} ${incoming.url} ${body}`.trim());
    if (incoming.url?.startsWith('/delayed')) delayed.push(end);
    else end();
  };
  listener = new Listener({
    ...{ host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 61_000, requestHeadersBytes: 16_384 },
    rejectMalformed: (why, socket) => {
      const body = `refused ${why}`;
      socket.end(`HTTP/1.1 400 Bad Request\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    },
    handle: (incoming, response) => {
      answer(incoming, response).catch(() => {});
      return undefined;
    },
    handleUpgrade: (_incoming, socket) => void socket.end('an upgrade'),
  });
  client = await openRawConnection((await listener.listen()).port);
}

const get = (target: string) => `GET ${target} HTTP/1.1\r\nHost: s\r\n\r\n`;
const range = (count: number) => Array.from({ length: count }, (_, i) => i);

/** Bodies of the next answers; `, close` if the connection closes. */
async function answers(methods: readonly string[]) {
  const all: string[] = [];
  for (const method of methods) {
    const response = await client.readResponse(method);
    if (response.status === 100) all.push('100');
    else all.push(`${response.body}${response.field('connection') === 'close' ? ', close' : ''}`.trim());
  }
  return all;
}

it('the connection closes after the fourth request if those waiting have more than 512 fields', async () => {
  await start();
  const wide = `GET /wide HTTP/1.1\r\nHost: s\r\n${'A: b\r\n'.repeat(199)}\r\n`;
  await client.write(get('/delayed') + wide.repeat(5));
  await expect.poll(() => delayed.length).toBe(1);
  delayed.pop()?.();
  expect(await answers(range(4).map(() => 'GET'))).toEqual([
    'GET /delayed',
    ...['GET /wide', 'GET /wide', 'GET /wide, close'],
  ]);
});

it('nothing is read while a request waits, and reading resumes after its answer', async () => {
  await start();
  const accepted = once(listener.server, 'request') as Promise<[IncomingMessage]>;
  await client.write(get('/delayed'));
  const [{ socket }] = await accepted;
  await client.write(get('/a'));
  await expect.poll(() => socket.bytesRead).toBe(get('/delayed').length + get('/a').length);
  const read = socket.bytesRead;
  for (const i of range(200)) await client.write(get(`/${i}`));
  expect(socket.bytesRead).toBe(read);
  delayed.pop()?.();
  expect(await answers(['GET', 'GET'])).toEqual(['GET /delayed', 'GET /a']);
});

const post = (target: string, body: string) =>
  `POST ${target} HTTP/1.1\r\nHost: s\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const chunked = (target: string, body: string) =>
  `POST ${target} HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const upgrade = 'GET /ws HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const expecting = 'POST /e HTTP/1.1\r\nHost: s\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi';
const head = (target: string) => get(target).replace('GET', 'HEAD');
const closed = 'refused bad-request';

it.each<[string, string, readonly string[], readonly string[]]>([
  [
    'bodies',
    post('/a', get('/x')) + chunked('/b', get('/y')) + get('/c'),
    ['POST', 'POST', 'GET'],
    [`POST /a ${get('/x').trim()}`, `POST /b ${get('/y').trim()}`, 'GET /c'],
  ],
  ['HEAD', get('/a') + head('/b') + get('/c'), ['GET', 'HEAD', 'GET'], ['GET /a', '', 'GET /c']],
  [
    'Expect',
    get('/a') + expecting + get('/c'),
    ['GET', 'POST', 'POST', 'GET'],
    ['GET /a', '100', 'POST /e hi', 'GET /c'],
  ],
  [
    'an upgrade',
    get('/a') + get('/b') + upgrade + get('/c'),
    ['GET', 'GET', 'GET'],
    ['GET /a', 'GET /b', closed],
  ],
  [
    'octets that are no request',
    `${get('/a')}${get('/b')}nonsense\r\n\r\n`,
    ['GET', 'GET', 'GET'],
    ['GET /a', 'GET /b', 'refused method-not-allowed'],
  ],
  [
    'a body that breaks',
    `${get('/a')}${chunked('/b', 'hi').replace('2\r\n', 'x\r\n')}`,
    ['GET', 'POST'],
    ['GET /a', closed],
  ],
  [
    '18 requests and nonsense',
    `${range(18)
      .map((i) => get(`/${i}`))
      .join('')}nonsense`,
    range(17).map(() => 'GET'),
    [...range(16).map((i) => `GET /${i}`), 'GET /16, close'],
  ],
])('a pipeline with %s, in one segment and octet by octet', async (_, octets, methods, expected) => {
  await start();
  await client.write(octets);
  expect(await answers(methods)).toEqual(expected);
  // Octet by octet, each request is answered before the next: the upgrade is accepted, and the 18th request has room.
  if (octets.includes('Upgrade') || expected.length === 17) return;
  client.close();
  await listener.drain({ graceMs: 0, withinMs: 0 });
  await start();
  for (const octet of octets) await client.write(octet);
  expect(await answers(methods)).toEqual(expected);
});

it('the body of the last request that may wait is read after the earlier answers', async () => {
  await start();
  const body = 'b'.repeat(200_000);
  const octets =
    get('/delayed') +
    range(15)
      .map((i) => get(`/${i}`))
      .join('') +
    post('/last', body) +
    get('/beyond');
  const written = client.write(octets);
  await expect.poll(() => delayed.length).toBe(1);
  delayed.pop()?.();
  expect(await answers([...range(16).map(() => 'GET'), 'POST', 'GET'])).toEqual([
    'GET /delayed',
    ...range(15).map((i) => `GET /${i}`),
    `POST /last ${body}`,
    'GET /beyond',
  ]);
  await written;
});

it('fields that arrive slowly behind waiting requests are read later', async () => {
  await start();
  await client.write(`${get('/delayed')}${get('/a')}GET /b HTTP/1.1\r\nHo`);
  await expect.poll(() => delayed.length).toBe(1);
  delayed.pop()?.();
  expect(await answers(['GET', 'GET'])).toEqual(['GET /delayed', 'GET /a']);
  await client.write('st: s\r\n\r\n');
  expect(await answers(['GET'])).toEqual(['GET /b']);
});

it('a drain marks only the last waiting answer with Connection: close', async () => {
  await start();
  await client.write(get('/delayed') + get('/a'));
  await expect.poll(() => delayed.length).toBe(1);
  const drained = listener.drain({ graceMs: 60_000, withinMs: 0 });
  delayed.pop()?.();
  expect(await answers(['GET', 'GET'])).toEqual(['GET /delayed', 'GET /a, close']);
  void drained;
});

it.each([
  ['requests', get('/a').repeat(17), 17],
  ['handshakes', upgrade, 1],
])(
  'at most 64 of the %s of 200 connections begin in a tick, and each counts as progress',
  async (_, octets, each) => {
    const all = 200 * each;
    let [begun, inTick, most] = [0, 0, 0];
    const done = Promise.withResolvers<void>();
    const nextTick = () => {
      inTick = 0;
      if (begun < all) setImmediate(nextTick);
    };
    const begin = () => {
      begun += 1;
      inTick += 1;
      most = Math.max(most, inTick);
      if (begun === all) done.resolve();
    };
    listener = new Listener({
      ...{ host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 61_000, requestHeadersBytes: 16_384 },
      rejectMalformed: (_why, socket) => void socket.destroy(),
      handle: (_incoming, response) => {
        begin();
        response.end();
        return undefined;
      },
      handleUpgrade: (_incoming, socket) => {
        begin();
        socket.destroy();
      },
    });
    let accepted = 0;
    listener.server.on('connection', () => {
      accepted += 1;
    });
    const { port } = await listener.listen();
    const clients = await Promise.all(range(200).map(() => openRawConnection(port)));
    await expect.poll(() => accepted).toBe(200);
    client = clients[0] as RawConnection;
    nextTick();
    const before = Number(heartbeats[0]);
    await Promise.all(clients.map((one) => one.write(octets)));
    await done.promise;
    for (const one of clients) one.close();
    expect(most).toBe(64);
    expect(Number(heartbeats[0]) - before).toBeGreaterThanOrEqual(all);
  },
);
