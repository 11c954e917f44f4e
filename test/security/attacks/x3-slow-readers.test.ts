import { once } from 'node:events';
import { expect, it } from 'vitest';
import { expectRejection, request, useAttackStage } from '../../harness/attack-stage.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

const stage = useAttackStage({
  // Reader and others have one address: no share of a client, so that the bound of all is what counts.
  config: { upstream: { connections: 2, connectTimeout: '2s' }, limits: { clientShare: 100 } },
  script: ({ head }) => (head.startsWith('GET /big') ? answer('x'.repeat(50_000_000)) : undefined),
});

const many = 50_000_000;
const slow = useAttackStage({
  config: {
    upstream: { connections: 2, connectTimeout: '20s' },
    limits: { clientShare: 100, bodyTimeout: '1s' },
  },
  script: ({ head }) => (head.startsWith('GET /big') ? answer('x'.repeat(many)) : undefined),
});

/** X3: two clients that read slowly and use every connection cause no 503 for others. */
it('X3: a client that reads 2 KB/s is cut, and a waiting request gets its connection', async () => {
  const readers = await Promise.all(
    Array.from({ length: 2 }, async () => {
      const { socket, write } = await openRawConnection(slow.port);
      const reading = setInterval(() => socket.read(1_000), 500);
      const ended = once(socket.removeAllListeners('data').pause(), 'close');
      socket.on('readable', () => {});
      await write(request('GET /big'));
      return { socket, ended: ended.finally(() => clearInterval(reading)) };
    }),
  );
  await expect.poll(() => slow.upstream.requestLines.length).toBe(2);
  expect((await exchangeRaw(slow.port, request('GET /stores'))).status).toBe(200);
  for (const { socket } of readers) socket.destroy();
  await Promise.all(readers.map(({ ended }) => ended));
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
