import { expect, it } from 'vitest';
import { request, streamed, useAttackStage } from '../../harness/attack-stage.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';

const never = new Promise<undefined>(() => {});
const stage = useAttackStage({
  config: { upstream: { connections: 4 } },
  script: ({ head }) => (head.startsWith(`POST ${streamed}/slowly`) ? never : undefined),
});

/** X2: a streamed body could occupy an upstream connection for as long as its client sends. */
it.each(['Content-Length: 100000', 'Transfer-Encoding: chunked'])(
  'X2: 200 for others during twelve slow bodies with %s',
  async (framing) => {
    const slow = await Promise.all(Array.from({ length: 12 }, () => openRawConnection(stage.port)));
    for (const connection of slow) {
      await connection.write(
        request(`POST ${streamed}/slowly`, ['Content-Type: application/json', framing], '1\r\na'),
      );
    }
    await expect.poll(() => stage.upstream.bytes()).toContain(`POST ${streamed}/slowly`);
    for (let i = 0; i < 3; i++) {
      expect((await exchangeRaw(stage.port, request('GET /stores'))).status).toBe(200);
      const short = ['Content-Type: application/json', 'Content-Length: 2'];
      expect((await exchangeRaw(stage.port, request('POST /stores', short, '{}'))).status).toBe(200);
    }
    for (const connection of slow) connection.close();
    await expect.poll(() => slow.every(({ socket }) => socket.destroyed)).toBe(true);
  },
);

/** X2: Node emits no more events for a request answered before its end, so the counts must not wait for one. */
it.each([
  ['too large', `POST ${streamed}`, 'x'.repeat(3_000_000)],
  ['refused by the shop', 'POST /early', 'x'.repeat(100_000)],
])('X2: 200 for another request after three bodies that are %s', async (_, line, octets) => {
  const chunk = `${octets.length.toString(16)}\r\n${octets}\r\n`;
  const text = 'Content-Type: text/plain';
  for (let i = 0; i < 3; i++) {
    const connection = await openRawConnection(stage.port);
    connection.write(request(line, [text, 'Transfer-Encoding: chunked'], chunk)).catch(() => {});
    expect([413, 200]).toContain((await connection.readResponse('POST')).status);
    connection.close();
  }
  const whole = request('POST /stores', [text, 'Transfer-Encoding: chunked'], '2\r\nok\r\n0\r\n\r\n');
  await expect.poll(async () => (await exchangeRaw(stage.port, whole)).status).toBe(200);
});
