import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseStrongTag } from '../http/entity-tag-list.ts';
import { type FieldEdits, fieldValue } from '../http/field-list.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import { isolateLate } from '../lib/faults.ts';
import { mayTakeEffectAfter } from '../redis/faults.ts';
import type { ForwardOutcome, ResponseEdits, UpstreamHooks } from '../upstream/hooks.ts';
import { answerOctets, type EntityTagContext, type EntityTagEvent, type TrackedExchange } from './context.ts';
import { soleResource } from './json-api.ts';
import { randomTag, tagOfWrite } from './keys.ts';
import { isMember } from './resources.ts';
import type { ClaimAnswer, ClaimEnd, ResourceKey, WriteOutcome } from './tag-store.ts';

/**
 * What an exchange says about the resource's state.
 * - A complete 2xx is `applied`, except 202, which only promises it, and 207, which has several results.
 * - A complete 4xx is `refused`, except 408, which is a time-out. A 412 or 428 of the shop shows that the recorded tag of the
 *   shop was wrong: it is dropped, so that the next read records the right one. Otherwise every later write would fail.
 * - A 3xx says nothing about the state. After a 5xx the write may still take effect.
 */
export function writeOutcome(outcome: ForwardOutcome): WriteOutcome {
  if (outcome.kind !== 'answered') return outcome.kind;
  const { status } = outcome;
  if (status === 202 || status === 408 || status >= 500 || status < 200) return 'unknown';
  if (status === 207 || status === 412 || status === 428) return 'invalidated';
  if (status < 300) return 'applied';
  return status < 400 ? 'invalidated' : 'refused';
}

export interface Write extends TrackedExchange {
  /** The path is that of the tagged resource itself, not one below it. */
  readonly isOfOwnPath: boolean;
  /** Tags of which one must be current, or `noTag`; null: none is required. */
  readonly tags: readonly string[] | null;
  /** `If-None-Match: *`. It is forwarded, because the shop may have a member that has no tag here. */
  readonly isCreation: boolean;
  /** A write of a guarded collection as a whole. */
  readonly isWhole: boolean;
  /** `gone`: the member is deleted. `own`: the answer carries the new tag. `shown`: only if it shows the member or has a tag. */
  readonly answerTag: 'gone' | 'own' | 'shown' | 'none';
  /** Another record whose state changes together with this one: the subject's collection. */
  readonly alsoChanged: ResourceKey | undefined;
}

interface Granted {
  readonly token: string;
  readonly shopTag: string | null;
  /** Both clocks, read before the claim was sent. */
  readonly claimedAt: { readonly monotonic: number; readonly wall: number };
}

const firstPollMs = 10;
const longestPollMs = 100;
/** Milliseconds between attempts to store an outcome. */
const firstRetryMs = 100;
const longestRetryMs = 1_000;
/** No lease has this token: theirs are UUIDs. */
const nobodysToken = 'none';
const outcomeEvents: Readonly<Record<WriteOutcome, EntityTagEvent>> = {
  applied: 'applied',
  refused: 'refused',
  unsent: 'unsent',
  invalidated: 'spoilt',
  unknown: 'unknown-outcome',
};

/** Begins a write that has the resource's lease until its outcome is known, or returns the refusal. The body has been read. */
export async function beginWrite(write: Write): Promise<UpstreamHooks | Rejection> {
  const granted = await takeLease(write);
  return 'rejection' in granted ? granted : hooksOf(write, granted);
}

