import { once } from 'node:events';
import { expect, it } from 'vitest';
import { expectRejection, request, useAttackStage } from '../../harness/attack-stage.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

const stage = useAttackStage({
  // All clients here have one address: without a limit per client, only the total limit counts.
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

/** X3: two slow readers that use both upstream connections cause no 503 for another client. */
it('X3: clients that read 2 KB/s are disconnected, and a waiting request gets 200', async () => {
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

/** X3: two clients that do not read keep both upstream connections busy; no other request may wait for ever. */
it('X3: 503 for a request that finds no connection, and 200 once the readers have left', async () => {
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
  // Answers without the upstream still work.
  await stage.demandsToken(request('GET /orders'));
  expect((await fetch(`${stage.shopward.adminUrl}/livez`)).status).toBe(200);

  for (const reader of readers) reader.close();
  const status = async () => (await exchangeRaw(stage.port, request('GET /stores'))).status;
  await expect.poll(status).toBe(200);
});
