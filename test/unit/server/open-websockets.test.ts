import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, type TestContext } from 'vitest';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { openRawConnection } from '../../harness/raw-client.ts';
import { answer, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { listOf, startShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';

const accepted =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n';

const get = (target: string, ...fields: string[]) =>
  `${[`GET ${target} HTTP/1.1`, 'Host: s', ...fields].join('\r\n')}\r\n\r\n`;
const upgrade = [
  ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

async function openHandshake(port: number, after = '') {
  const client = await openRawConnection(port);
  await client.write(`${get('/open', ...upgrade)}${after}`);
  return client;
}

/** A Close frame of a server with a status code (RFC 6455 section 5.5.1). */
const closeFrame = (code: number) => Buffer.from([0x88, 2, code >> 8, code & 0xff]).toString('latin1');

const rows = [
  'GET /events/{id}',
  { match: 'GET /seats', tokenIn: ['cookie:sid', 'query:at', 'subprotocol:at'] },
];

async function start(
  context: TestContext,
  config: object = {},
  answerOf: () => string | Promise<string> = () => accepted,
) {
  const open = closingAtEnd(context);
  const upstream = open(await startRecordingUpstream(async () => Buffer.from(await answerOf(), 'latin1')));
  const shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { upstream: { webSocket: true }, ...config },
    rows,
  });
  open({ close: () => shopward.stop() });
  const token = (claims?: object) => `Authorization: Bearer ${shopward.issueToken(claims)}`;
  /** Opens a WebSocket; returns the client's and the shop's side. */
  const join = async (target: string, ...fields: string[]) => {
    const client = await openRawConnection(shopward.port);
    await client.write(get(target, ...upgrade, ...fields));
    const { status } = await client.readResponse();
    return { client, status, shop: upstream.connections.at(-1) };
  };
  const edit = async (rows: readonly (string | object)[]) => {
    await writeFile(shopward.listFile, listOf(rows));
    await shopward.waitForLog(({ event }) => event === 'list-reloaded');
  };
  return { upstream, shopward, token, join, edit };
}

/** Bytes that the client reads until the end; opcode and code of the last frame that the shop reads. */
async function endsOf({ client, shop }: Awaited<ReturnType<Awaited<ReturnType<typeof start>>['join']>>) {
  const read = (await client.readAll()).toString('latin1');
  await shop?.closed;
  const octets = Buffer.from(shop?.received() ?? '', 'latin1').subarray(-8);
  const code = ((octets[6] ?? 0) ^ (octets[2] ?? 0)) * 256 + ((octets[7] ?? 0) ^ (octets[3] ?? 0));
  return { read, shop: [octets[0], octets[1], code] };
}

describe.concurrent('an open WebSocket', () => {
  it.for<[string, (string | object)[], string, string]>([
    ['an open path that now needs a token', ['GET /open'], '/open', 'none'],
    ['other scopes', [{ match: 'GET /events/{id}', scopes: ['other'] }], '/events/1', 'token'],
  ])('ends with 1008 after an edit of the list: %s', async ([, rows, target, sent], context) => {
    const { token, join, edit } = await start(context);
    const joined = await join(target, ...(sent === 'token' ? [token()] : []));
    expect(joined.status).toBe(101);
    await edit([...rows, 'GET /elsewhere']);
    expect(await endsOf(joined)).toEqual({ read: closeFrame(1008), shop: [0x88, 0x82, 1008] });
  });

  it.for([
    ['an edit of the list', 1008],
    ['a drain that has begun', 1001],
  ] as const)('ends at once if its handshake is accepted after %s', async ([what, code], context) => {
    const accept = Promise.withResolvers<string>();
    const { edit, shopward, upstream } = await start(
      context,
      { listen: { drainDelay: '0s' } },
      () => accept.promise,
    );
    const client = await openHandshake(shopward.port);
    await expect.poll(() => upstream.requestLines.length).toBe(1);
    const stopped = code === 1001 ? shopward.stop() : edit(['GET /open']);
    // A drain cuts connections that wait for a request after 5 s, but no handshake.
    await (code === 1001 ? sleep(5_500) : stopped);
    accept.resolve(accepted);
    expect((await client.readResponse()).status, what).toBe(101);
    expect((await client.readAll()).toString('latin1')).toBe(closeFrame(code));
    await stopped;
  });

  // A check needs the token where the client sent it, although the shop may not get it.
  it('stays open after an edit of other rows, wherever its token was', async (context) => {
    const auth = { forward: { subject: 'X-User' }, forwardAuthorization: false };
    const { token, join, edit } = await start(context, { auth });
    const bare = token().slice('Authorization: Bearer '.length);
    const joined = [
      await join('/events/1', token()),
      await join('/open'),
      await join('/seats', `Cookie: sid=${bare}`, 'Origin: http://s'),
      await join(`/seats?at=${bare}`),
      await join('/seats', `Sec-WebSocket-Protocol: at, ${bare}`),
    ];
    await edit([...rows, 'GET /orders']);
    for (const { client, shop } of joined) {
      shop?.socket.write('\x81\x02ok', 'latin1');
      await expect.poll(() => client.pending().toString('latin1')).toBe('\x81\x02ok');
      client.close();
    }
  });

  it('gets the Close frame after the current frame, or none if that frame does not end', async (context) => {
    const { join, edit } = await start(context);
    const whole = await join('/open');
    whole.shop?.socket.write('\x82\x05he', 'latin1');
    await expect.poll(() => whole.client.pending().length).toBe(4);
    const stuck = await join('/open');
    stuck.shop?.socket.write('\x82\x05he', 'latin1');
    await expect.poll(() => stuck.client.pending().length).toBe(4);
    await edit(['GET /open']);
    whole.shop?.socket.write('llo\x81\x04late', 'latin1');
    expect((await endsOf(whole)).read).toBe(`\x82\x05hello${closeFrame(1008)}`);
    expect((await endsOf(stuck)).read).toBe('\x82\x05he');
  });
});

/** For a GET and for a handshake: an answer that is not valid HTTP is not relayed. */
const hello = 'Content-Length: 2\r\n\r\nok';
const refusedAnswers: readonly (readonly [string, string])[] = [
  ['a status below 100', `HTTP/1.1 099 Odd\r\n${hello}`],
  ['a status above 599', `HTTP/1.1 600 Odd\r\n${hello}`],
  ['no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['101 without Upgrade', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n'],
  ['101 without Connection', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n'],
  ['101 for h2c', accepted.replace('websocket', 'h2c')],
  ['101 for two protocols', accepted.replace('websocket', 'h2c, websocket')],
  ['101 with two Upgrade fields', accepted.replace('Upgrade: w', 'Upgrade: h2c\r\nUpgrade: w')],
  ['a bare LF', `HTTP/1.1 200 OK\nX: y\r\n${hello}`],
  ['a folded line', `HTTP/1.1 200 OK\r\nX: y\r\n z\r\n${hello}`],
  ['two codings', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n${hello}`],
  ['a length beside a coding', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n${hello}`],
  ['600 interim responses', `${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(600)}HTTP/1.1 200 OK\r\n${hello}`],
  ['fields of 100 KB', `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(100_000)}\r\n${hello}`],
];

describe.concurrent('an invalid answer', () => {
  it.for(refusedAnswers)('%s is 502 for a GET and for a handshake', async ([, bytes], context) => {
    const { shopward } = await start(context, {}, () => bytes);
    for (const fields of [[], upgrade]) {
      const client = await openRawConnection(shopward.port);
      await client.write(get('/open', ...fields));
      let response = await client.readResponse();
      while (response.status === 103) response = await client.readResponse();
      expect([response.status, response.field('x-request-id')]).toEqual([502, expect.any(String)]);
      client.close();
    }
  });
});

const odd = 'X-Hop: 1\r\nX-Latin: caf\xe9\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Debug: 1\r\n\r\n';
const withOddFields = (bytes: string) =>
  bytes.replace('Connection: Upgrade', 'Connection: Upgrade, X-Hop').replace('\r\n\r\n', `\r\n${odd}`);

describe.concurrent('a handshake', () => {
  it.for([
    ['a 101', withOddFields(accepted), 101],
    ['a 403', withOddFields(answer('no', 'Connection: X-Hop\r\n', '403 Forbidden')), 403],
  ] as const)(
    '%s has the request id and the end-to-end fields, with unchanged octets',
    async ([, bytes, status], context) => {
      const { shopward } = await start(context, {}, () => bytes);
      const client = await openHandshake(shopward.port);
      let received = '';
      client.socket.on('data', (chunk: Buffer) => {
        received += chunk.toString('latin1');
      });
      const response = await client.readResponse();
      const { requestId } = await shopward.waitForLog(({ event }) => event === 'request');
      expect([response.status, response.field('x-request-id')]).toEqual([status, requestId]);
      expect(received).toMatch(/\r\nX-Latin: caf\xe9\r\n/);
      expect(received.match(/Set-Cookie: [ab]=[12]/g)).toHaveLength(2);
      expect(received).not.toMatch(/x-hop|x-debug/i);
      client.close();
    },
  );

  it('data sent together with the heads arrives on both sides', async (context) => {
    const { shopward, upstream } = await start(context, {}, () => `${accepted}\x81\x03yes`);
    const client = await openHandshake(shopward.port, '\x81\x80abcd');
    expect((await client.readResponse()).status).toBe(101);
    await upstream.connections[0]?.waitFor('\x81\x80abcd');
    await expect.poll(() => client.pending().toString('latin1')).toBe('\x81\x03yes');
    expect(upstream.bytes()).toMatch(/\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n/);
    client.close();
  });

  it.for([
    '204 No Content\r\n\r\n',
    '304 Not Modified\r\nContent-Length: 5\r\n\r\n',
    '403 Forbidden\r\nContent-Length: 2\r\n\r\nno',
    '426 Upgrade Required\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n',
  ])('declined by %j is relayed, and the connection ends', async (bytes, context) => {
    const { shopward } = await start(context, {}, () => `HTTP/1.1 ${bytes}`);
    const client = await openHandshake(shopward.port);
    const response = await client.readResponse();
    expect([response.status, response.field('connection')]).toEqual([Number(bytes.slice(0, 3)), 'close']);
    expect((await client.readAll()).toString()).toBe('');
  });

  it('declined by a long answer: it arrives whole, and surplus requests are ignored', async (context) => {
    const { shopward, upstream } = await start(context, {}, () =>
      answer('x'.repeat(2_000_000), '', '403 Forbidden'),
    );
    const client = await openRawConnection(shopward.port);
    client.socket.pause();
    void client.write(`${get('/open', ...upgrade)}${get('/second').repeat(100_000)}`).catch(() => {});
    await expect.poll(() => upstream.requestLines.length).toBe(1);
    await sleep(1_000);
    client.socket.resume();
    const { status, complete } = await client.readResponse();
    expect([status, complete]).toEqual([403, true]);
    await client.readAll();
    expect(upstream.requestLines).toEqual(['GET /open HTTP/1.1']);
  });

  it.for([
    ['is unreachable', { upstream: { webSocket: true, url: 'http://127.0.0.1:1' } }, 502],
    ['says nothing', { upstream: { webSocket: true, responseTimeout: '300ms' } }, 504],
  ] as const)('a shop that %s gets a refusal', async ([, config, status], context) => {
    const { shopward } = await start(context, config, () => '');
    const client = await openHandshake(shopward.port);
    expect((await client.readResponse()).status).toBe(status);
    await client.readAll();
  });

  it('beyond limits.inFlight gets 503, without a request to the shop', async (context) => {
    const { join, upstream } = await start(context, { limits: { inFlight: 1, clientShare: 100 } });
    const first = await join('/open');
    expect([first.status, (await join('/open')).status, upstream.connections.length]).toEqual([101, 503, 1]);
    first.client.close();
  });
});

it('SIGTERM: Close 1001, and the log says what the drain cut', async (context) => {
  const open = closingAtEnd(context);
  const upstream = open(
    await startRecordingUpstream(({ head }) => (/upgrade/i.test(head) ? accepted : new Promise(() => {}))),
  );
  const shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { upstream: { webSocket: true }, listen: { drainDelay: '0s' } },
  });
  open({ close: () => shopward.kill() });
  const client = await openHandshake(shopward.port);
  expect((await client.readResponse()).status).toBe(101);
  shopward.signal('SIGTERM');
  expect((await client.readAll()).toString('latin1')).toBe(closeFrame(1001));
  expect(await shopward.exited).toBe(0);
  expect(shopward.log().find(({ event }) => event === 'drained')).toMatchObject({
    webSockets: 1,
    requests: 0,
  });
});
