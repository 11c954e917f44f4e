import type { Answer } from '../http/answer.ts';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { Rejection } from '../http/rejection.ts';
import type { ForwardOutcome, UpstreamHooks } from '../upstream/hooks.ts';
import { readsAnswer } from './issuing.ts';
import { verdictOf } from './outcome.ts';
import { refuseExchange } from './refusals.ts';
import { openAnswer, type SealedFor, sealAnswer } from './sealed-answer.ts';
import type { TokenEndpoint } from './token-endpoints.ts';
import type { TokenDigest, UsedAnswer } from './token-store.ts';
import type { Workings } from './workings.ts';

/** A refresh token as a request names it. */
export interface PresentedToken {
  readonly text: string;
  readonly digest: TokenDigest;
  readonly endpoint: TokenEndpoint;
  readonly request: Pick<CanonicalRequest, 'fields'>;
}

/**
 * What a used token is answered that comes again: within the leeway the answer of its exchange, else what the policy says.
 * Rejects as the store does.
 */
export async function answerReplay(
  workings: Workings,
  presented: PresentedToken,
  used: UsedAnswer,
  isObserved: boolean,
): Promise<UpstreamHooks | Answer | Rejection> {
  const { replay, leewayMs, emit } = workings;
  const refused = refuseExchange(presented.endpoint.format, 'used');
  const isWithinLeeway = used.usedForMs < leewayMs;
  if (isWithinLeeway && !isObserved && used.sealed !== null) {
    const answer = openAnswer(sealedFor(presented), used.sealed);
    if (answer !== undefined && !(await isOver(workings, used))) {
      emit('exchange-repeated');
      return answer;
    }
  }
  emit('exchange-refused-used');
  // Two tabs are no thieves, whatever the policy.
  if (isWithinLeeway || isObserved || replay === 'refuse') return refused;
  if (replay === 'forward') return forwardReplay(workings, presented, refused, used);
  await endFamily(workings, used);
  return refused;
}

/** The sealed answer of an exchange that has just succeeded, for the leeway. */
export function sealForLeeway(
  { leewayMs }: Workings,
  presented: PresentedToken,
  outcome: ForwardOutcome,
): { readonly sealed: string; readonly leewayMs: number } | null {
  if (leewayMs === 0 || outcome.kind !== 'answered' || outcome.body === null) return null;
  const sealed = sealAnswer(sealedFor(presented), { ...outcome, body: outcome.body });
  return sealed === undefined ? null : { sealed, leewayMs };
}

/** The provider is asked, so that it can detect the reuse; what it may yield goes to nobody. */
function forwardReplay(
  workings: Workings,
  { request }: PresentedToken,
  refused: Rejection,
  used: UsedAnswer,
): UpstreamHooks {
  const { emit } = workings;
  emit('replay-forwarded');
  return {
    ...readsAnswer(workings, request, false),
    ignoreClientAbort: true,
    async onOutcome(outcome) {
      if (verdictOf(outcome) !== 'done') return {};
      emit('replay-withheld');
      await endFamily(workings, used);
      return { rejection: refused };
    },
  };
}

async function endFamily(
  { store, retries, emit }: Workings,
  { family, lifetimeMs }: UsedAnswer,
): Promise<void> {
  if (family === null) return;
  await retries.write(() => store.endFamily(family, lifetimeMs));
  emit('family-ended');
}

async function isOver({ store }: Workings, { subject, generation, family }: UsedAnswer): Promise<boolean> {
  const [since, isEnded] = await Promise.all([
    subject === null ? 0 : store.generationOf(subject),
    family === null ? false : store.isFamilyEnded(family),
  ]);
  return isEnded || generation < since;
}

function sealedFor({ text, digest, endpoint }: PresentedToken): SealedFor {
  return { token: text, context: `${digest} ${endpoint.method} ${endpoint.path}` };
}
