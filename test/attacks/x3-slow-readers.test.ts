import { expect, it } from 'vitest';
import { expectRejection, request, useAttackStage } from '../harness/attack-stage.ts';
import { exchangeRaw, openRawConnection } from '../harness/raw-client.ts';
import { answer } from '../harness/recording-upstream.ts';

const stage = useAttackStage({
  // Reader and others have one address: no share of a client, so that the bound of all is what counts.
  config: { upstream: { connections: 2, connectTimeout: '2s' }, limits: { clientShare: 100 } },
  script: ({ head }) => (head.startsWith('GET /big') ? answer('x'.repeat(50_000_000)) : undefined),
});

/** X3: two clients that do not read hold every connection to the upstream; nobody may wait for them for ever. */
it('X3: who finds no connection is answered 503, and the connections come back', async () => {
  const readers = await Promise.all(
    Array.from({ length: 2 }, async () => {
      const connection = await openRawConnection(stage.port);
      connection.socket.pause();
      await connection.write(request('GET /big'));
      return connection;
    }),
  );
  await expect.poll(() => stage.upstream.requestLines.length).toBe(2);
  const response = await exchangeRaw(stage.port, request('GET /stores'));
  expectRejection(response, 503, 'overloaded');
  expect(Number(response.field('retry-after'))).toBeGreaterThan(0);
  // What asks nothing of the upstream goes on.
  await stage.demandsToken(request('GET /orders'));
  expect((await fetch(`${stage.shopward.adminUrl}/livez`)).status).toBe(200);

  for (const reader of readers) reader.close();
  const status = async () => (await exchangeRaw(stage.port, request('GET /stores'))).status;
  await expect.poll(status).toBe(200);
});
