import type { ForwardOutcome, Passage } from '../forwarding/passage.ts';
import { RedisUnavailable } from '../redis/redis.ts';
import { type IssuedTokens, readIssuedTokens } from './issued-tokens.ts';
import { verdictOf } from './outcome.ts';
import type { TokenEndpoint } from './token-endpoints.ts';
import type { SubjectDigest } from './token-store.ts';
import type { Workings } from './workings.ts';

/** Answers in which the shop may issue tokens are read, and never changed. */
export function issuePassage(workings: Workings, endpoints: readonly TokenEndpoint[]): Passage {
  return {
    collectBytes: workings.answerBytes,
    async settle(outcome) {
      if (verdictOf(outcome) === 'done') {
        const issued = readAnswer(workings, outcome, endpoints);
        if (issued !== undefined) await recordIssued(workings, issued, subjectDigestOf(workings, issued));
      }
      return {};
    },
  };
}

/** The tokens of a 2xx; what cannot be read is counted. */
export function readAnswer(
  { answerBytes, emit }: Workings,
  outcome: ForwardOutcome,
  endpoints: readonly TokenEndpoint[],
): IssuedTokens | undefined {
  if (outcome.kind !== 'answered') return undefined;
  const names = endpoints.map(({ fields }) => fields);
  const issued = outcome.body && readIssuedTokens(outcome.body, outcome.fields, names, answerBytes * 16);
  if (issued) return issued;
  emit('not-recorded-unreadable');
  return undefined;
}

export function subjectDigestOf(
  { subjectOf, digests }: Workings,
  { accessToken }: IssuedTokens,
): SubjectDigest | null {
  const subject = accessToken === undefined ? undefined : subjectOf(accessToken);
  return subject === undefined ? null : digests.ofSubject(subject);
}

/** `since`: the generation that the token descends from; left out: the subject's own of this moment. */
export async function recordIssued(
  { store, digests, lifetimeMs: usualMs, emit }: Workings,
  issued: IssuedTokens,
  subject: SubjectDigest | null,
  since?: number,
): Promise<void> {
  const token = digests.ofToken(issued.refreshToken);
  const lifetimeMs = issued.lifetimeMs ?? usualMs;
  try {
    const current = subject === null ? 0 : await store.addToSubject(subject, token, lifetimeMs);
    await store.record(token, { subject, generation: since ?? current, lifetimeMs });
    emit('recorded');
  } catch (fault) {
    if (!(fault instanceof RedisUnavailable)) throw fault;
    emit('not-recorded-store');
  }
}
