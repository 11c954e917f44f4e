import { type CanonicalRequest, isSafe, type Method } from '../http/canonical-request.ts';
import { fieldValues } from '../http/field-list.ts';
import type { PathRules } from '../http/path-table.ts';
import type { Answer } from '../http/rejection.ts';
import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import type { ObservedHooks } from '../upstream/hooks.ts';
import type { EntityTagContext, EntityTagEvent } from './context.ts';
import { type IfMatch, readIfMatch } from './entity-tag.ts';
import { type Identity, isStranger, subjectOf } from './keys.ts';
import { beginRead } from './read.ts';
import {
  collectionKeyOf,
  createTrackedResources,
  type TrackedMatch,
  type TrackedRequest,
  type TrackedResourceOptions,
} from './resources.ts';
import type { TagStore } from './tag-store.ts';
import type { EntityTagTimes } from './times.ts';
import { beginCreation, beginUnleasedWrite } from './unleased-write.ts';
import { beginWrite, type Write } from './write.ts';

export interface EntityTagsOptions {
  readonly resources: readonly TrackedResourceOptions[];
  readonly store: TagStore;
  readonly times: EntityTagTimes;
  /** How long a second writer waits for the first one's outcome. */
  readonly waitMs: number;
  /** Longest response that is tracked (`limits.trackedResponse`). */
  readonly trackedResponseBytes: number;
  /** How paths are read (`request`). */
  readonly paths: PathRules;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds; default `performance.now`, the clock of `TagStore.readStampAt`. */
  readonly monotonic?: () => number;
  readonly onEvent?: (event: EntityTagEvent) => void;
}

/** The gate of entity tags in the pipeline. */
export interface EntityTags {
  /** What the form of a change alone refuses, before anybody is asked who he is: `resource-id-missing`. */
  refuseForm(request: CanonicalRequest): Rejection | undefined;
  /**
   * Whether a request meets a tracked resource, and whether its body must have been read before `begin`: writes claim
   * the resource only when everything that they will send is here. What the head alone refuses needs no body.
   */
  concerns(request: CanonicalRequest, isObserved?: boolean): false | 'head' | 'whole-body';
  /**
   * Rejections: `lenient-spelling`, `if-match-missing`, `if-match-invalid`, `collection-write`, `resource-busy`,
   * `tag-store-unavailable`.
   * With `isObserved` only the first: otherwise the write goes on, under a lease where one can be had.
   */
  begin(
    request: CanonicalRequest,
    identity: Identity,
    body?: Buffer,
    isObserved?: boolean,
  ): ObservedHooks | Answer | Rejection | undefined | Promise<ObservedHooks | Answer | Rejection | undefined>;
}

/** @throws {Error} when the resources' templates do not fit together. */
export function createEntityTags(options: EntityTagsOptions): EntityTags {
  const resources = createTrackedResources(options.resources, options.paths);
  const context: EntityTagContext = {
    store: options.store,
    times: options.times,
    waitMs: options.waitMs,
    trackedResponseBytes: options.trackedResponseBytes,
    now: options.now,
    monotonic: options.monotonic ?? (() => performance.now()),
    onEvent: options.onEvent ?? (() => {}),
  };
  // `concerns` and `begin` ask for the same request, mostly in turn.
  let asked: CanonicalRequest | undefined;
  let found: TrackedMatch;
  const match = (request: CanonicalRequest): TrackedMatch => {
    if (request !== asked) {
      found = resources.match(request);
      asked = request;
    }
    return found;
  };
  return {
    refuseForm: (request) => (match(request) === 'no-id' ? reject('resource-id-missing') : undefined),
    concerns(request, isObserved = false) {
      const tracked = match(request);
      if (tracked === undefined || tracked === 'no-id') return false;
      if (tracked === 'lenient' || isSafe(request.method) || isCreation(tracked, request)) return 'head';
      if (isObserved) return 'whole-body';
      return isCollectionWrite(tracked) || isRejection(preconditionOf(tracked, request))
        ? 'head'
        : 'whole-body';
    },
    begin(request, identity, _body, isObserved = false) {
      const tracked = match(request);
      if (tracked === undefined || tracked === 'no-id') return undefined;
      if (tracked === 'lenient') {
        context.onEvent('lenient-spelling');
        return reject('lenient-spelling');
      }
      if (isSafe(request.method)) return beginRead(context, request, tracked, identity);
      if (isCreation(tracked, request)) return beginCreation(context, request, tracked, identity);
      return beginTrackedWrite(context, request, tracked, identity, isObserved);
    },
  };
}

