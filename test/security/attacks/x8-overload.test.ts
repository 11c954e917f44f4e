import { expect, it } from 'vitest';
import { expectRejection, request, useAttackStage } from '../../harness/attack-stage.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

let delayed: (() => void)[] = [];
const stage = useAttackStage({
  config: { limits: { inFlight: 20, clientShare: 100 }, entityTags: { lease: '10m', wait: '10m' } },
  script: ({ head }) =>
    /^(?:GET \/delayed|PATCH )/.test(head)
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

const active = async () => {
  const metrics = await (await fetch(`${stage.shopward.adminUrl}/metrics`)).text();
  return ['http_server_active_requests', 'shopward_connections'].map((name) =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]),
  );
};

/** Each one keeps its body and asks the store until it may write. */
it('X8: 503 while 19 writes wait for another one, although their clients have left', async () => {
  const bearer = `Authorization: Bearer ${stage.shopward.issueToken()}`;
  const tag = (await stage.passes(request('GET /carts/1', [bearer]))).response.field('etag');
  const write = request('PATCH /carts/1', [bearer, `If-Match: ${tag}`, 'Content-Length: 2'], '{}');
  const first = await stage.send(write);
  await expect.poll(() => delayed.length).toBe(1);
  const others = await Promise.all(Array.from({ length: 19 }, () => stage.send(write)));
  await expect.poll(active).toEqual([20, 20]);
  for (const connection of others) connection.close();
  await expect.poll(active).toEqual([20, 1]);
  expectRejection(await exchangeRaw(stage.port, request('GET /stores')), 503, 'overloaded');

  for (const go of delayed.splice(0)) go();
  expect((await first.readResponse()).status).toBe(200);
  first.close();
  await expect.poll(active).toEqual([0, 0]);
});
