import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { exchangeRaw, type RawResponse } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type Shopward, type ShopwardOptions, startShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

let upstream: RecordingUpstream | undefined;

/** Shopward in a process, until the end of the test. */
async function start(options: ShopwardOptions): Promise<Shopward> {
  const shopward = await startShopward(options);
  onTestFinished(() => shopward.kill());
  return shopward;
}

afterEach(async () => {
  await upstream?.close();
  upstream = undefined;
});

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: shop.example\r\n\r\n`;

/** Most memory that the process ever had, in MiB. */
function peakMemory({ pid }: Shopward): number {
  const kib = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) / 1024;
}

describe('overload', () => {
  it('more requests than may be in flight get 503 with Retry-After; the others are served', async () => {
    const bound = 20;
    const release = Promise.withResolvers<void>();
    const recording = await startRecordingUpstream(async ({ head }) => {
      if (head.startsWith('GET /slow')) await release.promise;
      return answer();
    });
    upstream = recording;
    const shopward = await startShopwardHere({
      upstream: `http://127.0.0.1:${recording.port}`,
      config: { limits: { inFlight: bound, clientShare: 100 } },
      rows: ['GET /secret'],
    });
    const served: Promise<RawResponse>[] = [];
    for (let i = 0; i < bound; i++) served.push(exchangeRaw(shopward.port, get('/slow')));
    await eventually('all of them upstream', () => recording.requestLines.length === bound || undefined);

    const refused = await Promise.all(
      Array.from({ length: 200 }, () => exchangeRaw(shopward.port, get('/slow'))),
    );
    const told = refused.map((response) => [
      response.status,
      response.field('retry-after'),
      JSON.parse(response.body.toString()).errors[0].code,
    ]);
    expect(new Set(told.map(String))).toEqual(new Set(['503,1,overloaded']));
    expect(recording.requestLines).toHaveLength(bound);
    // Whoever watches is on another port, and is answered.
    expect((await fetch(`${shopward.adminUrl}/readyz`)).status).toBe(200);
    const metrics = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
    expect(metrics).toContain(
      'shopward_rejections_total{rejection="overloaded",reason="in-flight",enforced="true"} 200',
    );

    release.resolve();
    for (const response of await Promise.all(served)) expect(response.status).toBe(200);
    expect((await exchangeRaw(shopward.port, get('/open'))).status).toBe(200);
    await shopward.stop();
  });

  it('clients that do not read what they asked for fill no memory', async () => {
    const body = Buffer.alloc(16 * 1024 * 1024, 'x');
    let asked = 0;
    const shop = http.createServer((_incoming, response) => {
      asked++;
      response.end(body);
    });
    shop.listen(0, '127.0.0.1');
    await once(shop, 'listening');
    const { port } = shop.address() as AddressInfo;
    const shopward = await start({ upstream: `http://127.0.0.1:${port}` });
    const fetched = async () => (await (await fetch(`${shopward.url}/other`)).arrayBuffer()).byteLength;
    expect(await fetched()).toBe(body.length);
    const before = peakMemory(shopward);
    const readers = Array.from({ length: 40 }, () => {
      const socket = connect(shopward.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.pause();
      socket.write(get('/big'));
      return socket;
    });
    await eventually('all of them upstream', () => asked === readers.length + 1 || undefined);
    // Others are served meanwhile, and all that can pile up does.
    for (let i = 0; i < 5; i++) expect(await fetched()).toBe(body.length);
    // 40 times 16 MiB are on their way; some hundred kilobytes of each may be in here.
    expect(peakMemory(shopward) - before).toBeLessThan(200);
    for (const reader of readers) reader.destroy();
    shop.closeAllConnections();
    shop.close();
  });

  it('no file descriptors left: the process goes on, and serves again when some are free', async () => {
    const recording = await startRecordingUpstream(() => answer());
    upstream = recording;
    const shopward = await start({
      upstream: `http://127.0.0.1:${recording.port}`,
      launcher: ['sh', '-c', 'ulimit -n 60; exec "$@"', 'sh'],
    });
    expect((await exchangeRaw(shopward.port, get('/open'))).status).toBe(200);
    const crowd: Socket[] = [];
    let turnedAway = 0;
    for (let i = 0; i < 120; i++) {
      const socket = connect(shopward.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.once('close', () => turnedAway++);
      crowd.push(socket);
    }
    await eventually('connections that cannot be taken', () => turnedAway > 0 || undefined);
    expect(shopward.exitCode).toBe(null);
    for (const socket of crowd) socket.destroy();
    await eventually('an answer', async () => {
      const response = await exchangeRaw(shopward.port, get('/open')).catch(() => undefined);
      return response?.status === 200 || undefined;
    });
    await shopward.stop();
    expect(shopward.log().filter(({ event }) => event === 'crash')).toEqual([]);
  });
});
