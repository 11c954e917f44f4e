import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  describeFinding,
  type ForwardingStage,
  openStage,
} from '../differential/pair-shop/forwarding-stage.ts';
import type { PairShop } from '../differential/pair-shop/pair-shop.ts';
import { shopRequests } from '../differential/pair-shop/shop-requests.ts';
import { listNames } from '../differential/pair-shop/shop-routes.ts';
import { type FuzzTarget, fuzzTarget } from './fuzz-target.ts';

let shop: PairShop | undefined;
let stages: readonly ForwardingStage[] = [];

/** The real process in front of a shop of pairs on Symfony's routers: no protected action runs without a token. */
export const pairShop: FuzzTarget = fuzzTarget(
  'pair-shop',
  fc.array(shopRequests, { minLength: 1, maxLength: 400, size: 'max' }),
  async (requests) => {
    for (const stage of stages) {
      const findings = await stage.send(requests);
      assert(findings.length === 0, findings.map(describeFinding).join('\n'));
    }
  },
  {
    runs: 2,
    open: async () => {
      // Loaded late: it looks for PHP, which `--help` does not need.
      const { startPairShop } = await import('../differential/pair-shop/pair-shop.ts');
      if (startPairShop === undefined) return;
      shop = startPairShop();
      const opened: ForwardingStage[] = [];
      for (const list of listNames) opened.push(await openStage(list, shop));
      stages = opened;
    },
    close: async () => {
      for (const stage of stages) await stage.close();
      await shop?.close();
    },
    figures: () => stages.map(({ counts }) => JSON.stringify(counts)).join('\n'),
  },
);
