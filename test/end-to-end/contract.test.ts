import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { bareChallenge, expectRejection, invalidTokenChallenge, request } from '../harness/attack-stage.ts';
import { createKeptClient, type KeptClient } from '../harness/kept-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { type ContractCall, contractCalls } from './demo/contract-calls.ts';

/** A proxy with each shipped list, in front of the demo shop, which signs the tokens. */
describe.each(['config/protected-resources.yaml', 'config/protected-resources.hardened.yaml'])(
  '%s',
  (listFile) => {
    let shop: DemoShop;
    let shopward: RunningShopward;
    let client: KeptClient;

    let folder: string;

    beforeAll(async () => {
      shop = await startDemoShop();
      folder = await mkdtemp(path.join(tmpdir(), 'shopward-contract-'));
      // A key file, because a bad signature makes shopward fetch `jwks` again, and the request waits.
      const keyFile = path.join(folder, 'jwks.json');
      await writeFile(keyFile, await (await fetch(shop.jwksUrl)).text());
      shopward = await startShopwardHere({
        upstream: shop.url,
        listFile,
        // Without entity tags, so that no call needs an `If-Match`.
        config: {
          auth: { keys: { files: [keyFile] }, subject: 'sub.customer_reference' },
          entityTags: false,
        },
      });
      client = createKeptClient(shopward.port);
    });
    afterAll(async () => {
      client?.close();
      await shopward?.stop();
      await shop?.close();
      await rm(folder, { recursive: true });
    });

    const ask = ({ method, path: target, body }: ContractCall, fields: readonly string[], verb = method) => {
      const text = body === undefined ? '' : JSON.stringify(body);
      const framing = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(text)}`];
      const type = ['Accept: application/vnd.api+json', 'Content-Type: application/vnd.api+json'];
      return client.exchange(request(`${verb} ${target}`, [...type, ...framing, ...fields], text));
    };

    it('there are calls for all 56 rows', () => {
      expect(contractCalls).toHaveLength(56);
    });

    describe.each(contractCalls)('$row', (call) => {
      const verbs = call.method === 'GET' ? ['GET', 'HEAD'] : [call.method];

      it.each(verbs)('401 without a token (%s)', async (verb) => {
        shop.received.clear();
        for (const fields of [[], ['Authorization:'], ['Authorization:   ']]) {
          const response = await ask(call, fields, verb);
          expectRejection(response, 401, '002', verb);
          expect(response.field('www-authenticate')).toBe(bareChallenge);
        }
        expect([shop.received.total, shop.received.malformed]).toEqual([0, 0]);
      });

      it.each(verbs)('401 with a malformed, forged or expired token (%s)', async (verb) => {
        const good = await shop.issueTokenFor(call.as);
        const expired = await shop.issueTokenFor(call.as, { exp: Math.floor(Date.now() / 1000) - 60 });
        shop.received.clear();
        for (const token of ['3485h7', `${good.slice(0, -6)}AAAAAA`, expired]) {
          const response = await ask(call, [`Authorization: Bearer ${token}`], verb);
          expectRejection(response, 401, '001', verb);
          expect(response.field('www-authenticate')).toBe(invalidTokenChallenge);
        }
        expect([shop.received.total, shop.received.malformed]).toEqual([0, 0]);
      });

      it('the answer of the shop with a valid token', async () => {
        shop.reset();
        shop.received.clear();
        const response = await ask(call, [`Authorization: Bearer ${await shop.issueTokenFor(call.as)}`]);
        expect([response.status, response.body.toString().slice(0, 200)]).toEqual([
          call.status,
          expect.any(String),
        ]);
        expect(shop.received.requests.map(({ method, target }) => [method, target])).toEqual([
          [call.method, call.path],
        ]);
      });
    });

    it('all calls succeed one after another, each with the token of its customer', async () => {
      shop.reset();
      const statuses: string[] = [];
      for (const call of contractCalls) {
        const { status } = await ask(call, [`Authorization: Bearer ${await shop.issueTokenFor(call.as)}`]);
        statuses.push(`${call.row} ${status}`);
      }
      expect(statuses).toEqual(contractCalls.map(({ row, status }) => `${row} ${status}`));
    });

    it('HEAD of a GET row is forwarded as HEAD', async () => {
      const call = contractCalls.find(({ row }) => row === 'GET /orders');
      if (call === undefined) throw new Error('no such row');
      shop.received.clear();
      const response = await ask(
        call,
        [`Authorization: Bearer ${await shop.issueTokenFor(call.as)}`],
        'HEAD',
      );
      // The demo shop has no route for HEAD.
      expect([response.status, response.body.length]).toEqual([404, 0]);
      expect(shop.received.requests.map(({ method }) => method)).toEqual(['HEAD']);
    });

    it('the log contains no token', () => {
      expect(shopward.output()).not.toContain('eyJ');
    });
  },
);
