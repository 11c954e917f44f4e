import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import https from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { request } from '../harness/attack-stage.ts';
import { begun } from '../harness/begun.ts';
import { closingAtEnd } from '../harness/closing-at-end.ts';
import { eventually } from '../harness/eventually.ts';
import { untilRefused } from '../harness/free-port.ts';
import { openRawConnection } from '../harness/raw-client.ts';
import { answer, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { startShopward } from '../harness/shopward.ts';
import { testCertificate, testKey } from '../harness/tls-fixture.ts';

async function start(
  context: TestContext,
  { listen = {}, upstream: ofUpstream = {} }: { listen?: object; upstream?: object } = {},
) {
  const open = closingAtEnd(context);
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const upstream = open(
    await startRecordingUpstream(async ({ head }) => {
      if (head.startsWith('PATCH /slow')) await released;
      return answer('done');
    }),
  );
  const config = { listen, upstream: ofUpstream };
  const shopward = await startShopward({ upstream: `http://127.0.0.1:${upstream.port}`, config });
  open({ close: () => shopward.kill() });
  const untilBusy = () =>
    eventually('the slow request', () => upstream.bytes().includes('PATCH /slow') || undefined);
  return { shopward, untilBusy, release };
}

// Concurrent, because the longest test waits for a handshake time-out.
describe.concurrent('a drain', () => {
  it('over TLS: finishes requests in flight, and closes an unfinished handshake at its time-out', async (context) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'shopward-drain-'));
    const [cert, key] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')];
    await writeFile(cert, testCertificate);
    await writeFile(key, testKey);
    const { shopward, untilBusy, release } = await start(context, { listen: { tls: { cert, key } } });
    const agent = new https.Agent({ keepAlive: true, ca: testCertificate });
    const ask = (method: string, target: string) =>
      new Promise<{ status: number; connection: string; text: string }>((resolve, reject) => {
        const body = method === 'PATCH' ? '{}' : '';
        const options = { port: shopward.port, host: '127.0.0.1', method, path: target, agent };
        const asked = https.request(options, (response) => {
          const { statusCode: status = 0, headers } = response;
          let text = '';
          response.on('data', (chunk) => {
            text += chunk;
          });
          response.on('end', () => resolve({ status, connection: headers.connection ?? '', text }));
        });
        asked.on('error', reject).end(body);
      });
    const busy = begun(ask('PATCH', '/slow'));
    await untilBusy();
    // A second connection, which is idle afterwards.
    expect((await ask('GET', '/stores')).status).toBe(200);
    const silent = await openRawConnection(shopward.port);

    shopward.signal('SIGTERM');
    await shopward.waitForLog(({ event }) => event === 'draining');
    await eventually('its end', () => Object.keys(agent.freeSockets).length === 0 || undefined);
    expect(shopward.exitCode).toBe(null);
    release();
    expect(await busy).toEqual({ status: 200, connection: 'close', text: 'done' });
    expect(await shopward.exited).toBe(0);
    silent.close();
    agent.destroy();
    await rm(folder, { recursive: true });
  });

  it('ends a process without requests in flight, although upstream.connectTimeout is 1h', async (context) => {
    const { shopward } = await start(context, { upstream: { connectTimeout: '1h' } });
    await fetch(`${shopward.url}/stores`).then((response) => response.text());
    // The harness kills a process that does not end, and fails.
    await shopward.stop();
  });

  it.for(['SIGTERM', 'SIGINT'] as const)(
    '%s: requests in flight are finished, then the process ends with 0',
    async (signal, context) => {
      const { shopward, untilBusy, release } = await start(context);
      const busy = await openRawConnection(shopward.port);
      await busy.write(request('PATCH /slow', ['Content-Length: 2'], '{}'));
      const idle = await openRawConnection(shopward.port);
      await idle.write(request('GET /stores'));
      expect((await idle.readResponse()).status).toBe(200);
      await untilBusy();

      shopward.signal(signal);
      await shopward.waitForLog(({ event }) => event === 'draining');
      // The idle connection is closed, new ones are refused, and /readyz says why.
      expect((await idle.readAll()).toString()).toBe('');
      await untilRefused(shopward.port);
      const readiness = await fetch(`${shopward.adminUrl}/readyz`);
      expect([readiness.status, await readiness.json()]).toEqual([
        503,
        { status: 'not ready', reasons: ['draining'] },
      ]);
      expect((await fetch(`${shopward.adminUrl}/livez`)).status).toBe(200);
      expect(shopward.exitCode).toBe(null);

      release();
      const response = await busy.readResponse();
      expect([response.status, response.body.toString(), response.field('connection')]).toEqual([
        200,
        'done',
        'close',
      ]);
      // The connection closes after its last response, without an idle time-out.
      expect((await busy.readAll()).toString()).toBe('');
      expect(await shopward.exited).toBe(0);
      expect(shopward.log().filter(({ event }) => event === 'request')).toHaveLength(2);
    },
  );
});
