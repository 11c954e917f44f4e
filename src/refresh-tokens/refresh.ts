import { randomUUID } from 'node:crypto';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { Answer, Rejection } from '../http/rejection.ts';
import { isolateLate } from '../lib/faults.ts';
import { mayTakeEffectAfter, RedisUnavailable } from '../redis/faults.ts';
import type { ForwardOutcome, ResponseEdits, UpstreamHooks } from '../upstream/hooks.ts';
import type { RefreshTokenContext } from './context.ts';
import type { TokenEndpoint } from './endpoints.ts';
import {
  type IssuedTokens,
  newFamily,
  type ReadTokens,
  readAnswer,
  readsAnswer,
  recordIssued,
  subjectDigestOf,
  verdictOf,
  withheld,
} from './issue.ts';
import { refuseForNow, refuseRefresh, refuseUnknown } from './refusals.ts';
import { answerReplay, type PresentedToken, sealForLeeway } from './replay.ts';
import {
  type ClaimAnswer,
  type FamilyId,
  lifeOf,
  longestWaitMs,
  type SubjectDigest,
  type TokenDigest,
  type Use,
} from './token-values.ts';

/** A refresh under way. */
interface Refresh {
  readonly context: RefreshTokenContext;
  readonly endpoints: readonly TokenEndpoint[];
  readonly presented: PresentedToken;
  readonly op: string;
  /** When it was sent to the shop, on the monotonic clock. */
  sentAtMs: number;
}

type Granted = Extract<ClaimAnswer, { readonly kind: 'granted' }>;
type Refused = Exclude<ClaimAnswer, Granted>;

interface Claimed extends Granted {
  readonly token: TokenDigest;
  /** Generation of the subject after the claim. */
  readonly since: number;
}

/** Claims the token in every interpretation that the shop could make of it. Resolves to hooks, or to a refusal or answer. */
export async function beginRefresh(
  context: RefreshTokenContext,
  endpoints: readonly [TokenEndpoint, ...TokenEndpoint[]],
  request: Pick<CanonicalRequest, 'fields'>,
  sent: string,
  isObserved: boolean,
): Promise<UpstreamHooks | Answer | Rejection> {
  const { digests, retries, emit, monotonicNow, marginMs } = context;
  const [endpoint] = endpoints;
  const interpretations = digests.ofInterpretations(sent);
  const presented = { text: sent, digest: digests.ofToken(sent), endpoint, request };
  await retries.flush();
  const begunAtMs = monotonicNow();
  const refresh: Refresh = { context, endpoints, presented, op: randomUUID(), sentAtMs: begunAtMs };
  const claimed: Claimed[] = [];
  const asked: TokenDigest[] = [];
  try {
    for (const token of interpretations) {
      asked.push(token);
      const answer = await claimToken(refresh, token);
      if (answer.kind !== 'granted') {
        await releaseAll(refresh, asked);
        return await refuse(refresh, answer, isObserved);
      }
      claimed.push(answer);
    }
  } catch (fault) {
    if (!(fault instanceof RedisUnavailable)) throw fault;
    // The store may have granted a claim whose reply was lost.
    isolateLate(mayTakeEffectAfter(fault).then(() => releaseAll(refresh, asked)));
    emit('store-unavailable');
    return refuseUnknown(endpoint.format);
  }
  emit('exchange-granted');
  return {
    ...readsAnswer(context, request, isObserved),
    ignoreClientAbort: 'once-sent',
    maySend() {
      refresh.sentAtMs = monotonicNow();
      return refresh.sentAtMs - begunAtMs <= marginMs;
    },
    async onOutcome(outcome) {
      const edits = await concludeRefresh(refresh, claimed, outcome);
      return isObserved ? {} : edits;
    },
  };
}

/** Claims the token for the whole refresh, so that a refresh whose process is killed is over when the claim lapses. */
async function claimToken({ context, op }: Refresh, token: TokenDigest): Promise<Claimed | Refused> {
  const { store, answerWithinMs, marginMs, leewayMs } = context;
  const mostWaitMs = Math.min(leewayMs || longestWaitMs, longestWaitMs);
  const answer = await store.claim(token, op, answerWithinMs + marginMs, mostWaitMs);
  if (answer.kind !== 'granted') return answer;
  // After the claim, so that it sees a `mine`, or the end of a family, from before this request.
  const { since, isOver } = await lifeOf(store, answer);
  if (isOver) return { kind: 'revoked' };
  return { ...answer, token, since };
}

async function refuse(
  { context, presented }: Refresh,
  why: Refused,
  isObserved: boolean,
): Promise<UpstreamHooks | Answer | Rejection> {
  const { emit } = context;
  const { format } = presented.endpoint;
  switch (why.kind) {
    case 'used':
      return answerReplay(context, presented, why, isObserved);
    case 'in-exchange':
      emit('exchange-refused-in-exchange');
      return refuseForNow(format, why);
    default:
      emit(`exchange-refused-${why.kind}`);
      return refuseRefresh(format, why.kind);
  }
}

async function concludeRefresh(
  refresh: Refresh,
  claimed: readonly Claimed[],
  outcome: ForwardOutcome,
): Promise<ResponseEdits> {
  const { emit } = refresh.context;
  const tokens = tokensOf(claimed);
  switch (verdictOf(outcome)) {
    case 'done':
      return concludeSuccess(refresh, claimed, outcome);
    case 'unknown':
      await leaveOpen(refresh, tokens);
      return {};
    default:
      await releaseAll(refresh, tokens);
      emit('exchange-freed');
      return {};
  }
}

