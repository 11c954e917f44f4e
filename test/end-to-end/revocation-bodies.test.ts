import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { exchangeRaw, openRawConnection } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

/** A shop that answers every refresh with a new pair, and revocations with the response in `revocation`. It keeps no state. */
let revocation = answer('');
let pairs = 0;
let upstream: RecordingUpstream;
let shopward: RunningShopward;
let off: RunningShopward;

const form = 'Content-Type: application/x-www-form-urlencoded;charset=UTF-8';
const json = 'Content-Type: application/json';

beforeAll(async () => {
  upstream = await startRecordingUpstream(
    ({ head }) => {
      if (!head.startsWith('POST /token ')) return revocation;
      pairs += 1;
      const pair = {
        access_token: 'a',
        token_type: 'Bearer',
        refresh_token: `next-${'x'.repeat(20)}${pairs}`,
      };
      return answer(JSON.stringify(pair), `${json}\r\n`);
    },
    { answersWhole: true },
  );
  const url = `http://127.0.0.1:${upstream.port}`;
  shopward = await startShopwardHere({
    upstream: url,
    rows: ['GET /secret'],
    config: {
      refreshTokens: {
        endpoints: [
          { kind: 'issue', method: 'POST', path: '/token', format: 'form' },
          { kind: 'exchange', method: 'POST', path: '/token', format: 'form' },
          { kind: 'revoke', method: 'POST', path: '/token/revocation', format: 'form' },
          { kind: 'revoke', method: 'POST', path: '/auth/logout' },
        ],
      },
    },
  });
  off = await startShopwardHere({ upstream: url, rows: ['GET /secret'] });
});
afterAll(async () => {
  await shopward?.stop();
  await off?.stop();
  await upstream?.close();
});

let tokens = 0;
let token = '';
beforeEach(() => {
  revocation = answer('');
  tokens += 1;
  token = `kH0n2Q7xVb9sYt4LmPz1RgkH0n2Q7xVb9sYt4LmPz${String(tokens).padStart(3, '0')}aB`;
});

const asked = () => upstream.requestLines.length;

async function send(path: string, body: string | Buffer, fields: readonly string[] = [form], one = shopward) {
  const octets = Buffer.from(body);
  const lines = [`POST ${path} HTTP/1.1`, 'Host: s', 'Connection: close', ...fields];
  const head = `${lines.join('\r\n')}\r\nContent-Length: ${octets.length}\r\n\r\n`;
  return exchangeRaw(one.port, Buffer.concat([Buffer.from(head), octets]));
}

const refresh = (one: RunningShopward = shopward) =>
  send('/token', `grant_type=refresh_token&refresh_token=${token}`, [form], one);

/** Refreshes with the token, and checks that it is refused without asking the shop, or forwarded. */
async function expectEnded(isEnded: boolean): Promise<void> {
  const before = asked();
  const { status, body } = await refresh();
  if (!isEnded) expect([status, asked()]).toEqual([200, before + 1]);
  else {
    expect([status, JSON.parse(String(body)).error, asked()]).toEqual([400, 'invalid_grant', before]);
  }
}

const plain: readonly (readonly [title: string, body: string])[] = [
  ['RFC 7009', 'token=<token>&token_type_hint=refresh_token'],
  ['with a hint that is wrong', 'token_type_hint=access_token&token=<token>'],
  ['with the credentials of its client', 'client_id=a&client_secret=b&token=<token>'],
  ['with `grant_type`, which RFC 7009 does not define', 'grant_type=password&token=<token>'],
  ['an escape in the name', 'to%6ben=<token>'],
  ['JSON', '{"refreshToken":"<token>"}'],
  ['deep in JSON', '{"a":[{"session":{"refreshToken":"<token>"}}],"all":true}'],
];

/** Body, fields and query of a request that servers may read in different ways. */
type Unclear = readonly [title: string, body: string, fields: string[], query?: string];

