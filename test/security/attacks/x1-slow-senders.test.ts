import { describe, expect, it } from 'vitest';
import { expectRejection, request, useAttackStage } from '../../harness/attack-stage.ts';
import { openRawConnection } from '../../harness/raw-client.ts';

const stage = useAttackStage();

/** X1: Node waits a minute for a head, and checks every 30 s. Shopward waits 10 s, and answers 408 to a head that has begun. */
describe('X1: 200 clients that never finish their head', () => {
  it('get 408 if they have begun one, while another client gets 200', async () => {
    const heads = [
      '',
      'G',
      'GET /orders HTTP/1.1\r\n',
      'GET /orders HTTP/1.1\r\nHost: shop.example\r\nX-A: 1\r\nX-',
    ];
    const slow = await Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        const connection = await openRawConnection(stage.port);
        const head = heads[i % heads.length] ?? '';
        if (head !== '') await connection.write(head);
        return { head, connection };
      }),
    );
    // Bytes that trickle in do not extend the time.
    const trickle = setInterval(() => {
      for (const { head, connection } of slow) if (head.endsWith('X-')) connection.write('a').catch(() => {});
    }, 500);
    expect((await stage.passes(request('GET /stores'))).response.status).toBe(200);
    const ends = slow.map(async ({ head, connection }) => {
      if (head !== '') expectRejection(await connection.readResponse(), 408, 'request-timeout');
      await connection.readAll();
      connection.close();
    });
    await Promise.all(ends);
    clearInterval(trickle);
    expect(stage.upstream.bytes()).not.toContain('/orders');
  });
});
