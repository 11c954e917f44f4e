import { afterEach, describe, expect, it } from 'vitest';
import { request } from '../harness/attack-stage.ts';
import { openRawConnection } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';

let upstream: RecordingUpstream;
let shopward: Shopward;
let release: () => void;

async function start(): Promise<void> {
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  upstream = await startRecordingUpstream(async ({ head }) => {
    if (head.startsWith('PATCH /slow')) await released;
    return answer('done');
  });
  shopward = await startShopward({ upstream: `http://127.0.0.1:${upstream.port}` });
}

afterEach(async () => {
  await shopward.kill();
  await upstream.close();
});

describe('SIGTERM', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    '%s: what is in flight is finished, then the process ends with 0',
    async (signal) => {
      await start();
      const busy = await openRawConnection(shopward.port);
      await busy.write(request('PATCH /slow', ['Content-Length: 2'], '{}'));
      const idle = await openRawConnection(shopward.port);
      await idle.write(request('GET /stores'));
      expect((await idle.readResponse()).status).toBe(200);
      await expect.poll(() => upstream.bytes()).toContain('PATCH /slow');

      shopward.signal(signal);
      await shopward.waitForLog(({ event }) => event === 'draining');
      // The idle connection is let go, nobody new is let in, and whoever asks is told.
      expect((await idle.readAll()).toString()).toBe('');
      await expect
        .poll(() =>
          openRawConnection(shopward.port).then(
            () => 'taken',
            () => 'refused',
          ),
        )
        .toBe('refused');
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
      // The connection ends with its last response; nobody waits for it to fall idle.
      expect((await busy.readAll()).toString()).toBe('');
      expect(await shopward.exited).toBe(0);
      expect(shopward.log().filter(({ event }) => event === 'request')).toHaveLength(2);
    },
  );

  it('a second one does not wait', async () => {
    await start();
    const busy = await openRawConnection(shopward.port);
    await busy.write(request('PATCH /slow', ['Content-Length: 2'], '{}'));
    await expect.poll(() => upstream.bytes()).toContain('PATCH /slow');
    shopward.signal('SIGTERM');
    await shopward.waitForLog(({ event }) => event === 'draining');
    shopward.signal('SIGTERM');
    expect(await shopward.exited).toBe(1);
    busy.close();
  });
});
