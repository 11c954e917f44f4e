import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

let delayed: (() => void)[] = [];
let most = 0;
const stage = useAttackStage({
  config: { upstream: { connections: 8 } },
  script: ({ head }) => {
    const body = /^GET \/big/.test(head) ? 'x'.repeat(1_000_000) : (/n=\d+/.exec(head)?.[0] ?? 'ok');
    if (!/^\w+ \/delayed/.test(head)) return answer(body);
    return new Promise((resolve) => {
      delayed.push(() => resolve(answer(body)));
      most = Math.max(most, delayed.length);
    });
  },
});

function release(): void {
  for (const go of delayed.splice(0)) go();
}

async function inFlight(): Promise<number> {
  const text = await (await fetch(`${stage.shopward.adminUrl}/metrics`)).text();
  const upstream = Number(/^shopward_upstream_active_requests (\d+)$/m.exec(text)?.[1]);
  return Number(/^http_server_active_requests (\d+)$/m.exec(text)?.[1]) + upstream;
}

/** Polls often, since the wait is a few milliseconds. */
const often = { interval: 2 };
const numbered = Array.from({ length: 1000 }, (_, n) => request(`GET /stores?n=${n}`));

/** X8, F15: the requests of one connection reach the upstream one after another. */
describe('X8: pipelining', () => {
  it('17 requests in one write are answered in order, twenty times on one connection', async () => {
    const connection = await openRawConnection(stage.port);
    for (let round = 0; round < 20; round += 1) {
      await connection.write(numbered.slice(0, 17).join(''));
      for (let n = 0; n < 17; n += 1) {
        const response = await connection.readResponse();
        expect([response.status, response.body.toString()]).toEqual([200, `n=${n}`]);
      }
    }
    connection.close();
  });

  it('the upstream gets one request at a time', async () => {
    delayed = [];
    most = 0;
    const connection = await openRawConnection(stage.port);
    await connection.write(Array(17).fill(request('GET /delayed')).join(''));
    for (let n = 0; n < 17; n += 1) {
      await expect.poll(() => delayed.length, often).toBe(1);
      release();
      expect((await connection.readResponse()).status).toBe(200);
    }
    connection.close();
    expect(most).toBe(1);
  });

  it('POSTs with bodies and GETs in turn are answered in order', async () => {
    const post = (n: number) =>
      request(
        `POST /stores?n=${n}`,
        ['Content-Type: text/plain', 'Content-Length: 70000'],
        'b'.repeat(70_000),
      );
    const connection = await openRawConnection(stage.port);
    await connection.write(
      Array.from({ length: 8 }, (_, n) => post(n) + request(`GET /stores?n=${n}`)).join(''),
    );
    for (let n = 0; n < 16; n += 1) {
      expect((await connection.readResponse()).body.toString()).toBe(`n=${n >> 1}`);
    }
    connection.close();
  });

  it('a request in the body of a refused POST is not executed', async () => {
    const body = request('GET /smuggled');
    const post = request(
      'POST /returns',
      ['Content-Type: text/plain', `Content-Length: ${body.length}`],
      body,
    );
    const connection = await openRawConnection(stage.port);
    await connection.write((post + request('GET /stores?n=1')).repeat(8));
    for (let n = 0; n < 8; n += 1) {
      expect((await connection.readResponse()).status).toBe(401);
      expect((await connection.readResponse()).body.toString()).toBe('n=1');
    }
    connection.close();
    expect(stage.upstream.bytes()).not.toContain('/smuggled');
  });

  it.each(['/delayed', '/big'])(
    'no request stays active after a client has left while %s was pending',
    async (path) => {
      for (let i = 0; i < 20; i += 1) {
        delayed = [];
        const connection = await openRawConnection(stage.port);
        await connection.write(
          request('GET /delayed') +
            Array(20)
              .fill(request(`GET ${path}`))
              .join(''),
        );
        await expect.poll(() => delayed.length, often).toBeGreaterThan(0);
        connection.close();
        release();
      }
      await expect.poll(inFlight, { timeout: 20_000 }).toBe(0);
      expect((await stage.passes(request('GET /stores'))).response.status).toBe(200);
    },
  );

  it.each([18, 1_000, 20_000])(
    '17 of %i requests in one write are answered, then the connection ends',
    async (count) => {
      const connection = await openRawConnection(stage.port);
      connection
        .write(
          numbered
            .join('')
            .repeat(20)
            .split('GET')
            .slice(0, count + 1)
            .join('GET'),
        )
        .catch(() => {});
      for (let n = 0; n < 17; n += 1) {
        const response = await connection.readResponse();
        expect([response.body.toString(), response.field('connection') === 'close']).toEqual([
          `n=${n}`,
          n === 16,
        ]);
      }
      expect(String(await connection.readAll())).toBe('');
      connection.close();
    },
  );
});
