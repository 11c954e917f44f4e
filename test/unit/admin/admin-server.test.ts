import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import type { AdminEndpoint } from '../../../src/admin/admin-endpoint.ts';
import { type AdminOptions, createAdminServer } from '../../../src/admin/admin-server.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';

const token = 'a-token-for-operators';
const origin = 'http://localhost';

const endpoints: readonly AdminEndpoint[] = [
  {
    method: 'GET',
    path: '/api/thing',
    parameters: { a: { type: 'string' } },
    run: ({ query }) => ({ status: 200, body: Object.fromEntries(query) }),
  },
  { method: 'POST', path: '/api/thing', run: ({ body }) => ({ status: 200, body }) },
  {
    method: 'POST',
    path: '/api/broken',
    run() {
      throw new Error('a bug');
    },
  },
];

describe('the admin port', () => {
  let faults: unknown[] = [];

  /** `test`: the context of a concurrent test. */
  const start = async (
    options: Partial<AdminOptions> = {},
    test: Pick<TestContext, 'onTestFinished'> = { onTestFinished },
  ) => {
    faults = [];
    const server = closingAtEnd(test)(
      createAdminServer({
        host: '127.0.0.1',
        port: 0,
        hosts: ['admin.shop.example'],
        readiness: () => ({ ready: true, reasons: ['a reason'] }),
        metrics: async () => 'metrics\n',
        endpoints,
        onFault: (fault) => faults.push(fault),
        ...options,
      }),
    );
    const { port } = await server.listen();
    return port;
  };

  /** `fetch` does not allow setting Host or Origin. */
  const ask = async (port: number, target: string, fields: Record<string, string> = {}, body = '') => {
    const length = target.startsWith('POST') ? { 'Content-Length': Buffer.byteLength(body) } : {};
    const all = { Host: 'localhost', Connection: 'close', ...length, ...fields };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    const response = await exchangeRaw(
      port,
      `${target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`,
      target.split(' ')[0],
    );
    return { ...response, text: response.body.toString() };
  };

  it.each([
    ['GET /livez', 200, '{"status":"ok"}\n'],
    ['HEAD /livez', 200, ''],
    ['GET /livez?verbose', 200, '{"status":"ok"}\n'],
    ['POST /livez', 405, undefined],
    ['GET /readyz', 200, '{"status":"ready","reasons":["a reason"]}\n'],
    ['GET /metrics', 200, 'metrics\n'],
    ['GET /api/thing?a=1?b', 200, '{"a":"1?b"}\n'],
    ['GET /api/thing?', 200, '{}\n'],
    ['GET /api/thing?b=1', 400, '{"error":"unknown parameter b; known are a"}\n'],
    ['GET /api/thing?__proto__=1', 400, '{"error":"unknown parameter __proto__; known are a"}\n'],
    ['GET /api/thing?a=1&a=1', 400, '{"error":"a is given twice"}\n'],
    ['POST /api/thing?a=1', 400, '{"error":"unknown parameter a; this endpoint has none"}\n'],
    ['PUT /api/thing', 405, undefined],
    ['GET /api/broken', 405, undefined],
    ['GET /nowhere', 404, undefined],
    ['GET /console/', 404, undefined],
    ['GET /console/../admin-server.ts', 404, undefined],
    ['GET /console/..%2fadmin-server.ts', 404, undefined],
    ['GET /console/__proto__', 404, undefined],
    ['GET //livez', 404, undefined],
    ['GET /LIVEZ', 404, undefined],
  ])('answers %s with %i', async (target, status, text) => {
    const answer = await ask(await start(), target);
    expect(answer.status).toBe(status);
    if (text !== undefined) expect(answer.text).toBe(text);
    if (status === 405) expect(answer.field('allow')).toMatch(/^[A-Z, ]+$/);
    expect(answer.field('x-content-type-options')).toBe('nosniff');
    expect(faults).toEqual([]);
  });

  const good = `Bearer ${token}`;
  const ready = { status: 'ready' };
  const reasons = ['draining'];
  it.each<[string, Partial<AdminOptions>, Record<string, string>, number, object]>([
    [
      'not ready',
      { readiness: () => ({ ready: false, reasons }) },
      {},
      503,
      { status: 'not ready', reasons },
    ],
    ['with a token that is not sent', { token }, { Host: '10.0.0.7:8081' }, 200, ready],
    ['with a token', { token }, { Authorization: good }, 200, { ...ready, reasons: ['a reason'] }],
    ['with an unknown Host', {}, { Host: 'evil.example' }, 200, ready],
  ])('/readyz of a process %s', async (_, options, fields, status, body) => {
    const answer = await ask(await start(options), 'GET /readyz', fields);
    expect([answer.status, JSON.parse(answer.text)]).toEqual([status, body]);
  });

  describe('with a token', () => {
    const targets = ['GET /metrics', 'GET /api/thing', 'POST /api/thing', 'GET /nowhere'];

    it.each([
      ...[undefined, '', 'Bearer', 'Bearer ', 'Bearer wrong', `Bearer ${token}x`, `Bearer ${token.slice(1)}`],
      ...[`Basic ${token}`, token, `Bearer ${token} x`, `Bearer x, Bearer ${token}`],
    ])('refuses %j on all paths but probes and the files of the console', async (authorization) => {
      const port = await start({ token });
      const fields = authorization === undefined ? {} : { Authorization: authorization };
      for (const target of [...targets, 'GET /']) {
        const answer = await ask(port, target, fields);
        expect(answer.status, target).toBe(401);
        expect(answer.field('www-authenticate')).toBe('Bearer realm="shopward admin"');
      }
      for (const target of ['GET /livez', 'GET /console/main.js'])
        expect((await ask(port, target, fields)).status, target).toBe(200);
    });

    it.each([good, `bearer  ${token}`, `BEARER ${token}`])('accepts %j', async (authorization) => {
      const port = await start({ token });
      for (const target of targets) {
        const { status } = await ask(port, target, { Authorization: authorization });
        expect(status, target).toBe(target === 'GET /nowhere' ? 404 : 200);
      }
    });
  });

  it.each<[string, number, Partial<AdminOptions>]>([
    ['localhost', 200, {}],
    ['LOCALHOST:1234', 200, {}],
    ['127.0.0.1:8081', 200, {}],
    ['[::1]:8081', 200, {}],
    ['admin.shop.example', 200, {}],
    ['Admin.Shop.Example:443', 200, {}],
    ['evil.example', 421, {}],
    ['admin.shop.example.evil.example', 421, {}],
    ['localhost.evil.example', 421, {}],
    ['localhost@evil.example', 421, {}],
    ['0x7f000001', 421, {}],
    ['10.1.2.3:8081', 421, {}],
    ['[fd00::7]:8081', 421, {}],
    ['[fd00::7]:8081', 200, { hosts: ['fd00::7'] }],
    // With a token any IP address is accepted: DNS rebinding needs a name.
    ['10.1.2.3:8081', 200, { token }],
    ['[fd00::7]:8081', 200, { token }],
    ['10.1.2.3.evil.example', 421, { token }],
    ['0x0a010203', 421, { token }],
    ['evil.example', 421, { token }],
  ])('Host: %s is answered with %i (%j)', async (host, status, options) => {
    const port = await start(options);
    for (const target of ['GET /console/main.js', 'GET /metrics', 'GET /api/thing', 'POST /api/thing']) {
      const { status: seen } = await ask(port, target, { Host: host, Authorization: good });
      expect(seen, target).toBe(status);
    }
  });

  describe('a write', () => {
    it.each([
      [{}, 200],
      [{ Origin: origin }, 200],
      [{ Origin: 'https://localhost' }, 200],
      [{ Origin: origin, 'Sec-Fetch-Site': 'same-origin' }, 200],
      [{ 'Sec-Fetch-Site': 'none' }, 200],
      [{ Origin: 'http://evil.example' }, 403],
      [{ Origin: 'http://localhost:1' }, 403],
      [{ Origin: 'null' }, 403],
      [{ Origin: '' }, 403],
      [{ 'Sec-Fetch-Site': 'cross-site' }, 403],
      [{ 'Sec-Fetch-Site': 'same-site' }, 403],
      [{ Origin: origin, 'Sec-Fetch-Site': 'cross-site' }, 403],
    ])('with %j is answered with %i', async (fields, status) => {
      const answer = await ask(await start(), 'POST /api/thing', fields as Record<string, string>, '{"a":1}');
      expect(answer.status).toBe(status);
    });

    it('has no preflight: OPTIONS from another origin gets 405 and no CORS fields', async () => {
      const fields = { Origin: 'http://evil.example', 'Access-Control-Request-Method': 'POST' };
      const answer = await ask(await start(), 'OPTIONS /api/thing', fields);
      expect(answer.status).toBe(405);
      expect(answer.rawFields.filter((name) => /^access-control/i.test(name))).toEqual([]);
    });

    it.each([
      ['', 200, '{}\n'],
      ['{"a":[1]}', 200, '{"a":[1]}\n'],
      ['"text"', 200, '"text"\n'],
      ['{', 400, undefined],
      ['{"a":"\u0000"}', 400, undefined],
      [`"${'x'.repeat(998)}"`, 200, undefined],
      [`"${'x'.repeat(65_535)}"`, 413, undefined],
    ])('of %s is answered with %i', async (body, status, text) => {
      const answer = await ask(await start(), 'POST /api/thing', {}, body);
      expect(answer.status).toBe(status);
      if (text !== undefined) expect(answer.text).toBe(text);
    });

    it.each([
      ['not UTF-8', 'Content-Length: 4\r\nConnection: close\r\n\r\n"\xff\xfe"', 400],
      ['with a byte order mark', 'Content-Length: 5\r\nConnection: close\r\n\r\n\xef\xbb\xbf{}', 400],
      ['too long, before its end', 'Content-Length: 99999999\r\n\r\n{"a":', 413],
      ['in chunks, before the first one', 'Transfer-Encoding: chunked\r\n\r\n', 400],
    ])('of bytes that are %s', async (_, framing, status) => {
      const bytes = `POST /api/thing HTTP/1.1\r\nHost: localhost\r\n${framing}`;
      expect((await exchangeRaw(await start(), bytes)).status).toBe(status);
    });

    it('whose endpoint throws gets 500, and the error is reported', async () => {
      const answer = await ask(await start(), 'POST /api/broken', {}, '{}');
      expect([answer.status, answer.text]).toEqual([500, '{"error":"internal error"}\n']);
      expect(faults).toEqual([new Error('a bug')]);
    });
  });

  it.each([
    'GARBAGE\r\n\r\n',
    'GET / HTTP/1.1\r\n\r\n',
    'GET / HTTP/9.9\r\nHost: localhost\r\n\r\n',
    'GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'POST /api/thing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    'POST /api/thing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  ])('survives %j', async (bytes) => {
    const port = await start();
    expect((await exchangeRaw(port, bytes)).status).toBeGreaterThanOrEqual(400);
    expect((await ask(port, 'GET /livez')).status).toBe(200);
  });

  it.concurrent.for([
    ['head', 'GET /livez HTTP/1.1\r\nHost: loc'],
    ['body', 'POST /api/thing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"a"'],
  ] as const)(
    'answers 408 if the %s does not end in time, and serves others meanwhile',
    async ([, bytes], test) => {
      const reported: unknown[] = [];
      const port = await start({ requestTimeoutMs: 4_500, onFault: (fault) => reported.push(fault) }, test);
      const connection = await openRawConnection(port);
      await connection.write(bytes);
      expect((await ask(port, 'GET /livez')).status).toBe(200);
      expect((await connection.readResponse()).status).toBe(408);
      await connection.readAll();
      expect(reported).toEqual([]);
    },
  );

  it('goes on when clients reset their connection, and reports no fault', async () => {
    const port = await start();
    for (const bytes of [
      'POST /api/thing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"a"',
      'GET / HT',
    ]) {
      const connection = await openRawConnection(port);
      await connection.write(bytes);
      connection.socket.resetAndDestroy();
    }
    expect((await ask(port, 'GET /livez')).status).toBe(200);
    expect(faults).toEqual([]);
  });
});