/** What makes a new member; it changes none that anybody has a tag of. */
function isCreation({ role, resource }: TrackedRequest, request: CanonicalRequest): boolean {
  return role === 'collection' && request.method === 'POST' && !needsPrecondition(resource, request);
}

/**
 * Any other change of the collection's own path may change members, and nobody can tell which: their tags would
 * outlive their states.
 */
function isCollectionWrite({ role }: TrackedRequest): boolean {
  return role === 'collection';
}

/** A form POST may be any method to the shop. */
function needsPrecondition({ methods }: TrackedResourceOptions, request: CanonicalRequest): boolean {
  return request.isFormPost ? methods.length > 0 : methods.includes(request.method as Method);
}

/** The tags that a write names (null: none needed), or the refusal that its head alone calls for. */
function preconditionOf(
  tracked: TrackedRequest,
  request: CanonicalRequest,
): readonly string[] | null | Rejection {
  const { resource, role } = tracked;
  const isRequired = role !== 'below' && needsPrecondition(resource, request);
  const ifMatch: IfMatch = readIfMatch(
    fieldValues(request.fields, 'if-match'),
    role === 'below' ? [] : fieldValues(request.fields, 'if-none-match'),
    resource.ifMatch,
  );
  switch (ifMatch.kind) {
    case 'tags':
      return ifMatch.tags;
    case 'missing':
      return isRequired ? reject('if-match-missing') : null;
    default:
      // Below a member a tag that is not of our form is the shop's own, of the child.
      return role === 'below' ? null : reject('if-match-invalid', { reason: 'never-current' });
  }
}

function beginTrackedWrite(
  context: EntityTagContext,
  request: CanonicalRequest,
  tracked: TrackedRequest,
  identity: Identity,
  isObserved: boolean,
): Rejection | Promise<ObservedHooks | Rejection> {
  const precondition = preconditionOf(tracked, request);
  const isOfStranger = isStranger(identity);
  const collection = collectionKeyOf(tracked, subjectOf(request, identity));
  const write: Omit<Write, 'tags'> = {
    context,
    tracked,
    key: tracked.member ?? collection,
    isOfStranger,
    isOfOwnPath: tracked.role !== 'below',
    answerTag: answerTagOf(tracked, request),
    // A stranger's collection has no tag.
    alsoChanged: tracked.member === undefined || isOfStranger ? undefined : collection,
  };
  if (isRejection(precondition)) {
    context.onEvent(
      precondition.rejection === 'if-match-missing' ? 'precondition-missing' : 'precondition-failed',
    );
    return isObserved ? observeWrite({ ...write, tags: null }, precondition) : precondition;
  }
  if (isCollectionWrite(tracked)) {
    context.onEvent('collection-write');
    const refusal = reject('collection-write');
    return isObserved ? observeWrite({ ...write, tags: null }, refusal) : refusal;
  }
  const mayTakeLease = !isOfStranger || tracked.resource.openWrites === 'lease';
  const begun =
    precondition === null && !mayTakeLease
      ? beginUnleasedWrite(write)
      : beginWrite({ ...write, tags: precondition });
  if (!isObserved) return begun;
  return begun.then((outcome) =>
    !isRejection(outcome)
      ? outcome
      : outcome.rejection === 'if-match-invalid'
        ? observeWrite({ ...write, tags: null }, outcome)
        : unleased(outcome),
  );
}

/** Would have been refused: takes the lease all the same where it can, so that other writes are safe from this one. */
async function observeWrite(write: Write, refusal: Rejection): Promise<ObservedHooks> {
  const begun = await beginWrite(write);
  return isRejection(begun) ? unleased(refusal) : { ...begun, observed: refusal };
}

/** Goes to the shop as if we were not there. */
function unleased(observed: Rejection): ObservedHooks {
  return { observed, bufferLimit: 0, onOutcome: () => ({}) };
}

function answerTagOf({ role, resource }: TrackedRequest, request: CanonicalRequest): Write['answerTag'] {
  if (role === 'below' || !needsPrecondition(resource, request)) return 'shown';
  // A form POST may delete as well: then nothing may stay current.
  return request.method === 'DELETE' || request.isFormPost ? 'gone' : 'own';
}
