import { expect, it } from 'vitest';
import { request, useAttackStage } from '../harness/attack-stage.ts';
import { exchangeRaw, openRawConnection } from '../harness/raw-client.ts';

const never = new Promise<undefined>(() => {});
const stage = useAttackStage({
  config: { upstream: { connections: 4 } },
  script: ({ head }) => (head.startsWith('POST /streamed') ? never : undefined),
});

/** X2: a body that is not read whole first has a connection of the upstream's for as long as its client likes. */
it.each(['Content-Length: 100000', 'Transfer-Encoding: chunked'])(
  'X2: slow bodies with %s leave connections for others',
  async (framing) => {
    const slow = await Promise.all(Array.from({ length: 12 }, () => openRawConnection(stage.port)));
    for (const connection of slow) {
      await connection.write(
        request('POST /streamed', ['Content-Type: application/json', framing], '1\r\na'),
      );
    }
    await expect.poll(() => stage.upstream.bytes()).toContain('POST /streamed');
    for (let i = 0; i < 3; i++) {
      expect((await exchangeRaw(stage.port, request('GET /stores'))).status).toBe(200);
      const short = ['Content-Type: application/json', 'Content-Length: 2'];
      expect((await exchangeRaw(stage.port, request('POST /stores', short, '{}'))).status).toBe(200);
    }
    for (const connection of slow) connection.close();
    await expect.poll(() => slow.every(({ socket }) => socket.destroyed)).toBe(true);
  },
);
