import { randomBytes } from 'node:crypto';
import type { IssuedTokens } from './issued-tokens.ts';
import type { FamilyId, Standing, SubjectDigest } from './token-store.ts';
import type { Workings } from './workings.ts';

/** What a new token comes from. */
export interface Descent {
  readonly subject: SubjectDigest | null;
  readonly family: FamilyId;
  /** Generation of the token that it was exchanged for; left out: its subject's own of this moment. */
  readonly since?: number | undefined;
}

/** How far the clocks of two primaries of one store may differ. Milliseconds. */
const clockSlackMs = 1000;

export function newFamily(): FamilyId {
  return randomBytes(12).toString('base64url') as FamilyId;
}

/** Records a token that the shop has issued; later, where the store is away. */
export async function recordIssued(
  { store, digests, retries, lifetimeMs: usualMs, monotonicNow, emit }: Workings,
  issued: IssuedTokens,
  { subject, family, since }: Descent,
): Promise<void> {
  const token = digests.ofToken(issued.refreshToken);
  const lifetimeMs = issued.lifetimeMs ?? usualMs;
  const issuedAtMs = monotonicNow();
  const isRecorded = await retries.write(async (isLate) => {
    const restMs = Math.max(1, Math.floor(lifetimeMs - (isLate ? monotonicNow() - issuedAtMs : 0)));
    const standing = subject === null ? undefined : await store.addToSubject(subject, token, restMs);
    // Asked for behind the store's answer, so that the time of issue is rather too early than too late.
    const agoMs = monotonicNow() - issuedAtMs;
    const own = standing === undefined ? 0 : isLate ? generationAgo(standing, agoMs) : standing.generation;
    await store.record(token, { subject, generation: since ?? own, family, lifetimeMs: restMs });
    if (isLate) emit('recorded');
  });
  emit(isRecorded ? 'recorded' : 'record-delayed');
}

/**
 * The generation of a token that was issued so long ago: below that of any `mine` since, so that it was ended by it, and
 * above those before.
 */
export function generationAgo({ generation, nowMicros }: Standing, agoMs: number): number {
  return Math.max(0, Math.min(generation, Math.floor(nowMicros - (agoMs + clockSlackMs) * 1000)));
}
