import { shopwardSettings } from '../faults/settings.ts';
import { type Shopward, type ShopwardOptions, startShopward } from '../../harness/shopward.ts';
import type { Front } from './client.ts';
import type { DrillShop } from './shop.ts';

/** Short times of the store, and every line that an operator would have. */
export function settingsOf(redisUrl: string, store: object = {}): object {
  return { ...shopwardSettings(redisUrl, store), log: { level: 'info' } };
}

/** The same where neither the store nor the shop is the subject: only a machine that stands still is slower. */
export function patientSettings(redisUrl: string, store: object = {}): object {
  return {
    store: { url: redisUrl, timeout: '2s', ...store },
    upstream: { responseTimeout: '5s' },
    entityTags: { lease: '8s', sendBy: '3s', wait: '5s' },
    log: { level: 'info' },
  };
}

/**
 * Where no process and no store is lost, nobody waits for the end of a lease: it may be so long that a machine that stands
 * still for three seconds is no reason to refuse a write.
 */
export const leaseThatNobodyLeaves = { lease: '14s', sendBy: '6s', wait: '5s' };

export function startReplica(
  shop: Pick<DrillShop, 'port'>,
  config: object,
  more: Partial<ShopwardOptions> = {},
): Promise<Shopward> {
  return startShopward({ upstream: `http://127.0.0.1:${shop.port}`, config, ...more });
}

export function frontOf(shopward: Shopward, isTls = false): Front {
  return { port: shopward.port, token: shopward.issueToken(), isTls };
}

/** What clients may see besides the usual while the store is away or new: never of a read. */
export const storeAway = {
  read: [],
  // Overloaded: a claim came so late that `entityTags.sendBy` was over before the write could leave.
  write: ['503 tag-store-unavailable', '503 resource-busy', '503 overloaded'],
  refresh: ['503 token-store-unavailable', '503 refresh-token-unavailable', '503 refresh-token-busy'],
};
export const nothing = { read: [], write: [], refresh: [] };
