import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, type TestContext } from 'vitest';
import { closingAtEnd } from '../harness/closing-at-end.ts';
import { eventually } from '../harness/eventually.ts';
import { exchangeRaw, openRawConnection, type RawConnection } from '../harness/raw-client.ts';
import { answer, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { startShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { testCertificate, testKey } from '../harness/tls-fixture.ts';

const get = (target: string, ...fields: string[]) =>
  `${[`GET ${target} HTTP/1.1`, 'Host: s', ...fields].join('\r\n')}\r\n\r\n`;

const handshake = [
  ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

const big = 'x'.repeat(8_000_000);

/** A proxy, an upstream and client connections for one test, because tests run concurrently. */
async function start(context: TestContext, config: object, launcher?: readonly string[]) {
  const open = closingAtEnd(context);
  const upstream = open(
    await startRecordingUpstream(({ head }) =>
      head.includes('/delayed') ? new Promise(() => {}) : answer(head.includes('/big') ? big : 'ok'),
    ),
  );
  const options = {
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: ['GET /orders', 'GET /delayed/orders'],
    config,
  };
  const shopward = await (launcher ? startShopward({ ...options, launcher }) : startShopwardHere(options));
  open({ close: () => shopward.stop() });
  const crowd: Socket[] = [];
  const leave = () => {
    for (const socket of crowd.splice(0)) socket.destroy();
  };
  open({ close: leave });
  /** Sends a request without waiting for the answer; the connection stays open. */
  async function ask(bytes: string): Promise<RawConnection> {
    const connection = await openRawConnection(shopward.port);
    crowd.push(connection.socket);
    await connection.write(bytes);
    return connection;
  }
  const delayed = (count: number) =>
    eventually(`${count} waiting requests`, () => upstream.requestLines.length === count || undefined);
  const reasons = async () => (await fetch(`${shopward.adminUrl}/readyz`)).text();
  const silent = (count: number) => {
    for (let i = 0; i < count; i++) {
      const socket = connect(shopward.port, '127.0.0.1');
      socket.on('error', () => {});
      crowd.push(socket);
    }
  };
  const metric = async (name: string) => {
    const text = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
  };
  return { shopward, crowd, leave, ask, delayed, reasons, silent, metric };
}

describe.concurrent('one client never has more than its share of limits.inFlight', () => {
  const from = (address: string) => `X-Forwarded-For: ${address}`;
  const config = { limits: { inFlight: 12, clientShare: 50 }, trustedProxies: ['127.0.0.1/32'] };

  it.for<[string, (i: number) => string[], string[]]>([
    ['an address', (i: number) => [from('192.0.2.1'), `X-N: ${i}`], [from('192.0.2.2')]],
    ['an IPv6 network', (i: number) => [from(`2001:db8::${i + 1}`)], [from('2001:db8:0:1::1')]],
  ])('%s', async ([, ofClient, ofOther], context) => {
    const { shopward, leave, ask, delayed } = await start(context, config);
    for (let i = 0; i < 6; i++) await ask(get('/delayed', ...ofClient(i)));
    await delayed(6);
    const refused = await exchangeRaw(shopward.port, get('/open', ...ofClient(7)));
    expect([refused.status, refused.field('retry-after')]).toEqual([503, '1']);
    await shopward.waitForLog(({ reason }) => reason === 'client-share');
    expect((await exchangeRaw(shopward.port, get('/open', ...ofOther))).status).toBe(200);
    // When requests end, the share is free again.
    leave();
    await eventually('a connection', async () => {
      const { status } = await exchangeRaw(shopward.port, get('/open', ...ofClient(8)));
      return status === 200 || undefined;
    });
  });

  it('a subject, even from several addresses', async (context) => {
    const { shopward, ask, delayed } = await start(context, config);
    const bearer = (sub: string) => `Authorization: Bearer ${shopward.issueToken({ sub })}`;
    for (let i = 0; i < 6; i++) await ask(get('/delayed/orders', from(`192.0.2.${i}`), bearer('DE--1')));
    await delayed(6);
    const answerTo = async (sub: string) =>
      (await exchangeRaw(shopward.port, get('/orders', from('198.51.100.9'), bearer(sub)))).status;
    expect([await answerTo('DE--1'), await answerTo('DE--2')]).toEqual([503, 200]);
  });

  it('slow bodies of one client leave room for others', async (context) => {
    const { shopward, ask } = await start(context, config);
    const slow = `POST /stores HTTP/1.1\r\nHost: s\r\n${from('192.0.2.1')}\r\nContent-Type: text/plain\r\nContent-Length: 50000\r\n\r\nx`;
    const answers: number[] = [];
    for (let i = 0; i < 20; i++) {
      const connection = await ask(slow);
      connection.readResponse('POST').then(
        ({ status }) => answers.push(status),
        () => {},
      );
    }
    await eventually('refusals', () => answers.length === 14 || undefined);
    expect(new Set(answers)).toEqual(new Set([503]));
    expect((await exchangeRaw(shopward.port, get('/open', from('192.0.2.2')))).status).toBe(200);
  });
});

describe.concurrent('connections to the shop', () => {
  it.for([
    ['slow answers of one address', '/delayed', () => '192.0.2.1'],
    ['slow answers of one IPv6 network', '/delayed', (i: number) => `2001:db8::${i + 1}`],
    ['slow readers of one address', '/big', () => '192.0.2.1'],
  ] as const)('300 %s leave connections to others', async ([, target, addressOf], context) => {
    const { shopward, leave, ask, delayed } = await start(context, {
      upstream: { connections: 16, connectTimeout: '60s' },
      trustedProxies: ['127.0.0.1/32'],
    });
    for (let i = 0; i < 300; i++) {
      const { socket } = await ask(get(target, `X-Forwarded-For: ${addressOf(i)}`));
      socket.pause();
    }
    await delayed(8);
    // Eight of the 16 connections are left for other clients.
    for (let i = 0; i < 40; i++) {
      const { status } = await exchangeRaw(shopward.port, get('/open', `X-Forwarded-For: 192.0.2.${i + 2}`));
      expect(status).toBe(200);
    }
    await delayed(48);
    leave();
    await eventually('connections', async () => {
      const { status } = await exchangeRaw(shopward.port, get('/open', `X-Forwarded-For: ${addressOf(0)}`));
      return status === 200 || undefined;
    });
  });

  it('one client gets at most its share of the connections for bodies that are still arriving', async (context) => {
    const { shopward, leave, ask } = await start(context, {
      upstream: { connections: 16 },
      trustedProxies: ['127.0.0.1/32'],
    });
    const upload = (address: string, end: string) =>
      `POST /${end === '' ? 'delayed' : 'stores'} HTTP/1.1\r\nHost: s\r\nX-Forwarded-For: ${address}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n${end}`;
    const refused: number[] = [];
    for (let i = 0; i < 12; i++) {
      const connection = await ask(upload('192.0.2.1', ''));
      connection.readResponse('POST').then(
        ({ status }) => refused.push(status),
        () => {},
      );
    }
    await eventually('refusals', () => refused.length === 8 || undefined);
    expect(new Set(refused)).toEqual(new Set([503]));
    await shopward.waitForLog(({ reason }) => reason === 'arriving-bodies');
    const other = () => exchangeRaw(shopward.port, upload('192.0.2.2', '0\r\n\r\n'));
    expect((await other()).status).toBe(200);
    leave();
    // When uploads end, the shares of this client and of the others are free again.
    await eventually('room', async () => {
      const { status } = await exchangeRaw(shopward.port, upload('192.0.2.1', '0\r\n\r\n'));
      return status === 200 || undefined;
    });
    for (let i = 0; i < 20; i++) expect((await other()).status).toBe(200);
  });
});

describe.concurrent('silent connections do not keep clients out', () => {
  it.for(['http', 'https'])(
    'a new connection evicts the one that is idle the longest, never one with a request (%s)',
    async (scheme, context) => {
      const folder = await mkdtemp(path.join(tmpdir(), 'shopward-tls-'));
      context.onTestFinished(() => rm(folder, { recursive: true }));
      const tls = { cert: path.join(folder, 'cert.pem'), key: path.join(folder, 'key.pem') };
      await writeFile(tls.cert, testCertificate);
      await writeFile(tls.key, testKey);
      const { shopward, crowd, delayed, reasons, silent, metric } = await start(context, {
        listen: { maxConnections: 20, ...(scheme === 'https' && { tls }) },
        limits: { clientShare: 100 },
      });
      const busy: string[] = [];
      const open = () =>
        new Promise<Socket>((resolve) => {
          const socket: Socket =
            scheme === 'https'
              ? connectTls({ port: shopward.port, host: '127.0.0.1', rejectUnauthorized: false }, () =>
                  resolve(socket),
                )
              : connect(shopward.port, '127.0.0.1', () => resolve(socket));
          socket.on('error', () => {});
          crowd.push(socket);
        });
      for (let i = 0; i < 5; i++) {
        const socket = await open();
        socket.on('close', () => busy.push('closed'));
        socket.write(get('/delayed'));
      }
      await delayed(5);
      silent(100);
      await eventually(
        'evictions',
        async () => (await metric('shopward_connections_evicted_total')) >= 85 || undefined,
      );
      const socket = await open();
      socket.write(get('/open'));
      const text = await new Promise<string>((resolve) =>
        socket.once('data', (chunk) => resolve(chunk.toString())),
      );
      expect(text).toMatch(/^HTTP\/1\.1 200 /);
      expect(busy).toEqual([]);
      expect(await metric('shopward_connections')).toBeLessThanOrEqual(20);
      expect(await reasons()).toContain('listen.maxConnections');
    },
  );

  it('a new connection is refused if every connection has a request', async (context) => {
    const { shopward, ask, delayed, metric } = await start(context, {
      listen: { maxConnections: 4 },
      limits: { clientShare: 100 },
    });
    for (let i = 0; i < 4; i++) await ask(get('/delayed'));
    await delayed(4);
    await expect(exchangeRaw(shopward.port, get('/open'))).rejects.toThrow();
    expect(await metric('shopward_connections_refused_total')).toBe(1);
    expect((await fetch(`${shopward.adminUrl}/livez`)).status).toBe(200);
  });

  it.for([
    ['a request', 'POST /open HTTP/1.1\r\nHost: s\r\nContent-Length: 100000000\r\n\r\n', 413],
    ['a handshake', get('/orders', ...handshake), 401],
  ] as const)('a connection can be evicted after a refusal of %s', async ([, bytes, status], context) => {
    const { shopward, ask, metric } = await start(context, {
      listen: { maxConnections: 4 },
      limits: { clientShare: 100, inFlight: 4 },
      upstream: { webSocket: true },
    });
    const refuse = async () => {
      const refused = await ask(bytes);
      expect((await refused.readResponse()).status).toBe(status);
      // The client goes on sending, so that the connection stays open for a while.
      const sending = setInterval(() => refused.socket.write('x'), 100);
      context.onTestFinished(() => clearInterval(sending));
    };
    for (let i = 0; i < 4; i++) await refuse();
    await eventually('an eviction', async () => {
      expect((await exchangeRaw(shopward.port, get('/orders', ...handshake))).status).toBe(401);
      if ((await metric('shopward_connections_evicted_total')) > 0) return true;
      // On a slow machine a connection has already ended by itself.
      await refuse();
      return undefined;
    });
  });

  it('a peer gets at most its share of the connections, unless it is a trusted proxy', async (context) => {
    const { silent, metric } = await start(context, { listen: { maxConnections: 20 } });
    silent(15);
    await eventually(
      'refusals',
      async () => (await metric('shopward_connections_refused_total')) === 5 || undefined,
    );
    const trusted = await start(context, {
      listen: { maxConnections: 20 },
      trustedProxies: ['127.0.0.1/32'],
    });
    trusted.silent(15);
    await eventually(
      'connections',
      async () => (await trusted.metric('shopward_connections')) === 15 || undefined,
    );
    expect(await trusted.metric('shopward_connections_refused_total')).toBe(0);
  });

  it('256 descriptors and 400 silent connections: clients are served, the admin port answers, and the cause is named', async (context) => {
    const { shopward, reasons, silent } = await start(context, { limits: { clientShare: 100 } }, [
      'sh',
      '-c',
      'ulimit -n 256; exec "$@"',
      'sh',
    ]);
    silent(400);
    for (let i = 0; i < 20; i++) {
      expect((await exchangeRaw(shopward.port, get(`/open?${i}`))).status).toBe(200);
      expect((await fetch(`${shopward.adminUrl}/livez`)).status).toBe(200);
    }
    expect(await reasons()).toMatch(/open files: the limit of 256 is low for up to 80 client connections/);
    expect(shopward.output()).not.toContain('EMFILE');
  });
});