async function concludeSuccess(
  refresh: Refresh,
  claimed: readonly Claimed[],
  outcome: ForwardOutcome,
): Promise<ResponseEdits> {
  const { context, endpoints, presented } = refresh;
  const { emit } = context;
  const read = readAnswer(context, outcome, endpoints);
  const isUnreadable = read === 'unreadable';
  if (isUnreadable || (read.tokens.length === 0 && read.accessToken === undefined)) {
    // A success without a token, such as a maintenance page, does not prove that the shop has refreshed anything.
    await leaveOpen(refresh, tokensOf(claimed));
    return isUnreadable ? withheld : {};
  }
  const issued = issuedBy(refresh, claimed, read);
  const owner = issued.map((one) => subjectDigestOf(context, one)).find((one) => one !== null) ?? null;
  const parent = claimed.find(({ subject }) => subject !== null);
  const isWithheld = claimed.some(({ revokedBy }) => isRevokedBy(owner, revokedBy));
  const tokens = tokensOf(claimed);
  const isKept = issued.every(({ refreshToken }) => tokens.includes(context.digests.ofToken(refreshToken)));
  if (isKept) {
    // If its owner has revoked it, that note counts from now on, because the record names the owner.
    await renew(refresh, claimed, issued, owner);
    return isWithheld ? withhold(refresh) : {};
  }
  const answer = !isWithheld ? sealForLeeway(context, presented, outcome) : null;
  // First of all, so that the token is not refreshed again whatever happens next.
  const family = await markUsed(refresh, claimed, { owner, family: newFamily(), answer });
  if (isWithheld) return withhold(refresh);
  emit('exchanged');
  const subject = owner ?? parent?.subject ?? null;
  const since = parent?.subject === subject ? parent?.since : undefined;
  for (const one of issued) await recordIssued(context, one, { subject, family, since });
  return {};
}

function withhold({ context, presented }: Refresh): ResponseEdits {
  context.emit('answer-withheld');
  return { rejection: refuseRefresh(presented.endpoint.format, 'revoked') };
}

/** The refresh tokens of a success. Without one the client keeps the token that it has sent (RFC 6749 section 6). */
function issuedBy(
  { presented }: Refresh,
  claimed: readonly Claimed[],
  { tokens, accessToken }: ReadTokens,
): readonly IssuedTokens[] {
  if (tokens.length > 0) return tokens;
  const lifetimeMs = claimed.find((each) => each.lifetimeMs > 0)?.lifetimeMs;
  return [{ refreshToken: presented.text, accessToken, lifetimeMs }];
}

/** The shop has kept the token: it is recorded as if it were issued again, and free for the next refresh. */
async function renew(
  refresh: Refresh,
  claimed: readonly Claimed[],
  issued: readonly IssuedTokens[],
  owner: SubjectDigest | null,
): Promise<void> {
  const { context } = refresh;
  const parent = claimed.find(({ subject }) => subject !== null);
  const subject = parent?.subject ?? owner;
  const family = claimed.find((each) => each.family !== null)?.family ?? newFamily();
  for (const one of issued) await recordIssued(context, one, { subject, family, since: parent?.since });
  await releaseAll(refresh, tokensOf(claimed));
  context.emit('exchange-renewed');
}

function tokensOf(claimed: readonly Claimed[]): readonly TokenDigest[] {
  return claimed.map(({ token }) => token);
}

/**
 * Marks the known interpretations as used, or all if none is known, since any spelling may come next. Returns the family of
 * the new tokens: that of the old token, even if it was recorded only after its claim.
 */
async function markUsed(refresh: Refresh, claimed: readonly Claimed[], use: Use): Promise<FamilyId> {
  const { store, retries } = refresh.context;
  const known = claimed.filter(({ lifetimeMs }) => lifetimeMs > 0);
  const used = known.length > 0 ? known : claimed;
  let family = claimed.find((each) => each.family !== null)?.family ?? use.family;
  await Promise.all(
    used.map(({ token, subject }) =>
      retries.write(async (isLate) => {
        const mark = { ...use, family, owner: subject ?? use.owner, answer: isLate ? null : use.answer };
        family = await store.markUsed(token, mark);
      }),
    ),
  );
  const others = claimed.filter((each) => !used.includes(each));
  await releaseAll(refresh, tokensOf(others));
  return family;
}

/** Whether an owner who became known only now has revoked the token; while the owner is unknown any note counts. */
function isRevokedBy(owner: SubjectDigest | null, revokedBy: readonly SubjectDigest[]): boolean {
  return owner === null ? revokedBy.length > 0 : revokedBy.includes(owner);
}

/** The outcome at the shop is unknown: the claims stay while it may still work on the refresh. */
async function leaveOpen({ context, op, sentAtMs }: Refresh, tokens: readonly TokenDigest[]): Promise<void> {
  const { store, retries, emit, monotonicNow, shopTimeoutMs } = context;
  const restMs = () => Math.max(0, sentAtMs + shopTimeoutMs - monotonicNow());
  await Promise.all(tokens.map((token) => retries.write(() => store.markIndeterminate(token, op, restMs()))));
  emit('exchange-unknown');
}

async function releaseAll({ context: { store, retries }, op }: Refresh, tokens: readonly TokenDigest[]) {
  await Promise.all(tokens.map((token) => retries.write(() => store.release(token, op))));
}
