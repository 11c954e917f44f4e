import { type CanonicalRequest, isSafe } from '../http/canonical-request.ts';
import { fieldValues } from '../http/field-list.ts';
import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import type { Eventually } from '../lib/eventually.ts';
import type { FilterContext, FilterDescription, Matcher, NameRefusal } from '../proxy/filter.ts';
import type { PathRules } from '../routes/path-table.ts';
import type { ObservedHooks } from '../upstream/hooks.ts';
import { type EntityTagContext, type TrackedExchange, toTrackedExchange } from './context.ts';
import { type Identity, isCreation, readIfMatch } from './keys.ts';
import { noTag } from './protocol.ts';
import { beginRead } from './read.ts';
import {
  collectionKeyOf,
  compileTrackedResources,
  needsIfMatch,
  type Precondition,
  type TrackedMatch,
  type TrackedRequest,
  type TrackedResourceOptions,
} from './resources.ts';
import { beginCreation, beginUnleasedWrite } from './unleased-write.ts';
import { beginWrite, type Write } from './write.ts';

/** The part of the decision that needs no store. */
export interface EntityTagMatcher extends Matcher<TrackedMatch> {
  match(request: CanonicalRequest): TrackedMatch | undefined;
}

/**
 * Rejections: `lenient-spelling`, `if-match-missing`, `if-match-invalid`, `collection-write`, `resource-busy`,
 * `tag-store-unavailable`. Observe mode enforces only the first; after the others the write goes on, leased if possible.
 */
export interface EntityTags extends EntityTagMatcher {
  run(
    match: TrackedMatch,
    context: Pick<FilterContext, 'request' | 'isObserved'> & { readonly identity: Identity },
  ): Eventually<ObservedHooks | Rejection>;
}

/** `paths`: how paths are read (`request`), as for the protected list. */
export function createEntityTagMatcher(
  resources: readonly TrackedResourceOptions[],
  paths: PathRules,
): EntityTagMatcher {
  return {
    name: 'entity-tags',
    hooksUpstream: true,
    match: compileTrackedResources(resources, paths),
    refusal: (match) => (match === 'lenient' ? reject('lenient-spelling') : undefined),
    /** A write claims the resource only once its body has been read. A refusal that follows from the head needs no body. */
    wantsBody(match, request, isObserved) {
      if (match === 'lenient') return false;
      const rule = ruleOf(match, request);
      if (rule === 'read' || rule === 'creation') return false;
      return isObserved || (rule !== 'collection-write' && !isRejection(preconditionOf(match, request)));
    },
    foresee(match, request) {
      const rule = match === 'lenient' ? 'read' : ruleOf(match, request);
      if (match === 'lenient' || rule === 'read' || rule === 'creation') return undefined;
      const precondition = preconditionOf(match, request);
      if (isRejection(precondition)) return precondition;
      if (rule === 'collection-write') return reject('collection-write');
      if (precondition === null) return undefined;
      return precondition.includes(noTag)
        ? 'If-None-Match: * is sent; the store and the shop know whether the member exists'
        : 'If-Match is sent; the store knows whether it is the current tag';
    },
    describe,
  };
}

/** The whole filter around its pure half. `monotonic`: default `performance.now`. */
export function createEntityTags(
  matcher: EntityTagMatcher,
  options: Omit<EntityTagContext, 'monotonic'> & Partial<EntityTagContext>,
): EntityTags {
  const context: EntityTagContext = { monotonic: () => performance.now(), ...options };
  return {
    ...matcher,
    run(tracked, { request, identity, isObserved }) {
      if (tracked === 'lenient') {
        context.onEvent('lenient-spelling');
        return reject('lenient-spelling');
      }
      const exchange = toTrackedExchange(context, request, tracked, identity);
      switch (ruleOf(tracked, request)) {
        case 'read':
          return beginRead(exchange);
        case 'creation':
          return beginCreation(exchange);
        default:
          return beginTrackedWrite(exchange, isObserved);
      }
    },
  };
}

/** The rule for a request to a tracked resource. */
type EntityTagRule =
  /** GET and HEAD: the answer carries `ETag`, and `If-None-Match` gives 304. */
  | 'read'
  /** Creates a member. The 201 has the new member's tag; no tag that a client has changes. */
  | 'creation'
  /** Any other change of the collection's own path. It may change any member and make its tags wrong. */
  | 'collection-write'
  /** With `batch: guarded`, a POST or a method that needs `If-Match` with the collection's tag. No member's tag survives it. */
  | 'batch'
  /** Needs `If-Match` with the member's current tag. */
  | 'precondition'
  /** Changes the member itself without a precondition: takes its lease, and the tag rotates. */
  | 'write'
  /** Changes something below the member: takes the member's lease, and its tag rotates. */
  | 'child-write';

function ruleOf(tracked: TrackedRequest, request: CanonicalRequest): EntityTagRule {
  if (isSafe(request.method)) return 'read';
  const needsTag = needsIfMatch(tracked, request);
  const isCreation = request.method === 'POST' && !needsTag;
  if (tracked.role === 'collection') {
    if (tracked.resource.batch === 'guarded') return needsTag || isCreation ? 'batch' : 'collection-write';
    return isCreation ? 'creation' : 'collection-write';
  }
  if (needsTag) return 'precondition';
  return tracked.role === 'member' ? 'write' : 'child-write';
}

