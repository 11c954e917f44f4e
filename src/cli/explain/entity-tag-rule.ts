import type { Config } from '../../config/schema.ts';
import { createTrackedResources, type TrackedRequest } from '../../entity-tags/resources.ts';
import { type CanonicalRequest, isSafe } from '../../http/canonical-request.ts';
import type { RejectionName, Rejections } from '../../http/rejection.ts';

/** What a request is to the resources that carry entity tags. */
export type EntityTagRuleName =
  /** GET and HEAD: the answer carries `ETag`, and `If-None-Match` gives 304. */
  | 'read'
  /** Needs `If-Match` with the current tag. */
  | 'precondition'
  /** Changes the member itself without a precondition: takes its lease, and the tag rotates. */
  | 'write'
  /** Changes something below the member: takes the member's lease, and its tag rotates. */
  | 'child-write'
  /** Creates a member: the answer 201 carries its tag. */
  | 'creation'
  /** Changes a tracked resource by another spelling of its path: refused. */
  | 'lenient-spelling';

export interface EntityTagRule {
  readonly rule: EntityTagRuleName;
  /** Null for a lenient spelling, which may mean several resources. */
  readonly resource: {
    readonly collection: string;
    readonly member: string;
    readonly role: TrackedRequest['role'];
    readonly methods: readonly string[];
    readonly ifMatch: 'strict' | 'lenient';
    readonly freshForMs: number;
  } | null;
  readonly text: string;
}

/** The rule for a request; null: it meets no tracked resource. */
export function findEntityTagRule(
  request: CanonicalRequest,
  { entityTags, request: paths }: Pick<Config, 'entityTags' | 'request'>,
  rejections: Rejections,
): EntityTagRule | null {
  if (entityTags === false) return null;
  const resources = entityTags.resources.map(({ freshFor, ...more }) => ({ ...more, freshForMs: freshFor }));
  const met = createTrackedResources(resources, paths).match(request);
  if (met === undefined || met === 'no-id') return null;
  if (met === 'lenient') return lenientSpellingRule(rejections);
  const speak = (name: RejectionName) => speakOf(rejections, name);
  const { collection, member, methods, ifMatch, freshForMs } = met.resource;
  const rule = ruleOf(request, met);
  const place = met.role === 'collection' ? collection : member;
  const fresh = freshForMs > 0 ? `, from the store for ${freshForMs / 1000} s` : '';
  const taken = ifMatch === 'lenient' ? '; W/"t", t and "t-gzip" are taken for "t"' : '';
  const texts: Record<Exclude<EntityTagRuleName, 'lenient-spelling'>, string> = {
    read: `a read of ${place}: the answer carries ETag, If-None-Match with it gives 304${fresh}`,
    precondition:
      `a change of ${place}: If-Match must hold its current ETag (ifMatch: ${ifMatch}${taken}); ` +
      `${speak('if-match-missing')} without, ${speak('if-match-invalid')} with another`,
    write: `a change of ${place} that needs no If-Match; it waits for other changes, and the ETag becomes a new one`,
    'child-write': `a change below ${place} that needs no If-Match; it waits for other changes of the member, and the member's ETag becomes a new one`,
    creation: `a new member of ${collection}: an answer 201 carries the new member's ETag`,
  };
  return {
    rule,
    resource: { collection, member, role: met.role, methods, ifMatch, freshForMs },
    text: texts[rule],
  };
}

/** Whether nothing stands where the id of a tracked member belongs: refused before anybody is asked for a token. */
export function hasNoId(
  request: CanonicalRequest,
  { entityTags, request: paths }: Pick<Config, 'entityTags' | 'request'>,
): boolean {
  if (entityTags === false || isSafe(request.method)) return false;
  const resources = entityTags.resources.map(({ freshFor, ...more }) => ({ ...more, freshForMs: freshFor }));
  return createTrackedResources(resources, paths).match(request) === 'no-id';
}

export function lenientSpellingRule(rejections: Rejections): EntityTagRule {
  const text = `a change of a tracked resource must use its exact path: ${speakOf(rejections, 'lenient-spelling')}`;
  return { rule: 'lenient-spelling', resource: null, text };
}

function speakOf(rejections: Rejections, name: RejectionName): string {
  return `${rejections[name].status} code ${rejections[name].code}`;
}

function ruleOf(
  request: CanonicalRequest,
  { resource, role }: TrackedRequest,
): Exclude<EntityTagRuleName, 'lenient-spelling'> {
  if (isSafe(request.method)) return 'read';
  if (role === 'below') return 'child-write';
  const isGuarded = request.isFormPost || resource.methods.includes(request.method);
  if (isGuarded) return 'precondition';
  return role === 'collection' ? 'creation' : 'write';
}
