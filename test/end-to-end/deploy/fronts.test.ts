import { connect } from 'node:http2';
import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';
import { testCertificate } from '../../harness/tls-fixture.ts';
import { balancers, type Front, fronts } from './front.ts';

/** Not 127.0.0.1, the address of the front, which is a trusted proxy. */
const clientAddress = '127.0.0.9';
const adminToken = 'a-token-for-operators';
/** Long enough for a front to compress it. */
const body = JSON.stringify({ data: { type: 'carts', id: '1', note: 'x'.repeat(4096) } });

interface Answer {
  readonly status: number;
  readonly fields: Readonly<Record<string, string | string[] | undefined>>;
}

function ask(port: number, path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request(
      {
        host: '127.0.0.1',
        port,
        path,
        headers: { Host: 'api.shop.example', ...headers },
        localAddress: clientAddress,
        ca: testCertificate,
        servername: 'localhost',
        agent: false,
      },
      (response) => {
        response.resume();
        response.on('end', () => resolve({ status: response.statusCode ?? 0, fields: response.headers }));
      },
    )
      .on('error', reject)
      .end();
  });
}

describe.each(Object.entries(fronts))('%s with the shipped snippet', (_, start) => {
  describe.skipIf(start === undefined)('in front', () => {
    let upstream: RecordingUpstream;
    let shopward: Shopward;
    let front: Front;

    beforeAll(async () => {
      upstream = await startRecordingUpstream(() =>
        answer(body, 'Content-Type: application/vnd.api+json\r\n'),
      );
      shopward = await startShopward({
        upstream: `http://127.0.0.1:${upstream.port}`,
        config: { trustedProxies: ['127.0.0.1/32'], admin: { token: adminToken } },
      });
      front = (await start?.(shopward)) as Front;
    });
    afterAll(async () => {
      await front?.close();
      await shopward?.kill();
      await upstream?.close();
    });

    it('sends the real client address despite forged fields, and the target byte for byte', async () => {
      const target = '/stores/a%2Bb;c?url=%2Fen&q=a%5Cb';
      const forged = { 'X-Forwarded-For': '6.6.6.6', 'X-Forwarded-Proto': 'ftp', 'X-Request-Id': 'forged' };
      expect((await ask(front.port, target, forged)).status).toBe(200);
      const bytes = upstream.bytes();
      expect(bytes).toContain(`GET ${target} HTTP/1.1\r\n`);
      expect(bytes).toMatch(/^x-forwarded-for: [^\r]*\b127\.0\.0\.9(, 127\.0\.0\.1)?\r$/im);
      expect(bytes).toMatch(/^x-forwarded-proto: https\r$/im);
      expect(bytes).toMatch(/^x-forwarded-host: api\.shop\.example\r$/im);
      expect(bytes).not.toMatch(/forged/);
      const line = await shopward.waitForLog(({ event }) => event === 'request');
      expect(line).toMatchObject({ clientAddress, status: 200 });
    });

    it('serves HTTP/2, with the same decisions', async () => {
      const session = connect(`https://127.0.0.1:${front.port}`, {
        ca: testCertificate,
        servername: 'localhost',
      });
      const status = (fields: Readonly<Record<string, string>>) =>
        new Promise<number>((resolve, reject) => {
          const stream = session.request({ ':authority': 'api.shop.example', ...fields });
          stream.on('response', (head) => resolve(Number(head[':status']))).on('error', reject);
          stream.resume();
          stream.end();
        });
      const authorization = `Bearer ${shopward.issueToken()}`;
      expect([
        await status({ ':path': '/orders' }),
        await status({ ':path': '/orders', authorization }),
        await status({ ':path': '/stores/%2e%2e/orders' }),
        await status({ ':path': '/carts/1', ':method': 'PATCH', authorization }),
      ]).toEqual([401, 200, 400, 428]);
      expect(session.alpnProtocol).toBe('h2');
      await new Promise<void>((resolve) => session.close(resolve));
    });

    it('forwards the target unnormalised, so that shopward decides on it', async () => {
      expect((await ask(front.port, '//orders')).status).toBe(401);
      expect((await ask(front.port, '/stores/%2e%2e/orders')).status).toBe(400);
      expect((await ask(front.port, '/orders')).fields['www-authenticate']).toMatch(/^Bearer/);
    });

    it('accepts a token of more than 6,000 characters', async () => {
      const authorization = `Bearer ${shopward.issueToken({ permissions: 'p'.repeat(6000) })}`;
      expect((await ask(front.port, '/orders', { Authorization: authorization })).status).toBe(200);
    });

    it('leaves entity tags strong for clients that accept gzip', async () => {
      const headers = { 'Accept-Encoding': 'gzip', Authorization: `Bearer ${shopward.issueToken()}` };
      const { status, fields } = await ask(front.port, '/carts/1', headers);
      expect([status, fields.etag]).toEqual([200, expect.stringMatching(/^"[^"]+"$/)]);
      const again = { ...headers, 'If-None-Match': String(fields.etag) };
      expect((await ask(front.port, '/carts/1', again)).status).toBe(304);
    });
  });
});

describe.each(Object.entries(balancers))(
  '%s between shopward and two shops, by the shipped snippet',
  (_, start) => {
    describe.skipIf(start === undefined)('as balancer', () => {
      const shops: RecordingUpstream[] = [];
      let balancer: Front;
      let shopward: Shopward;

      beforeAll(async () => {
        for (let i = 0; i < 2; i += 1)
          shops.push(
            await startRecordingUpstream(() => answer(body, 'Content-Type: application/vnd.api+json\r\n')),
          );
        const [one, two] = shops.map(({ port }) => port) as [number, number];
        balancer = (await start?.([one, two])) as Front;
        shopward = await startShopward({ upstream: `http://127.0.0.1:${balancer.port}` });
      });
      afterAll(async () => {
        await shopward?.kill();
        await balancer?.close();
        for (const shop of shops) await shop.close();
      });

      const send = (line: string, fields: readonly string[] = [], content = '') => {
        const length = content === '' ? [] : [`Content-Length: ${content.length}`];
        const lines = [`${line} HTTP/1.1`, 'Host: s', 'Connection: close', ...length, ...fields, '', content];
        return exchangeRaw(shopward.port, lines.join('\r\n'));
      };

      it('spreads requests and changes neither targets nor tags', async () => {
        const target = '/stores/a%2Bb;c//d?url=%2Fen&q=a%5Cb';
        const asked = await Promise.all(Array.from({ length: 16 }, () => send(`GET ${target}`)));
        expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([200]));
        for (const shop of shops) expect(shop.requestLines).toContain(`GET ${target} HTTP/1.1`);
        const token = `Authorization: Bearer ${shopward.issueToken()}`;
        const etag = (await send('GET /carts/1', [token])).field('etag');
        const write = () => send('PATCH /carts/1', [token, `If-Match: ${etag}`], '{}');
        expect([(await write()).status, (await write()).status]).toEqual([200, 412]);
      });

      it('uses the other shop after one has ended', async () => {
        await shops.shift()?.close();
        await eventually('ten answers in a row', async () => {
          for (let i = 0; i < 10; i += 1) if ((await send('GET /open')).status !== 200) return undefined;
          return true;
        });
      });
    });
  },
);
