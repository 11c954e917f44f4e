import type { Agreement } from '../redis/members.ts';
import type { RedisStatus } from '../redis/redis.ts';
import type { Health } from '../redis/store-health.ts';

/** From this share of `maxmemory` on the store counts as nearly full. */
const fullShare = 0.8;
const urgentShare = 0.95;

/** Why `/readyz` and the console should speak of the store, in words for people; the most pressing first. */
export function storeReasons(
  { status, cause }: Health,
  { replication, claims, facts, missingRights }: RedisStatus,
  replicas: number,
  agreement: Agreement | undefined,
): readonly string[] {
  const reasons: string[] = [];
  if (status !== 'ready')
    reasons.push(`Redis is ${status}${cause === undefined ? '' : `: ${nameOf(cause)}`}`);
  if (replication?.status === 'away') {
    const confirmed =
      replication.cause?.text ?? `${claims.lastConfirmed ?? 0} of ${replicas} replicas confirm`;
    reasons.push(`Redis: ${confirmed} (store.replicas is ${replicas}); tracked writes and exchanges get 503`);
  }
  if (missingRights.length > 0) reasons.push(`Redis: its user may not use ${missingRights.join(', ')}`);
  const { usedBytes = 0, maxBytes = 0 } = facts?.memory ?? {};
  const share = maxBytes === 0 ? 0 : usedBytes / maxBytes;
  if (share >= fullShare) {
    const what = share >= urgentShare ? '; when it is full, tracked writes and exchanges get 503' : '';
    reasons.push(`Redis is ${Math.round(share * 100)}% full${what}`);
  }
  for (const problem of agreement?.problems ?? []) reasons.push(`store: ${problem}`);
  return reasons;
}

function nameOf({ text, word }: NonNullable<Health['cause']>): string {
  return text ?? word;
}
