import { createHash } from 'node:crypto';
import http from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { listen } from '../harness/listen.ts';
import { openRawConnection } from '../harness/raw-client.ts';
import type { LogLine, RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { jktOf, makeProof, withProof } from '../unit/access/dpop.ts';
import { makeSigner } from '../unit/access/signing.ts';

/** An upstream that answers the handshake of RFC 6455 and echoes all later bytes. */
const seen: string[] = [];
const upstream = http.createServer((_, response) => response.end('plain'));
upstream.on('upgrade', (request, socket) => {
  seen.push(`${request.method} ${request.url}`);
  if (request.url === '/refused') {
    const chunks = '1\r\na\r\n'.repeat(60_000);
    socket.end(`HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
    return;
  }
  const accept = createHash('sha1')
    .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  socket.pipe(socket);
});

let shopward: RunningShopward;
let closeUpstream: () => Promise<void>;
beforeAll(async () => {
  const { url, close } = await listen(upstream);
  closeUpstream = close;
  shopward = await startShopwardHere({
    upstream: url,
    config: {
      upstream: { webSocket: true },
      auth: { proof: 'dpop' },
      rateLimits: {
        tokenEndpoints: false,
        rows: [{ method: 'GET', path: '/limited', requests: 1, per: '1h', mode: 'enforce' }],
      },
    },
    rows: ['GET /events/{id}', { match: 'GET /tried', observe: true }],
  });
});
beforeEach(() => void seen.splice(0));
afterAll(async () => {
  await shopward.stop();
  await closeUpstream();
});

const handshake = (target: string, more = '', upgrade = 'websocket', method = 'GET') =>
  `${method} ${target} HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n` +
  `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${more}\r\n`;

async function shake(bytes: string, method?: string) {
  const connection = await openRawConnection(shopward.port);
  await connection.write(bytes);
  return { connection, answer: await connection.readResponse(method) };
}

test('101 for an open route, and bytes go both ways', async () => {
  const { connection, answer } = await shake(handshake('/open'));
  expect([answer.status, answer.field('sec-websocket-accept')]).toEqual([
    101,
    's3pPLMBiTxaQ9kYGzzhZRbK+xOo=',
  ]);
  await connection.write('\x81\x05hello');
  await expect.poll(() => connection.pending().toString('latin1')).toBe('\x81\x05hello');
  expect(seen).toEqual(['GET /open']);
  connection.close();
});

test('an answer instead of 101 arrives whole, in 60,000 chunks of one octet', async () => {
  const { connection, answer } = await shake(handshake('/refused'));
  expect([answer.status, answer.body.length]).toEqual([400, 60_000]);
  connection.close();
});

test.each([
  ['without a token', '', '002'],
  ['with an invalid token', 'Authorization: Bearer abc\r\n', '001'],
])('a protected row %s is refused, and the upstream gets no handshake', async (_, more, code) => {
  const { connection, answer } = await shake(handshake('/events/1', more));
  expect(answer.status).toBe(401);
  expect(answer.field('www-authenticate')).toContain('Bearer');
  expect(JSON.parse(answer.body.toString()).errors[0].code).toBe(code);
  expect(seen).toEqual([]);
  connection.close();
});

test('a WebSocket stays open after its proof was used, and a second handshake with this proof is refused', async () => {
  const signer = makeSigner('ES256');
  const token = shopward.issueToken({ cnf: await jktOf(signer) });
  const proof = makeProof(signer, token, { claims: { htu: 'http://shop/events/1' } });
  const bytes = handshake('/events/1', `${withProof(token, proof).join('\r\n')}\r\n`);
  const { connection, answer } = await shake(bytes);
  expect(answer.status).toBe(101);
  const again = await shake(bytes);
  expect(again.answer.status).toBe(401);
  again.connection.close();
  await connection.write('\x81\x05hello');
  await expect.poll(() => connection.pending().toString('latin1')).toBe('\x81\x05hello');
  connection.close();
});

test('a rate-limited handshake has RateLimit fields, and gets 429 above the limit', async () => {
  for (const status of [101, 429]) {
    const { connection, answer } = await shake(handshake('/limited'));
    expect([answer.status, answer.field('ratelimit-policy')]).toEqual([status, '"GET /limited";q=1;w=3600']);
    expect(answer.field('ratelimit')).toMatch(/^"GET \/limited";r=0;t=3\d{3}$/);
    connection.close();
  }
  expect(seen).toEqual(['GET /limited']);
});

test.each([
  ['a dot segment', handshake('/open/../events/1'), 400],
  ['two Host fields', handshake('/open', 'Host: other\r\n'), 400],
])('400 for a handshake with %s', async (_, bytes, status) => {
  const { connection, answer } = await shake(bytes);
  expect(answer.status).toBe(status);
  expect(seen).toEqual([]);
  connection.close();
});

test.each([
  ['another protocol', handshake('/open', '', 'h2c')],
  ['another method', handshake('/open', 'Content-Length: 0\r\n', 'websocket', 'POST')],
  ['HTTP/1.0', handshake('/open').replace('HTTP/1.1', 'HTTP/1.0')],
])('a handshake with %s is forwarded as an ordinary request', async (_, bytes) => {
  const { connection, answer } = await shake(bytes);
  expect([answer.status, answer.body.toString()]).toEqual([200, 'plain']);
  expect(seen).toEqual([]);
  connection.close();
});

test.each([
  [
    'accepted',
    handshake('/open', 'X-Request-Id: none\r\n'),
    { decision: 'forwarded', status: 101, path: '/open' },
  ],
  [
    'without a token',
    handshake('/events/2'),
    { decision: 'refused', status: 401, route: '/events/{id}', rejection: 'access-token-missing' },
  ],
  [
    'with a malformed target',
    handshake('/open/../x'),
    { decision: 'refused', status: 400, rejection: 'bad-request-target' },
  ],
  [
    'for a page of shopward',
    handshake('/protected-resources'),
    { decision: 'answered', status: 200, route: '/protected-resources' },
  ],
  [
    'for the resolver, without a url',
    handshake('/url-resolver'),
    { decision: 'refused', status: 422, route: '/url-resolver' },
  ],
])('one log line for a handshake: %s', async (_, bytes, line) => {
  const isWanted = (one: LogLine) => Object.entries(line).every(([key, value]) => one[key] === value);
  const before = shopward.log().filter(isWanted).length;
  const { connection, answer } = await shake(bytes);
  expect(answer.status).toBe(line.status);
  connection.close();
  await shopward.waitForLog((one) => isWanted(one) && shopward.log().filter(isWanted).length > before);
  expect(shopward.log().filter(isWanted)).toHaveLength(before + 1);
});

test('a handshake for a page of shopward gets the page, and the upstream no request', async () => {
  const { connection, answer } = await shake(handshake('/protected-resources'));
  expect(JSON.parse(answer.body.toString()).data).toMatchObject([{ id: 'GET /events/{id}' }, {}]);
  expect([answer.field('connection'), answer.field('x-request-id')]).toEqual(['close', expect.any(String)]);
  expect(seen).toEqual([]);
  connection.close();
});

test('400 for a handshake with a refresh token, and the upstream gets no request', async () => {
  const { connection, answer } = await shake(handshake('/refresh-tokens?refreshToken=abc'));
  expect([answer.status, JSON.parse(answer.body.toString()).errors[0].code]).toEqual([400, 'bad-request']);
  expect(seen).toEqual([]);
  connection.close();
});

test('a socket ends when the token that opened it expires, if its row enforces one', async () => {
  const exp = Math.floor(Date.now() / 1000) + 3;
  const join = (target: string, claims = {}) =>
    shake(handshake(target, `Authorization: Bearer ${shopward.issueToken(claims)}\r\n`));
  const observed = await join('/tried', { exp });
  const [short, long] = [await join('/events/1', { exp }), await join('/events/1')];
  expect([observed, short, long].map(({ answer }) => answer.status)).toEqual([101, 101, 101]);
  expect(seen).toEqual(['GET /tried', 'GET /events/1', 'GET /events/1']);
  // A Close frame with 1008.
  expect((await short.connection.readAll()).toString('latin1')).toBe('\x88\x02\x03\xf0');
  expect(Date.now()).toBeGreaterThanOrEqual(exp * 1000);
  for (const { connection } of [observed, long]) {
    await connection.write('\x81\x02ok');
    await expect.poll(() => connection.pending().toString('latin1')).toBe('\x81\x02ok');
    connection.close();
  }
});

test.each([
  ['a length', 'Content-Length: 2\r\n', 'hi'],
  ['chunks', 'Transfer-Encoding: chunked\r\n', '2\r\nhi\r\n0\r\n\r\n'],
])('a handshake with a body (%s) is refused', async (_, framing, body) => {
  const { connection, answer } = await shake(handshake('/open', framing) + body);
  expect([answer.status, JSON.parse(answer.body.toString()).errors[0].code]).toEqual([
    400,
    'unexpected-body',
  ]);
  expect(seen).toEqual([]);
  connection.close();
});
