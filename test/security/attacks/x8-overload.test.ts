import { expect, it } from 'vitest';
import { expectRejection, request, useAttackStage } from '../../harness/attack-stage.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

let delayed: (() => void)[] = [];
const stage = useAttackStage({
  config: { limits: { inFlight: 20, clientShare: 100 } },
  script: ({ head }) =>
    head.startsWith('GET /delayed')
      ? new Promise((resolve) => delayed.push(() => resolve(answer())))
      : undefined,
});

/** X8: requests above `limits.inFlight` are refused at once, and the admin port still answers. */
it('X8: 503 with 20 requests in flight, 200 when they have ended', async () => {
  const busy = await Promise.all(Array.from({ length: 20 }, () => openRawConnection(stage.port)));
  for (const connection of busy) await connection.write(request('GET /delayed'));
  await expect.poll(() => delayed.length).toBe(20);

  const { length } = stage.upstream.bytes();
  for (const line of ['GET /stores', 'GET /orders', 'POST /returns', 'HEAD /stores']) {
    const response = await exchangeRaw(stage.port, request(line), line.split(' ', 1)[0]);
    expectRejection(response, 503, 'overloaded', line.split(' ', 1)[0]);
    expect(Number(response.field('retry-after'))).toBeGreaterThan(0);
  }
  expect(stage.upstream.bytes()).toHaveLength(length);
  for (const path of ['/livez', '/readyz', '/metrics']) {
    expect((await fetch(stage.shopward.adminUrl + path)).status).toBe(200);
  }

  for (const go of delayed.splice(0)) go();
  for (const connection of busy) {
    expect((await connection.readResponse()).status).toBe(200);
    connection.close();
  }
  delayed = [];
  expect((await stage.passes(request('GET /stores'))).response.status).toBe(200);
});
