import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type Shopward, type ShopwardOptions, startShopward } from '../harness/shopward.ts';

let upstream: RecordingUpstream | undefined;

/** Starts shopward in a process that is killed at the end of the test. */
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

describe('overload', () => {
  it('without free file descriptors the process survives, and it answers again once some are free', async () => {
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
