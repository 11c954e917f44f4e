import { NamedEntries } from '../lib/fair-queue.ts';
import { defineClaim, type RedisRecords } from '../redis/redis.ts';

/** `used`: by an earlier request. `full`: there is no room left, at all or for this client. `unknown`: the store gave no answer. */
type ProofUse = 'first' | 'used' | 'full' | 'unknown';

/** Marks a proof as used. `id`: a digest of its key and its `jti`. */
export type UseProof = (id: string, client: string) => ProofUse | Promise<ProofUse>;

interface UsedProofsOptions {
  /** Milliseconds after which every process refuses the proof by its age. */
  readonly keptMs: number;
  /** Largest share of the room for one client, in percent. */
  readonly sharePercent: number;
  /** Undefined: only this process knows its proofs. */
  readonly records?: RedisRecords | undefined;
  readonly nowMs?: () => number;
}

/** Maximum number of proofs in one process; each takes about 120 bytes. */
const maxProofs = 250_000;
/** Old proofs that a new one removes: all at once would take 100 ms. */
const forgottenAtOnce = 16;

const useProofScript = defineClaim(
  'use-proof',
  "return redis.call('SET', KEYS[1], '1', 'NX', 'PX', ARGV[1]) and 1 or 0",
);

/**
 * Remembers used proofs: in this process and, with Redis, for all processes (docs/decisions/proof-of-possession.md). Proofs
 * are never evicted early; if there is no room, new ones are refused.
 */
export function createUsedProofs(options: UsedProofsOptions): UseProof {
  const { keptMs, sharePercent, records, nowMs = () => performance.now() } = options;
  /** In the order of `untilMs`. */
  const used = new Map<string, { readonly client: { size: number }; readonly untilMs: number }>();
  const clients = new NamedEntries(() => ({ size: 0 }));
  const share = (maxProofs * sharePercent) / 100;

  const forgetOld = () => {
    for (const [id, { client, untilMs }] of used.entries().take(forgottenAtOnce)) {
      if (untilMs > nowMs()) return;
      used.delete(id);
      clients.leave(client);
    }
  };
  return (id, sender) => {
    forgetOld();
    if (used.has(id)) return 'used';
    const client = clients.enter(sender);
    if (used.size >= maxProofs || client.size > share) {
      clients.leave(client);
      return 'full';
    }
    used.set(id, { client, untilMs: nowMs() + keptMs });
    return records === undefined ? 'first' : useInStore(records, id, keptMs);
  };
}

async function useInStore(records: RedisRecords, id: string, keptMs: number): Promise<ProofUse> {
  const { redis, keyPrefix = 'shopward', replicas = 0 } = records;
  try {
    const keys = [`${keyPrefix}:proof:${id}`];
    const { reply, replicas: confirmed } = await redis.runClaim(useProofScript, keys, [keptMs], replicas);
    return confirmed < replicas ? 'unknown' : reply === 1 ? 'first' : 'used';
  } catch {
    return 'unknown';
  }
}
