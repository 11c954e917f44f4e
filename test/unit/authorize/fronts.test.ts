import { once } from 'node:events';
import { connect } from 'node:http2';
import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { asking } from '../../end-to-end/deploy/front.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { type AskingStage, startAskingStage } from './asking-stage.ts';

const json = 'Content-Type: application/json';

describe.each(Object.entries(asking))('%s with the shipped sample', (name, start) => {
  describe.skipIf(start === undefined)('that asks shopward', () => {
    let shop: RecordingUpstream;
    let stage: AskingStage;
    let token: string;
    const heads: string[] = [];

    beforeAll(async () => {
      shop = await startRecordingUpstream(({ head }) => {
        heads.push(head);
        if (head.startsWith('GET /broken')) return answer('of the shop', '', '500 Internal Server Error');
        return answer(head.startsWith('HEAD ') ? '' : 'of the shop');
      });
      if (start === undefined) return;
      stage = await startAskingStage(start, shop.port, {
        rows: ['GET /orders', 'DELETE /things/{id}', { match: 'GET /reports', scopes: ['analyst'] }],
        config: {
          auth: {
            forward: { subject: 'X-User' },
            ...{ proof: 'dpop', proofNonceSecret: 'a-secret-of-at-least-thirty-two-characters' },
          },
          rateLimits: {
            rows: [{ method: 'GET', path: '/limited', requests: 1, per: '1d', mode: 'enforce' }],
          },
        },
      });
      token = `Authorization: Bearer ${stage.shopward.issueToken({ permissions: 'p'.repeat(6000) })}`;
    });
    afterAll(async () => {
      await stage?.close();
      await shop?.close();
    });

    async function ask(line: string, fields: readonly string[] = [], body = '') {
      heads.length = 0;
      const length = body === '' ? [] : [`Content-Length: ${body.length}`];
      const all = [`${line} HTTP/1.1`, 'Host: api.shop.example', ...fields, ...length, 'Connection: close'];
      const response = await exchangeRaw(stage.port, [...all, '', body].join('\r\n'), line.split(' ')[0]);
      const [head = ''] = heads;
      return { status: response.status, response, head };
    }

    it('forwards what shopward allows, target and body as they came', async () => {
      const target = '/stores/a%2Bb;c?url=%2Fen&q=a%5Cb&a=%c3';
      const { status, head, response } = await ask(`GET ${target}`);
      expect([status, response.body.toString()]).toEqual([200, 'of the shop']);
      expect(head.split('\r\n')[0]).toBe(`GET ${target} HTTP/1.1`);
      expect(head).not.toMatch(/^(?:x-user|authorization):/im);
      expect((await ask('POST /orders', [json], '{"a":1}')).status).toBe(200);
      expect(shop.bytes()).toContain('{"a":1}');
      expect((await ask('HEAD /stores')).status).toBe(200);
      const broken = await ask('GET /broken');
      expect([broken.status, broken.response.body.toString()]).toEqual([500, 'of the shop']);
    });

    it('sends the identity of a good token to the shop, and the token in its canonical spelling', async () => {
      const { status, head } = await ask('GET /orders', [token.replace('Bearer', 'bearer')]);
      expect(status).toBe(200);
      expect(head).toMatch(/^x-user: DE--21\r$/im);
      expect(head.toLowerCase()).toContain(`${token.toLowerCase()}\r\n`);
      expect(head.match(/^authorization:/gim)).toHaveLength(1);
      expect(head).toContain(token.slice(15));
    });

    /** The shop gets none of these requests. */
    it.each<readonly [string, readonly string[], number]>([
      ['GET /orders', [], 401],
      ['GET /orders', ['Authorization: Bearer x.y.z'], 401],
      ['HEAD /orders', [], 401],
      ['GET /Orders/', [], 401],
      ['POST /things/1', ['Content-Type: application/x-www-form-urlencoded'], 401],
      ['POST /things/1', [], 401],
      ['POST /stores', [json, 'X-HTTP-Method-Override: DELETE'], 400],
      ['GET /stores', ['X-Original-URL: /orders'], 400],
      ['GET /stores', ['X-Rewrite-URL: /orders'], 400],
      ['GET /stores', ['X-User: admin'], 400],
      ['GET /stores', ['Remote-User: admin'], 400],
      ['GET /a/../orders', [], 400],
      ['GET /a/%2e%2e/orders', [], 400],
      ['GET //orders', [], 400],
      ['GET /%6frders', [], 400],
      ['GET /orders', ['X-Forwarded-Method: POST', 'X-Forwarded-Uri: /stores'], 401],
      ['GET /orders', ['X-Original-Method: POST', 'X-Original-URI: /stores'], 401],
      ['GET /orders', ['Connection: X-Original-URI, X-Forwarded-Uri'], 401],
    ])('%s with %j: %i', async (line, fields, wanted) => {
      const { status, head, response } = await ask(line, fields);
      expect([status, head]).toEqual([wanted, '']);
      if (wanted === 401) expect(response.field('www-authenticate')).toMatch(/^Bearer realm=/);
    });

    it('gives clients the nonce for their proofs with the challenge', async () => {
      const { response } = await ask('GET /orders');
      expect(response.field('www-authenticate')).toMatch(/^Bearer .*, DPoP /);
      expect(response.field('dpop-nonce')).toMatch(/^[\w-]{43}$/);
    });

    it('refuses requests that the token does not allow, WebSockets, and a client above its rate limit', async () => {
      expect((await ask('GET /reports', [token])).status).toBe(403);
      const upgrade = ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'];
      const key = 'Sec-WebSocket-Key: eHh4eHh4eHh4eHh4eHh4eA==';
      const { head, status } = await ask('GET /stores', [...upgrade, key]);
      expect(head).not.toMatch(/^upgrade:/im);
      if (name === 'nginx') expect([status, head]).toEqual([400, '']);
      expect([(await ask('GET /limited')).status, (await ask('GET /limited')).status]).toEqual([200, 429]);
    });

    it('forwards no field of a client that only the front may set', async () => {
      const forwarded = 'Method Uri Host Port Server For Proto'
        .split(' ')
        .map((name) => `X-Forwarded-${name}`);
      for (const field of [...forwarded, 'X-Original-Method', 'X-Original-URI', 'X-Real-IP']) {
        const { status, head } = await ask('GET /stores', [`${field}: forged`]);
        const isSent = head.includes('forged') && field !== 'X-Forwarded-For';
        expect([field, status, isSent]).toEqual([field, 200, false]);
      }
      expect(stage.questions.at(-1)).toMatchObject({ method: 'GET', target: '/stores', status: 200 });
    });

    it('asks about the host that the shop gets if the client names none', async () => {
      heads.length = 0;
      const { status } = await exchangeRaw(stage.port, 'GET /stores HTTP/1.0\r\n\r\n');
      const hosts = heads.map((head) => /^host: (.*)\r$/im.exec(head)?.[1]);
      expect(hosts).toEqual(status === 200 ? [stage.questions.at(-1)?.host] : []);
    });

    // After an error in a script HAProxy goes on to the next rule.
    it.runIf(['HAProxy', 'Apache'].includes(name))(
      'sends nothing to the shop when its script fails',
      async () => {
        const ports = { shop: shop.port, authorize: 1, script: 'error("broken")' };
        const { port, close } = await (start as NonNullable<typeof start>)(ports);
        const asked = request({ host: '127.0.0.1', port, path: '/unasked', rejectUnauthorized: false }).end();
        const [{ statusCode }] = await once(asked, 'response');
        await close();
        expect([statusCode >= 500, shop.requestLines.includes('GET /unasked HTTP/1.1')]).toEqual([
          true,
          false,
        ]);
      },
    );

    it.skipIf(name === 'Apache')('decides the same under HTTP/2', async () => {
      const session = connect(`https://127.0.0.1:${stage.tlsPort}`, { rejectUnauthorized: false });
      const status = async (fields: Readonly<Record<string, string>>) => {
        const stream = session.request({ ':authority': 'api.shop.example', ...fields });
        stream.resume().end();
        const [head] = await once(stream, 'response');
        return head[':status'];
      };
      const authorization = token.slice('Authorization: '.length);
      heads.length = 0;
      expect([
        await status({ ':path': '/orders' }),
        await status({ ':path': '/orders?a=%c3', authorization }),
        await status({ ':path': '/stores/%2e%2e/orders' }),
        await status({ ':path': '/things/1', ':method': 'POST' }),
        await status({ ':path': '/stores', 'x-original-url': '/orders' }),
      ]).toEqual([401, 200, 400, 401, 400]);
      expect(heads.map((head) => head.split('\r\n')[0])).toEqual(['GET /orders?a=%c3 HTTP/1.1']);
      await new Promise<void>((resolve) => session.close(resolve));
    });

    it('keeps a field of the answer that the client names in Connection', async () => {
      const { status, head } = await ask('GET /orders', [token, 'Connection: X-User']);
      expect([status, head.match(/^x-user: (.*)\r$/im)?.[1], /^connection:.*x-user/im.test(head)]).toEqual([
        ...[200, 'DE--21', false],
      ]);
    });

    it('answers an error, and sends nothing to the shop, once shopward is gone', async () => {
      await stage.shopward.stop();
      const { status, head } = await ask('GET /stores');
      expect([status >= 500, head, name]).toEqual([true, '', name]);
    });
  });
});
