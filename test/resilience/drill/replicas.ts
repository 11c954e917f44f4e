import { type Shopward, type ShopwardOptions, startShopward } from '../../harness/shopward.ts';
import { shopwardSettings } from '../faults/settings.ts';
import type { Front } from './client.ts';
import type { Stage } from './outage.ts';
import type { OutageShop } from '../faults/shop.ts';

/** The shop works in every outage, so its answers have time. The log level is that of a deployment. */
export function settingsOf(redisUrl: string, store: object = {}): object {
  return {
    ...shopwardSettings(redisUrl, store),
    upstream: { responseTimeout: '30s' },
    log: { level: 'info' },
  };
}

/**
 * For outages that lose no process and no store, so that no client waits for the end of a lease. It is long, so that a
 * machine that stalls for three seconds causes no refusal.
 */
export const leaseThatNoClientLeaves = { lease: '14s', sendBy: '6s', wait: '5s' };

export function startReplica(
  shop: Pick<OutageShop, 'port'>,
  config: object,
  more: Partial<ShopwardOptions> = {},
): Promise<Shopward> {
  return startShopward({ upstream: `http://127.0.0.1:${shop.port}`, config, ...more });
}

/** An installation of one process. `closing` closes everything beside the process and the shop. */
export function stageOf(
  shop: OutageShop,
  shopward: Shopward,
  closing: () => unknown,
  front = frontOf(shopward),
): Stage {
  return {
    shop,
    processes: [shopward],
    fronts: () => [front],
    close: async () => {
      await closing();
      shop.close();
    },
  };
}

export function frontOf(shopward: Shopward, isTls = false): Front {
  return { port: shopward.port, token: shopward.issueToken(), isTls };
}

/** Refusals that are allowed while the store cannot be reached or is new. A read is never refused. */
export const storeAway = {
  read: [],
  // `overloaded`: `entityTags.sendBy` was over before the write could be sent.
  write: ['503 tag-store-unavailable', '503 resource-busy', '503 overloaded'],
  refresh: ['503 token-store-unavailable', '503 refresh-token-unavailable', '503 refresh-token-busy'],
};
export const nothing = { read: [], write: [], refresh: [] };
