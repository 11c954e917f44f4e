import { randomUUID } from 'node:crypto';
import type { ForwardOutcome, Passage, ResponseEdits } from '../forwarding/passage.ts';
import { mayHoldAfter } from '../redis/deadline.ts';
import { RedisUnavailable } from '../redis/redis.ts';
import type { Rejection } from '../rejections/rejection.ts';
import type { CanonicalRequest } from '../request/canonical-request.ts';
import { readAnswer, readsAnswer, recordIssued, subjectDigestOf, withholdUnreadable } from './issuing.ts';
import { verdictOf } from './outcome.ts';
import { type RefusalReason, refuseExchange, refuseUnknown } from './refusals.ts';
import type { TokenEndpoint } from './token-endpoints.ts';
import type { SubjectDigest, TokenDigest } from './token-store.ts';
import type { Workings } from './workings.ts';

/** A claim that was granted. */
interface Claimed {
  readonly token: TokenDigest;
  readonly subject: SubjectDigest | null;
  /** Generation of the subject, as it was after the claim. */
  readonly since: number;
  readonly revokedBy: readonly SubjectDigest[];
}

/** Claims the token in every reading that the shop could make of it, or refuses. */
export async function beginExchange(
  workings: Workings,
  endpoints: readonly TokenEndpoint[],
  request: Pick<CanonicalRequest, 'fields'>,
  sent: string,
  isObserved: boolean,
): Promise<Passage | Rejection> {
  const { digests, emit, monotonicNow, marginMs } = workings;
  const format = endpoints[0]?.format ?? 'json-api';
  const op = randomUUID();
  const claimedAtMs = monotonicNow();
  const asked: TokenDigest[] = [];
  const claimed: Claimed[] = [];
  try {
    for (const token of digests.ofReadings(sent)) {
      asked.push(token);
      const answer = await claimToken(workings, token, op);
      if ('refused' in answer) {
        await releaseAll(workings, asked, op);
        emit(`exchange-refused-${answer.refused}`);
        return refuseExchange(format, answer.refused, answer.remainingMs);
      }
      claimed.push(answer);
    }
  } catch (fault) {
    if (!(fault instanceof RedisUnavailable)) throw fault;
    // The store may have granted a claim whose answer was lost; what cannot be released lapses.
    void mayHoldAfter(fault).then(() => releaseAll(workings, asked, op));
    emit('store-unavailable');
    return refuseUnknown(format);
  }
  emit('exchange-granted');
  return {
    ...readsAnswer(workings, request, isObserved),
    outlivesClient: true,
    maySend: () => monotonicNow() - claimedAtMs <= marginMs,
    async settle(outcome) {
      const edits = await settleExchange(workings, endpoints, claimed, op, outcome);
      return isObserved ? {} : edits;
    },
  };
}

async function claimToken(
  { store, answerWithinMs, marginMs }: Workings,
  token: TokenDigest,
  op: string,
): Promise<Claimed | { readonly refused: RefusalReason; readonly remainingMs?: number }> {
  const answer = await store.claim(token, op, answerWithinMs + marginMs);
  if (answer.kind === 'in-exchange') return { refused: answer.kind, remainingMs: answer.remainingMs };
  if (answer.kind !== 'granted') return { refused: answer.kind };
  const { subject, revokedBy } = answer;
  if (subject === null) return { token, subject, since: 0, revokedBy };
  // After the claim, so that a `mine` that ended before this request began is seen for certain.
  const since = await store.generationOf(subject);
  return answer.generation < since ? { refused: 'revoked' } : { token, subject, since, revokedBy };
}

async function settleExchange(
  workings: Workings,
  endpoints: readonly TokenEndpoint[],
  claimed: readonly Claimed[],
  op: string,
  outcome: ForwardOutcome,
): Promise<ResponseEdits> {
  const { store, unwritten, emit } = workings;
  const verdict = verdictOf(outcome);
  if (verdict === 'unknown') {
    emit('exchange-unknown');
    return {};
  }
  if (verdict === 'refused') {
    await releaseAll(
      workings,
      claimed.map(({ token }) => token),
      op,
    );
    emit('exchange-freed');
    return {};
  }
  const answer = readAnswer(workings, outcome, endpoints);
  const issued = answer === 'unreadable' ? [] : answer;
  const owner = issued.map((one) => subjectDigestOf(workings, one)).find((one) => one !== null) ?? null;
  // First of all, and whatever becomes of the rest: none of them is exchanged again.
  await Promise.all(
    claimed.map(({ token, subject }) =>
      unwritten.write(async () => void (await store.markUsed(token, subject ?? owner))),
    ),
  );
  if (claimed.some(({ revokedBy }) => isRevokedBy(owner, revokedBy))) {
    emit('answer-withheld');
    return { rejection: refuseExchange(endpoints[0]?.format ?? 'json-api', 'revoked') };
  }
  emit('exchanged');
  if (answer === 'unreadable') return withholdUnreadable();
  const parent = claimed.find(({ subject }) => subject !== null);
  const subject = owner ?? parent?.subject ?? null;
  const since = parent?.subject === subject ? parent?.since : undefined;
  for (const one of issued) await recordIssued(workings, one, subject, since);
  return {};
}

/** It was not known whose the token is until now; where it still is not, any note counts. */
function isRevokedBy(owner: SubjectDigest | null, revokedBy: readonly SubjectDigest[]): boolean {
  return owner === null ? revokedBy.length > 0 : revokedBy.includes(owner);
}

/** Best effort: a claim that cannot be released lapses. */
async function releaseAll({ store }: Workings, tokens: readonly TokenDigest[], op: string): Promise<void> {
  await Promise.all(
    tokens.map(async (token) => {
      try {
        await store.release(token, op);
      } catch (fault) {
        if (!(fault instanceof RedisUnavailable)) throw fault;
      }
    }),
  );
}
