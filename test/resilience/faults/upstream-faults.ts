import { gzipSync } from 'node:zlib';
import { ageRedis } from '../../harness/aged-redis.ts';
import { startFaultProxy } from '../../harness/fault-proxy.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { type FaultRow, type RowResult, runRows, type Stage } from './fault-row.ts';
import { healthy } from './routes.ts';
import { shopwardSettings } from './settings.ts';
import { startOutageShop } from './shop.ts';

const head = '\r\n\r\n';
const [unreachable, invalid, timeout] = [
  '502 upstream-unreachable',
  '502 upstream-invalid',
  '504 upstream-timeout',
];
const unavailable = ['503 tag-store-unavailable'];
/** 64 MiB of spaces, compressed to about 64 KiB. */
const bomb = gzipSync(Buffer.alloc(64 * 2 ** 20, ' '));
const json = { 'Content-Type': 'application/json' };
const html = '<html>Bad gateway</html>';

/** Faults of the upstream, for every kind of route. */
export function runUpstreamFaults(): Promise<RowResult[]> {
  return runRows(4, openStage);
}

async function openStage(): Promise<Stage> {
  const shop = await startOutageShop();
  const proxy = await startFaultProxy(shop.port);
  const redis = await startRedis({});
  await ageRedis(redis.process?.port ?? 0);
  const shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${proxy.port}`,
    config: shopwardSettings(redis.url),
  });
  const end = async () => {
    shop.instead = undefined;
    await proxy.heal();
  };
  const known = { 'resolver, known URL': '200 tagged' } as const;
  const collected = (seen: string) =>
    ({
      'tracked GET': seen,
      'tagged PATCH': seen,
      'child POST': seen,
      'token exchange': seen,
      'resolver, new URL': seen,
      ...known,
    }) as const;
  const rows: readonly Omit<FaultRow, 'end'>[] = [
    {
      name: 'refuses connections',
      begin: () => proxy.set({ connections: 'refuse' }),
      seen: unreachable,
      but: known,
      // Nothing was sent, so the tag is still current.
      oldTag: '200 tagged',
    },
    {
      name: 'takes connections, and resets them',
      begin: () => proxy.set({ connections: 'reset' }).then(() => proxy.resetAll()),
      seen: unreachable,
      but: known,
      oldTag: ['200 tagged', ...unavailable],
    },
    {
      name: 'RST instead of the answer',
      begin: () => proxy.set({ toClient: { cut: { bytes: 0, by: 'reset' } } }),
      seen: unreachable,
      but: known,
      oldTag: unavailable,
    },
    {
      name: 'FIN instead of the answer',
      begin: () => proxy.set({ toClient: { cut: { bytes: 0, by: 'fin' } } }),
      seen: unreachable,
      but: known,
      oldTag: unavailable,
    },
    {
      name: 'half-close instead of the answer',
      begin: () => proxy.set({ toClient: { cut: { bytes: 0, by: 'half-close' } } }),
      seen: unreachable,
      but: known,
      oldTag: unavailable,
    },
    {
      name: 'half a head, then FIN',
      begin: () => proxy.set({ toClient: { cut: { bytes: 20, by: 'fin' } } }),
      seen: invalid,
      but: known,
      oldTag: unavailable,
    },
    {
      name: 'RST after the head',
      begin: () => proxy.set({ toClient: { cut: { behind: head, bytes: 0, by: 'reset' } } }),
      seen: 'cut',
      but: collected(invalid),
      oldTag: unavailable,
    },
    {
      name: 'FIN in the middle of the body',
      begin: () => proxy.set({ toClient: { cut: { behind: head, bytes: 50, by: 'fin' } } }),
      seen: 'cut',
      but: collected(invalid),
      oldTag: unavailable,
    },
    {
      name: 'half-close in the middle of the body',
      begin: () => proxy.set({ toClient: { cut: { behind: head, bytes: 50, by: 'half-close' } } }),
      seen: 'cut',
      but: collected(invalid),
      oldTag: unavailable,
    },
    {
      name: 'a chunked body without its end',
      begin: () => {
        shop.instead = (response) =>
          response.writeHead(200, json).write(' '.repeat(500), () => response.socket?.destroy());
      },
      seen: 'cut',
      but: collected(invalid),
      oldTag: unavailable,
    },
    {
      name: 'the request is lost on its way',
      begin: () => proxy.set({ toUpstream: { drop: true } }),
      seen: timeout,
      but: known,
      oldTag: unavailable,
    },
    {
      name: 'RST after half a head of the request',
      begin: () => proxy.set({ toUpstream: { cut: { bytes: 20, by: 'reset' } } }),
      seen: unreachable,
      but: known,
      oldTag: unavailable,
    },
    {
      name: 'the request is cut short, then FIN',
      begin: () => proxy.set({ toUpstream: { cut: { bytes: 20, by: 'fin' } } }),
      seen: unreachable,
      but: known,
      oldTag: unavailable,
    },
    {
      name: 'half-close after half a head of the request',
      begin: () => proxy.set({ toUpstream: { cut: { bytes: 20, by: 'half-close' } } }),
      // The upstream answers 400 and has not applied the request.
      seen: '400',
      but: known,
      oldTag: '200 tagged',
    },
    {
      name: 'the request arrives half a second late',
      begin: () => proxy.set({ toUpstream: { delayMs: 500 } }),
      seen: '200',
      but: healthy,
      oldTag: '412 006',
    },
    {
      name: 'each request arrives twice',
      begin: () => proxy.set({ toUpstream: { duplicate: true } }),
      seen: '200',
      but: healthy,
      oldTag: '412 006',
    },
    {
      name: 'silent',
      begin: () => proxy.set({ toClient: { drop: true } }),
      seen: timeout,
      but: known,
      oldTag: unavailable,
    },
    {
      name: 'takes connections, and is silent',
      begin: () => proxy.set({ connections: 'hang' }).then(() => proxy.resetAll()),
      seen: timeout,
      but: known,
      oldTag: unavailable,
    },
    {
      name: 'stalls in the middle of the body',
      begin: () => proxy.set({ toClient: { cut: { behind: head, bytes: 50, by: 'stall' } } }),
      seen: 'cut',
      // The body of a read is buffered for a second at most, then streamed.
      but: { ...collected(timeout), 'tracked GET': ['cut', timeout] },
      oldTag: unavailable,
    },
    {
      name: 'answers half a second late',
      begin: () => proxy.set({ toClient: { delayMs: 500 } }),
      seen: '200',
      but: healthy,
      oldTag: '412 006',
    },
    {
      name: 'sends 2000 bytes a second',
      begin: () => proxy.set({ toClient: { bytesPerSecond: 2000 } }),
      seen: '200',
      but: healthy,
      oldTag: '412 006',
    },
    {
      name: 'sends each answer twice',
      begin: () => proxy.set({ toClient: { duplicate: true } }),
      seen: '200',
      but: healthy,
      oldTag: '412 006',
    },
    {
      name: 'sends what is no HTTP',
      begin: () => proxy.set({ toClient: { replaceBy: '\x16\x03\x01 nonsense\r\n\r\n' } }),
      seen: invalid,
      but: known,
      oldTag: unavailable,
    },
    {
      name: '503 with HTML',
      begin: () => {
        shop.instead = (response) => response.writeHead(503, { 'Content-Type': 'text/html' }).end(html);
      },
      seen: '503 unreadable',
      but: { 'resolver, new URL': invalid, ...known },
      oldTag: unavailable,
    },
    {
      name: '200 with half a JSON document',
      begin: () => {
        shop.instead = (response) => response.writeHead(200, json).end('{"data":{"id":');
      },
      // The resolver forwards an answer that it cannot parse, and does not store it.
      seen: '200 unreadable',
      but: { 'tracked GET': '200 tagged unreadable', 'tagged PATCH': '200 tagged unreadable', ...known },
      oldTag: '412 006',
    },
    {
      name: 'sends more than shopward reads',
      begin: () => {
        shop.instead = (response) => response.writeHead(200, json).end(`{"data":"${'x'.repeat(2 ** 20)}"}`);
      },
      seen: '200',
      // Tokens that cannot be recorded are not handed out.
      but: { 'tracked GET': '200 tagged', 'token exchange': '502 token-answer-unreadable', ...known },
      oldTag: '412 006',
    },
    {
      name: 'a decompression bomb',
      begin: () => {
        shop.instead = (response) =>
          response.writeHead(200, { ...json, 'Content-Encoding': 'gzip' }).end(bomb);
      },
      seen: '200 unreadable',
      // What a write has made has a new tag, whatever its answer says.
      but: {
        'tracked GET': '200 tagged unreadable',
        'tagged PATCH': '200 tagged unreadable',
        'token exchange': '502 token-answer-unreadable',
        ...known,
      },
      oldTag: '412 006',
    },
  ];
  const close = async () => {
    await proxy.close();
    await redis.close();
    shop.close();
  };
  return { shopward, rows: rows.map((row) => ({ ...row, end })), close };
}
