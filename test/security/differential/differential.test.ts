import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../../harness/attack-stage.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { corpusOctets } from '../attacks/corpus-stage/token-less.ts';
import { mutate, mutations, requestOctets } from '../fuzz/arbitraries.ts';
import { sendAll, sendAnswered } from './send-whole.ts';
import { isProtectedToShop, type Understood } from './shop-rule.ts';
import { type Understanding, upstreams } from './upstreams.ts';

const plain = (target: string, fields: string[] = []) =>
  request(`GET ${target}`, ['Connection: close', ...fields]);
let markers = 0;

/** Made once, so that each server gets the same requests. */
const corpus = corpusOctets();
const generated = fc.sample(
  fc.tuple(requestOctets, mutations).map(([octets, steps]) => mutate(octets, steps)),
  Number(process.env.DIFFERENTIAL_RUNS ?? 600),
);

/**
 * Sends the same octets, without a valid token, through shopward to servers that read requests differently. No server may
 * read a protected resource in what arrives.
 */
for (const [name, start] of Object.entries(upstreams)) {
  describe.skipIf(start === undefined)(name, () => {
    let upstream: Understanding;
    let shopward: RunningShopward;
    beforeAll(async () => {
      if (start === undefined) return;
      upstream = await start();
      shopward = await startShopwardHere({ upstream: `http://127.0.0.1:${upstream.port}` });
    });
    afterAll(async () => {
      await shopward?.stop();
      await upstream?.close();
    });

    /** The requests that the server understood while `act` ran. */
    async function understoodWhile(act: () => Promise<unknown>): Promise<Understood[]> {
      const mark = async () => {
        const marker = `/marker-${markers++}`;
        await sendAnswered(upstream.port, plain(marker));
        return (await upstream.understood(marker)).length;
      };
      const before = await mark();
      await act();
      const after = await mark();
      const all = await upstream.understood(`/marker-${markers - 1}`);
      return all.slice(before, after - 1);
    }
    const protectedOnes = (seen: readonly Understood[]) => seen.filter(isProtectedToShop);

    it('the check recognizes protected requests: five of six sent to the server, and one sent with a token', async () => {
      const bare = await understoodWhile(async () => {
        for (const target of ['/orders', '//orders/1', '/stores/x/orders/1', '/%6frders', '/Carts/1;x']) {
          await sendAnswered(upstream.port, plain(target));
        }
        await sendAnswered(upstream.port, plain('/stores'));
      });
      expect(bare).toHaveLength(6);
      expect(protectedOnes(bare)).toHaveLength(5);
      const token = `Authorization: Bearer ${shopward.issueToken()}`;
      const passed = await understoodWhile(() => sendAnswered(shopward.port, plain('/orders', [token])));
      expect(protectedOnes(passed)).toHaveLength(1);
    });

    it('reads no attack of the corpus as a request for a protected resource', async () => {
      const seen = await understoodWhile(() => sendAll(shopward.port, corpus));
      expect(protectedOnes(seen)).toEqual([]);
      expect(seen.length).toBeGreaterThan(100);
      expect((await fetch(`${shopward.url}/stores`)).status).toBe(200);
    });

    it('reads no generated request as one for a protected resource', async () => {
      const seen = await understoodWhile(() => sendAll(shopward.port, generated));
      const bad = protectedOnes(seen);
      expect(bad, JSON.stringify(generated)).toEqual([]);
      expect(seen.length).toBeGreaterThan(20);
      expect((await fetch(`${shopward.url}/stores`)).status).toBe(200);
    });
  });
}
