import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startShopward } from '../../harness/shopward.ts';
import { committedSeed } from '../fuzz/fuzz-target.ts';
import {
  describeFinding,
  type Finding,
  type ForwardingStage,
  openStage,
} from './pair-shop/forwarding-stage.ts';
import { type PairShop, startPairShop } from './pair-shop/pair-shop.ts';
import { type ClientRequest, exchangeBodies, shopRequests } from './pair-shop/shop-requests.ts';
import { isProtectedBy, type ListName, listNames } from './pair-shop/shop-routes.ts';

const runs = Number(process.env.DIFFERENTIAL_RUNS ?? 1500);
const seed = committedSeed();
const generated = (from = seed) => fc.sample(shopRequests, { numRuns: runs, seed: from });

const plain = (method: string, target: string): ClientRequest => ({
  ...{ method, target, fields: [], body: '', isSignedIn: false },
});

describe.skipIf(startPairShop === undefined)("a shop of pairs on Symfony's routers", () => {
  let shop: PairShop;
  beforeAll(() => {
    if (startPairShop !== undefined) shop = startPairShop();
  });
  afterAll(() => shop?.close());

  async function withStage<T>(
    list: ListName,
    options: Parameters<typeof openStage>[2],
    act: (stage: ForwardingStage) => Promise<T>,
  ): Promise<T> {
    const stage = await openStage(list, shop, options);
    try {
      return await act(stage);
    } finally {
      await stage.close();
    }
  }

  it('runs the expected actions for each path and method', async () => {
    const asked = async (method: string, target: string, fields: string[] = []) => {
      const [interpretation] = await shop.interpret([{ method, target, fields, body: '' }]);
      const met = interpretation?.actions.filter((action) => isProtectedBy('hardened', action)) ?? [];
      return [...new Set(met.map(({ versions, reading }) => `${versions}, ${reading}`))];
    };
    const everywhere = ['off', 'v', 'any'].flatMap((mode) => [`${mode}, as it came`, `${mode}, decoded`]);
    expect(await asked('GET', '/carts')).toEqual(everywhere);
    expect(await asked('GET', '//\\carts/1/\\/?x=/stores')).toEqual(everywhere);
    expect(await asked('GET', '/index.php/carts')).toEqual(everywhere);
    expect(await asked('GET', '/index.phpcarts/1')).toEqual(everywhere);
    expect(await asked('GET', 'http://x/carts')).toEqual(everywhere);
    expect(await asked('GET', '/carts/17/up-selling-products/x')).toEqual(everywhere);
    expect(await asked('PATCH', '/carts/x/y/z/carts/1')).toEqual(everywhere);
    expect(await asked('POST', '/carts/1', ['X-HTTP-Method-Override', 'patch'])).toEqual(everywhere);
    expect(await asked('POST', '/carts/1?_method=DELETE')).toEqual(everywhere);
    expect(await asked('GET', '/index.phpv0/carts')).toEqual(everywhere.slice(2));
    expect(await asked('GET', '/v0.42/carts')).toEqual(everywhere.slice(2));
    expect(await asked('GET', '/1.0/carts')).toEqual(everywhere.slice(4));
    const decoded = everywhere.filter((one) => one.endsWith('decoded'));
    expect(await asked('GET', '/%63arts')).toEqual(decoded);
    expect(await asked('GET', '/carts%2f1')).toEqual(decoded);
    for (const target of ['/Carts', '/x/carts', '/stores', '/carts/1/x']) {
      expect(await asked('GET', target), target).toEqual([]);
    }
    expect(await asked('PATCH', '/carts//items/1')).toEqual([]);
  });

  it.each(listNames)(
    `finds nothing behind shopward with the %s list (${runs} requests, seed ${seed})`,
    async (list) => {
      // In its own process, whose exit code shows that no request has stopped it.
      await withStage(list, { start: startShopward }, async (stage) => {
        const findings = await stage.send(generated());
        expect(findings.map(describeFinding)).toEqual([]);
        const { forwarded, acted, statuses } = stage.counts;
        expect(forwarded).toBeGreaterThan(runs / 20);
        expect(acted).toBeGreaterThan(runs / 50);
        // Broken connections and 503 answers, which hide findings, are rare.
        expect((statuses[0] ?? 0) + (statuses[503] ?? 0), JSON.stringify(statuses)).toBeLessThan(runs / 100);
      });
    },
  );

  /** Sends generated requests until these kinds are found, with at most ten fixed seeds. */
  async function expectToFind(stage: ForwardingStage, ...kinds: readonly Finding['kind'][]) {
    const found = new Set<Finding['kind']>();
    for (let from = 1; from <= 10 && !kinds.every((kind) => found.has(kind)); from++) {
      for (const { kind } of await stage.send(generated(from))) found.add(kind);
    }
    expect([...found].toSorted()).toEqual(expect.arrayContaining([...kinds]));
    return found;
  }
  const linesOf = (findings: readonly Finding[]) => new Set(findings.map(({ line }) => line));

  it('finds protected actions behind a version when `versionSegments` is off', async () => {
    await withStage('contract', { config: { request: { versionSegments: false } } }, async (stage) => {
      const named = ['/v0/carts', '/v0.0/orders', '/index.phpv0/wishlists', '/v0.42/wishlists'];
      expect(linesOf(await stage.send(named.map((target) => plain('GET', target)))).size).toBe(4);
      const [exchanged] = await stage.send([
        { ...plain('POST', '/v0/refresh-tokens'), ...exchangeBodies[0] },
      ]);
      expect(exchanged?.kind).toBe('used token exchanged');
      await expectToFind(stage, 'protected action without a token');
    });
  });

  it('finds protected actions in item forms when `itemForms` is off', async () => {
    await withStage('contract', { config: { request: { itemForms: false } } }, async (stage) => {
      const named = ['/carts/17/up-selling-products/x', '/carts/17/cart-codes/x/'];
      expect(linesOf(await stage.send(named.map((target) => plain('GET', target)))).size).toBe(2);
      await expectToFind(stage, 'protected action without a token');
    });
  });

  it('finds writes without If-Match and exchanges of used tokens when both filters are off', async () => {
    await withStage('hardened', { config: { entityTags: false, refreshTokens: false } }, async (stage) => {
      const found = await expectToFind(stage, 'tracked write without If-Match', 'used token exchanged');
      expect(found.size).toBe(2);
    });
  });
});