async function expectRefused(expected: number, [, body, fields, query = '']: Unclear): Promise<void> {
  const before = asked();
  const path = `/token/revocation${query}`;
  const { status, body: said } = await send(path, body.replaceAll('<token>', token), fields);
  expect([status, JSON.parse(String(said)).error, asked()]).toEqual([expected, 'invalid_request', before]);
  await expectEnded(false);
}

describe('revocation by a body', () => {
  it.each(plain)('%s: forwarded byte for byte, then the token is refused', async (_, text) => {
    const body = text.replace('<token>', token);
    const [path, fields] = body.startsWith('{') ? ['/auth/logout', [json]] : ['/token/revocation', [form]];
    const before = asked();
    expect((await send(path, body, fields)).status).toBe(200);
    expect(asked()).toBe(before + 1);
    expect(upstream.connections.some((one) => one.received().includes(`\r\n\r\n${body}`))).toBe(true);
    await expectEnded(true);
    // A second revocation is forwarded too; RFC 7009 allows it.
    expect((await send(path, body, fields)).status).toBe(200);
    await expectEnded(true);
  });

  it('a refresh reaches the shop byte for byte, too', async () => {
    const body = `x=%c3%A9+%7e&grant_type=refresh_token&y=&refresh_token=${token}&z=%2f`;
    expect((await send('/token', body)).status).toBe(200);
    expect(upstream.connections.some((one) => one.received().endsWith(`\r\n\r\n${body}`))).toBe(true);
  });

  it('a revoked successor of an issued token is refused, and so is the used first one', async () => {
    const issued = JSON.parse(
      String((await send('/token', 'grant_type=password&username=u&password=p')).body),
    );
    const first = String(issued.refresh_token);
    token = first;
    const next = JSON.parse(String((await refresh()).body)).refresh_token as string;
    expect((await send('/token/revocation', `token=${next}`)).status).toBe(200);
    token = next;
    await expectEnded(true);
    token = first;
    await expectEnded(true);
  });

  it.each([
    ['400 Bad Request', false],
    ['401 Unauthorized', false],
    ['403 Forbidden', false],
    ['408 Request Timeout', true],
    ['200 OK', true],
    ['204 No Content', true],
    ['302 Found', true],
    ['503 Service Unavailable', true],
  ])('a revocation that the shop answers with %s ends the token: %s', async (status, isEnded) => {
    revocation = status.startsWith('204') ? 'HTTP/1.1 204 No Content\r\n\r\n' : answer('', '', status);
    await send('/token/revocation', `token=${token}`);
    await expectEnded(isEnded);
  });

  it('502 if the shop cannot be reached', async () => {
    revocation = '';
    const dead = await startShopwardHere({
      upstream: 'http://127.0.0.1:1',
      rows: ['GET /secret'],
      config: {
        refreshTokens: { endpoints: [{ kind: 'revoke', method: 'POST', path: '/revoke', format: 'form' }] },
      },
    });
    expect((await send('/revoke', `token=${token}`, [form], dead)).status).toBe(502);
    await dead.stop();
  });

  it.for<Unclear>([
    ['the field twice', 'token=<token>&token=x', [form]],
    ['in the query as well', 'token=<token>', [form], '?token=x'],
    ['with a bracket', 'token[=<token>', [form]],
    ['in capitals', 'TOKEN=<token>', [form]],
    ['not text', '{"token":["<token>"]}', [json]],
    ['twice in JSON', '{"token":"<token>","token":"x"}', [json]],
    ['odd characters', 'token=<token>%20x', [form]],
    ['one token to revoke, another to refresh', 'token=<token>&refresh_token=another<token>', [form]],
  ])('%s: 400, the shop is not asked', (row) => expectRefused(400, row));

  it.for<Unclear>([
    ['under a content coding', 'token=<token>', [form, 'Content-Encoding: gzip']],
    ['under the coding `identity`', 'token=<token>', [form, 'Content-Encoding: identity']],
    ['in another charset', 'token=<token>', [form.replace('UTF-8', 'utf-16')]],
    ['without a type', 'token=<token>', []],
    ['of another type', 'token=<token>', ['Content-Type: text/plain']],
  ])('%s: 415, the shop is not asked', (row) => expectRefused(415, row));

  it.each(['PUT', 'PATCH', 'DELETE'])(
    'by %s: the token ends if the shop answers 200, and does not if it answers 405',
    async (method) => {
      const sendBy = () => {
        const body = `token=${token}`;
        const fields = ['Host: s', 'Connection: close', form, `Content-Length: ${body.length}`];
        const lines = [`${method} /token/revocation HTTP/1.1`, ...fields, '', body];
        return exchangeRaw(shopward.port, lines.join('\r\n'));
      };
      revocation = answer('', '', '405 Method Not Allowed');
      expect((await sendBy()).status).toBe(405);
      await expectEnded(false);
      token += 'x';
      revocation = answer('');
      expect((await sendBy()).status).toBe(200);
      await expectEnded(true);
    },
  );

  it.each(['GET', 'POST', 'DELETE'])('by %s, in the query: 400, the shop is not asked', async (method) => {
    const before = asked();
    const lines = [
      `${method} /token/revocation?token=${token} HTTP/1.1`,
      ...['Host: s', 'Connection: close', 'Content-Length: 0', '', ''],
    ];
    expect((await exchangeRaw(shopward.port, lines.join('\r\n'))).status).toBe(400);
    expect(asked()).toBe(before);
    await expectEnded(false);
  });

  it('a body without a token is forwarded; a long body is refused', async () => {
    expect((await send('/token/revocation', 'client_id=a')).status).toBe(200);
    const before = asked();
    expect((await send('/token/revocation', `token=${token}&a=${'x'.repeat(140_000)}`)).status).toBe(413);
    expect((await send('/token/revocation', `token=${token}&a=${'x'.repeat(70_000)}`)).status).toBe(400);
    expect(asked()).toBe(before);
  });

  it('a chunked body revokes its token wherever the chunks are cut', async () => {
    const body = `token=${token}`;
    const connection = await openRawConnection(shopward.port);
    for (let at = 1; at < body.length; at += 1) {
      const head = `POST /token/revocation HTTP/1.1\r\nHost: s\r\n${form}\r\nTransfer-Encoding: chunked\r\n\r\n`;
      await connection.write(`${head}${at.toString(16)}\r\n${body.slice(0, at)}`);
      await connection.write(`\r\n${(body.length - at).toString(16)}\r\n${body.slice(at)}\r\n0\r\n\r\n`);
      expect((await connection.readResponse('POST')).status).toBe(200);
    }
    connection.close();
    expect(upstream.bytes().split(`\r\n\r\n${body}`).length).toBe(body.length);
    await expectEnded(true);
  });

  it('the token does not appear in log, metrics and console', async () => {
    await send('/token/revocation', `token=${token}`);
    await send(`/token/revocation?token=${token}`, '');
    await shopward.waitForLog(({ event }) => event === 'request');
    const pages = ['/metrics', '/api/state', '/api/decisions/search', '/api/system'];
    const told = await Promise.all(pages.map(async (page) => (await fetch(shopward.adminUrl + page)).text()));
    expect(shopward.output() + told.join('')).not.toContain(token);
  });

  it('without a revocation endpoint the body is streamed, and the token stays valid', async () => {
    const connection = await openRawConnection(off.port);
    const head = `POST /oauth/revoke HTTP/1.1\r\nHost: s\r\n${form}\r\nContent-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const before = upstream.connections.length;
    await connection.write(`${head}6\r\ntoken=\r\n`);
    await expect
      .poll(() => upstream.connections.slice(before).some((one) => one.received().includes('token=')))
      .toBe(true);
    connection.close();
    await send('/oauth/revoke', `token=${token}`, [form], off);
    expect((await refresh(off)).status).toBe(200);
  });
});