/** Claims until there is a decision: a busy resource is asked for again, each time with a new token. */
export async function takeLease(
  { context, key, tags, isWhole, isAnonymous }: Write,
  isOpen = false,
): Promise<Granted | Rejection> {
  const { store, monotonic, now, onEvent, waitMs } = context;
  const tagged = tags !== null || isWhole;
  const giveUpAt = monotonic() + waitMs;
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 2, longestPollMs)) {
    const token = randomUUID();
    const claimedAt = { monotonic: monotonic(), wall: now() };
    let answer: ClaimAnswer;
    try {
      answer = await store.claim(key, { token, tags, isWhole, isAnonymous, isOpen });
    } catch (fault) {
      const givenBack = mayTakeEffectAfter(fault).then((mayTakeEffect) =>
        mayTakeEffect ? giveBack(context, key, token, tagged) : undefined,
      );
      isolateLate(givenBack);
      onEvent('store-unavailable');
      return reject('tag-store-unavailable', { reason: 'store-unavailable', retryAfterSeconds: 1 });
    }
    if (answer.kind === 'granted') {
      if (!isOpen) onEvent('claimed');
      return { token, shopTag: answer.shopTag, claimedAt };
    }
    if (answer.kind === 'not-replicated') isolateLate(giveBack(context, key, token, tagged));
    const left = giveUpAt - monotonic();
    if (answer.kind !== 'busy' || left <= 0) return refusalOf(answer, onEvent);
    await sleep(Math.min(pollMs * (0.5 + Math.random()), left, Math.max(1, answer.remainingMs)));
  }
}

function refusalOf(answer: ClaimAnswer, onEvent: EntityTagContext['onEvent']): Rejection {
  const retryAfterSeconds = 'remainingMs' in answer ? Math.max(1, Math.ceil(answer.remainingMs / 1000)) : 1;
  switch (answer.kind) {
    case 'not-current':
      onEvent('precondition-failed');
      return reject('if-match-invalid', { reason: 'not-current' });
    case 'busy':
      onEvent('lease-busy');
      return reject('resource-busy', { reason: 'lease-busy', retryAfterSeconds });
    case 'indeterminate':
      onEvent('quiet');
      return reject('tag-store-unavailable', { reason: 'quiet', retryAfterSeconds });
    case 'cold-start':
      onEvent('hold');
      return reject('tag-store-unavailable', { reason: 'hold', retryAfterSeconds });
    default:
      onEvent('store-unavailable');
      return reject('tag-store-unavailable', { reason: answer.kind, retryAfterSeconds });
  }
}

/** Gives a claim back that may have been granted although no answer came. The client does not wait for this. */
async function giveBack(
  { store }: EntityTagContext,
  key: ResourceKey,
  token: string,
  tagged: boolean,
): Promise<void> {
  try {
    await store.end(key, { token, tagged, outcome: 'unsent', newTag: null, shopTag: null });
  } catch {
    // The lease runs out by itself.
  }
}

function hooksOf(write: Write, granted: Granted): UpstreamHooks {
  const { context } = write;
  const { sendWithinMs, answerWithinMs } = context.times;
  return {
    requestFields: writtenFields(write, granted.shopTag),
    maySend: () => isInTime(context, granted),
    sendWithinMs,
    answerWithinMs,
    bufferLimit: context.trackedResponseBytes,
    ignoreClientAbort: 'once-sent',
    onOutcome: (outcome) => endWrite(write, granted, outcome),
  };
}

/** The larger of both clocks: one stands still while the machine sleeps, the other may be set back. */
export function isInTime({ monotonic, now, times }: EntityTagContext, { claimedAt }: Granted): boolean {
  return Math.max(monotonic() - claimedAt.monotonic, now() - claimedAt.wall) < times.firstByteByMs;
}

/** Replaces shopward's tag by the shop's last one, so that a shop that checks tags of its own checks this one. */
export function writtenFields({ tags, isOfOwnPath, isCreation }: Write, shopTag: string | null): FieldEdits {
  if (isCreation) return {};
  // Below a member the client's preconditions are about a child, whose tags only the shop knows.
  if (tags === null) return isOfOwnPath ? { 'if-match': null, 'if-none-match': null } : {};
  // A date beside a tag does not count (RFC 9110 section 13.1.4).
  const others = { 'if-none-match': null, 'if-unmodified-since': null };
  return { 'If-Match': isOfOwnPath && shopTag !== null ? `"${shopTag}"` : null, ...others };
}