function describe(match: TrackedMatch, request: CanonicalRequest, name: NameRefusal): FilterDescription {
  if (match === 'lenient') {
    const text = `a change of a tracked resource must use its exact path: ${name('lenient-spelling')}`;
    return { label: 'entity tag', text, details: { rule: 'lenient-spelling', resource: null, text } };
  }
  const { collection, member, methods, ifMatch } = match.resource;
  const rule = ruleOf(match, request);
  const subject = match.role === 'collection' ? collection : member;
  const taken = ifMatch === 'lenient' ? '; W/"t", t and "t-gzip" are read as "t"' : '';
  const texts: Record<EntityTagRule, string> = {
    read: `a read of ${subject}: the answer carries ETag, If-None-Match with it gives 304`,
    precondition:
      `a change ${match.role === 'below' ? 'below' : 'of'} ${subject}: If-Match must be its current ETag (ifMatch: ${ifMatch}${taken}); ` +
      `${name('if-match-missing')} without, ${name('if-match-invalid')} with another`,
    write: `a change of ${subject} that needs no If-Match; it waits for other changes, and the ETag becomes a new one`,
    'child-write': `a change below ${subject} that needs no If-Match; it waits for other changes of the member, and the member's ETag becomes a new one`,
    'collection-write': `a change of ${subject} itself, which may change any member: ${name('collection-write')}`,
    batch: `a change of ${collection} as a whole (batch: guarded): it needs a token and, unless it is a POST, the ETag of ${collection}; it waits for changes of members, and makes the ETag of each out of date`,
    creation: `a new member of ${collection}: an answer 201 carries the new member's ETag`,
  };
  const resource = { collection, member, role: match.role, methods, ifMatch };
  return { label: 'entity tag', text: texts[rule], details: { rule, resource, text: texts[rule] } };
}

/** Read once for each request: before its body, and kept for `run`. */
function preconditionOf(tracked: TrackedRequest, request: CanonicalRequest): Precondition {
  if (tracked.precondition === undefined) tracked.precondition = readPrecondition(tracked, request);
  return tracked.precondition;
}

function readPrecondition(tracked: TrackedRequest, request: CanonicalRequest): Precondition {
  const { resource, role } = tracked;
  const isRequired = needsIfMatch(tracked, request);
  const lines = fieldValues(request.fields, 'if-match');
  const unless = role === 'below' ? [] : fieldValues(request.fields, 'if-none-match');
  const mayCreate = role === 'member' && (request.method === 'PUT' || !isRequired);
  if (mayCreate && isCreation(lines, unless)) return [noTag];
  const ifMatch = readIfMatch(lines, unless, resource.ifMatch);
  if (ifMatch === 'missing') return isRequired ? reject('if-match-missing') : null;
  if (ifMatch !== 'never') return ifMatch;
  // Below a member, a tag that does not have shopward's form is the shop's own tag of the child.
  return role === 'below' && !isRequired ? null : reject('if-match-invalid', { reason: 'never-current' });
}

function beginTrackedWrite(
  exchange: TrackedExchange,
  isObserved: boolean,
): Rejection | Promise<ObservedHooks | Rejection> {
  const { context, request, tracked, subject, isAnonymous } = exchange;
  const precondition = preconditionOf(tracked, request);
  const isGuarded = tracked.resource.batch === 'guarded';
  const creates = Array.isArray(precondition) && precondition.includes(noTag);
  const write: Write = {
    ...exchange,
    tags: isRejection(precondition) ? null : precondition,
    isOfOwnPath: tracked.role !== 'below',
    isCreation: creates,
    isWhole: isGuarded && tracked.member === undefined,
    answerTag: creates && request.method !== 'DELETE' ? 'own' : answerTagOf(tracked, request),
    // Collections that are read without a verified token have no tag. A guarded one changes with its member.
    alsoChanged:
      tracked.member === undefined || isAnonymous || isGuarded
        ? undefined
        : collectionKeyOf(tracked, subject),
  };
  if (isRejection(precondition)) {
    context.onEvent(
      precondition.rejection === 'if-match-missing' ? 'precondition-missing' : 'precondition-failed',
    );
    return isObserved ? observeWrite(write, precondition) : precondition;
  }
  // A guest's change of a collection would delay all its users.
  if (tracked.role === 'collection' && (isAnonymous || ruleOf(tracked, request) !== 'batch')) {
    context.onEvent('collection-write');
    const refusal = reject('collection-write');
    return isObserved ? observeWrite(write, refusal) : refusal;
  }
  const mayTakeLease = !isAnonymous || tracked.resource.openWrites === 'lease';
  const namesState = precondition !== null && !creates;
  const begun = namesState || mayTakeLease ? beginWrite(write) : beginUnleasedWrite(write);
  if (!isObserved) return begun;
  return begun.then((outcome) => {
    if (!isRejection(outcome)) return outcome;
    return outcome.rejection === 'if-match-invalid' ? observeWrite(write, outcome) : unleased(outcome);
  });
}

/** Observe mode: the write would have been refused. It still takes the lease if it can, so as not to break other writes. */
async function observeWrite(write: Write, refusal: Rejection): Promise<ObservedHooks> {
  const begun = await beginWrite({ ...write, tags: null });
  return isRejection(begun) ? unleased(refusal) : { ...begun, observed: refusal };
}

/** Forwarded as if shopward were not there. */
function unleased(observed: Rejection): ObservedHooks {
  return { observed, bufferLimit: 0, onOutcome: () => ({}) };
}

function answerTagOf(tracked: TrackedRequest, request: CanonicalRequest): Write['answerTag'] {
  if (tracked.role === 'below') return 'shown';
  if (tracked.role === 'collection' && request.method === 'POST') return 'none';
  const { method, isFormPost } = request;
  // The shop may treat a POST as a DELETE, so no tag stays current, unless `methods` lists POST and the body is no form.
  const mayDelete = method === 'POST' && (isFormPost || !tracked.resource.methods.includes('POST'));
  if (method === 'DELETE' || mayDelete) return 'gone';
  return needsIfMatch(tracked, request) ? 'own' : 'shown';
}