async function endWrite(write: Write, granted: Granted, forwarded: ForwardOutcome): Promise<ResponseEdits> {
  const { context, answerTag } = write;
  const outcome = writeOutcome(forwarded);
  context.onEvent(outcomeEvents[outcome]);
  const answerFields = forwarded.kind === 'answered' ? forwarded.fields : [];
  const shopTag = fieldValue(answerFields, 'etag');
  const [tag] = await Promise.all([
    storeOutcome(write, granted, outcome, parseStrongTag(shopTag)),
    markChanged(context, write.alsoChanged, outcome),
  ]);
  if (forwarded.kind !== 'answered') return {};
  const isDeleted = answerTag === 'gone' && outcome === 'applied';
  const given = isDeleted ? randomTag() : tag;
  if (given === null) return {};
  const isGiven = answerTag !== 'shown' || shopTag !== undefined || (await showsMember(write, forwarded));
  return isGiven ? { fields: { ETag: `"${tagOfWrite(given)}"` } } : {};
}

/** Whether the answer to a write below the member is the member: by `Content-Location`, `Location`, or type and id. */
async function showsMember(
  { context, tracked }: Write,
  { fields, body }: Extract<ForwardOutcome, { kind: 'answered' }>,
): Promise<boolean> {
  const named = fieldValue(fields, 'content-location') ?? fieldValue(fields, 'location');
  if (named !== undefined && isMember(tracked, { path: named })) return true;
  if (body === null) return false;
  const shown = await soleResource(await answerOctets(context, fields, body));
  return shown !== undefined && isMember(tracked, shown);
}

async function storeOutcome(
  { context, key, tags, isWhole, answerTag, isAnonymous }: Write,
  granted: Granted,
  outcome: WriteOutcome,
  shopTag: string | null,
): Promise<string | null> {
  const newTag = answerTag === 'gone' || answerTag === 'none' ? null : randomTag();
  const tagged = tags !== null || isWhole;
  const end: ClaimEnd = { token: granted.token, tagged, outcome, newTag, shopTag, isAnonymous };
  try {
    return await context.store.end(key, end);
  } catch {
    context.onEvent('outcome-unstored');
    // The lease of an unknown write keeps others waiting for as long as its outcome would.
    const untilMs = granted.claimedAt.monotonic + context.times.leaseMs;
    if (outcome !== 'unknown') isolateLate(storeLater(context, key, end, untilMs));
    return null;
  }
}

/** Repeats the outcome while its lease or record lasts. The client has its answer. */
async function storeLater(
  { store, monotonic }: EntityTagContext,
  key: ResourceKey,
  end: ClaimEnd,
  untilMs: number,
): Promise<void> {
  for (let waitMs = firstRetryMs; ; waitMs = Math.min(waitMs * 2, longestRetryMs)) {
    // This timer keeps no process alive: a lease ends by itself.
    await sleep(waitMs * (0.5 + Math.random()), undefined, { ref: false });
    if (monotonic() >= untilMs) return;
    try {
      await store.end(key, end);
      return;
    } catch {
      // Once more.
    }
  }
}

/**
 * Records that a write has changed a resource for which it has no lease, such as the collection of the same subject: the tag
 * of its earlier state must not stay current.
 */
export async function markChanged(
  context: EntityTagContext,
  key: ResourceKey | undefined,
  outcome: WriteOutcome,
  isOpen = false,
): Promise<void> {
  if (key === undefined || outcome === 'unsent' || outcome === 'refused') return;
  const end: ClaimEnd = {
    ...{ token: nobodysToken, tagged: false, outcome: 'applied' as const, newTag: null, shopTag: null },
    ...{ isAnonymous: isOpen, isOpen },
  };
  try {
    await context.store.end(key, end);
  } catch {
    context.onEvent('outcome-unstored');
    // Without a lease that ends, the old tag of the member would stay current.
    const untilMs = context.monotonic() + context.times.recordExpiryMs;
    if (isOpen) isolateLate(storeLater(context, key, end, untilMs));
  }
}
