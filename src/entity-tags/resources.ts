import { type CanonicalRequest, isSafe, type Method } from '../http/canonical-request.ts';
import {
  decodeSegment,
  type FormatSuffixes,
  foldSuffixes,
  withoutFormatSuffix,
} from '../http/path-folding.ts';
import { isTemplateProblem, parsePathTemplate } from '../http/path-template.ts';
import type { Rejection } from '../http/rejection.ts';
import { buildPathTable, type PathMatch, type PathRules, type PathTableRow } from '../routes/path-table.ts';
import { collectionKey, guardedKey, memberKey } from './keys.ts';
import type { ResourceKey } from './tag-store.ts';

/** One resource type that carries entity tags. */
export interface TrackedResourceOptions {
  /** Path template of the collection, such as `/carts`. */
  readonly collection: string;
  /** The collection's template and one parameter, such as `/carts/{cart_id}`. */
  readonly member: string;
  /** Methods that require `If-Match`: see `needsIfMatch`. */
  readonly methods: readonly Method[];
  /** Segments in place of an id that name no member. Default: none. */
  readonly nonMembers?: readonly string[];
  readonly ifMatch: 'strict' | 'lenient';
  /** What a write without a verified token does if it needs no tag: see `beginUnleasedWrite`. Default: mark. */
  readonly openWrites?: 'mark' | 'lease';
  /** `guarded`: any user may change the collection as a whole, which voids the tags of its members. Default: refuse. */
  readonly batch?: 'refuse' | 'guarded';
  /** JSON pointers (RFC 6901) to what may change although the state does not. */
  readonly ignore: readonly string[];
}

/** The position of a request's path in a tracked resource. */
type Role = 'collection' | 'member' | 'below';

/** A request that matches a tracked resource. */
export interface TrackedRequest {
  readonly resource: TrackedResourceOptions;
  readonly role: Role;
  /** Decoded values of the collection's parameters. */
  readonly collectionIds: readonly string[];
  /** Key of the member; undefined at the collection. */
  readonly member: ResourceKey | undefined;
  /** Undefined: not read yet. */
  precondition?: Precondition;
}

/** The tags in a write's fields (null: none required; `noTag`: a creation), or the refusal of these fields. */
export type Precondition = readonly string[] | null | Rejection;

/** `lenient`: a request that changes a tracked resource, but does not spell its path exactly. */
export type TrackedMatch = TrackedRequest | 'lenient';

interface Template {
  readonly resource: TrackedResourceOptions;
  /** Names of the member's parameters, in order. */
  readonly names: readonly string[];
  /** Of the member: literals as in a canonical path, null for each parameter. */
  readonly parts: readonly (string | null)[];
}

interface TrackedRow extends Template {
  readonly role: Role;
}

/** The configuration's rules make sure that templates fit together, and no tracked resource lies below another. */
export function compileTrackedResources(
  resources: readonly TrackedResourceOptions[],
  rules: PathRules,
): (request: CanonicalRequest) => TrackedMatch | undefined {
  const templates = resources.map(toTemplate);
  const rows = templates.flatMap((template): PathTableRow<TrackedRow>[] => {
    const { collection, member } = template.resource;
    return [
      { method: 'ANY', template: collection, data: { ...template, role: 'collection' } },
      { method: 'ANY', template: member, data: { ...template, role: 'member' } },
      { method: 'ANY', template: `${member}/**`, data: { ...template, role: 'below' } },
    ];
  });
  const table = buildPathTable(rows, rules);
  const suffixes = foldSuffixes(rules.formatSuffixes);
  return (request) => {
    const { method } = request;
    const segments = withoutSuffix(request.segments, suffixes);
    if (method === 'GET' || method === 'HEAD') return matchToTheLetter(templates, segments);
    // Answers to other safe methods are not representations of the member.
    if (isSafe(method)) return undefined;
    const matches = table.match(request);
    if (matches.length === 0) return undefined;
    // A format suffix names a representation, not another resource.
    const exact =
      matches.find((match) => isExact(match, request)) ??
      matches.find(({ interpretation: [step, ...more] }) => step === 'format-suffix' && more.length === 0);
    if (exact === undefined || matches.some((match) => !isSameResource(match, exact))) return 'lenient';
    if (namesNoMember(exact.data.resource, segments)) return undefined;
    const ids = idsOf(exact);
    const last = exact.data.role === 'member' ? segments.at(-1) : undefined;
    return toTracked(
      exact.data,
      exact.data.role,
      last === undefined ? ids : ids.with(-1, decodeSegment(last)),
    );
  };
}

function withoutSuffix(segments: readonly string[], suffixes: FormatSuffixes): readonly string[] {
  const cut = withoutFormatSuffix(segments.at(-1), suffixes);
  return cut === undefined ? segments : segments.with(-1, cut);
}

/**
 * Whether a change needs `If-Match`. A POST to a member always does: for the shop it may be any method, which a field, a
 * parameter or the body names. With POST in `methods`, so does one to a path below. A POST to the collection needs none,
 * since the new member has no tag yet, except a form, which may name another method.
 */
export function needsIfMatch(
  { resource: { methods }, role }: Pick<TrackedRequest, 'resource' | 'role'>,
  { method, isFormPost }: Pick<CanonicalRequest, 'method' | 'isFormPost'>,
): boolean {
  const isListed = methods.includes(method);
  if (role === 'below') return method === 'POST' && isListed;
  return method === 'POST' ? isFormPost || role === 'member' : isListed;
}

function idsOf({ data, params }: PathMatch<TrackedRow>): string[] {
  const names = data.role === 'collection' ? data.names.slice(0, -1) : data.names;
  return names.map((name) => decodeSegment(params[name] ?? ''));
}

function toTemplate(resource: TrackedResourceOptions): Template {
  const template = parsePathTemplate(resource.member);
  if (isTemplateProblem(template)) throw new Error(`${resource.member}: ${template.problem}`);
  const parts = template.segments.map((part) => ('literal' in part ? part.literal : null));
  const names = template.segments.flatMap((part) => ('literal' in part ? [] : [part.name]));
  return { resource, names, parts };
}

/**
 * Reads get tags only under the exact path, so other interpretations do not matter. If several resources match, the first one
 * counts, as in the table.
 */
function matchToTheLetter(
  templates: readonly Template[],
  segments: readonly string[],
): TrackedRequest | undefined {
  if (segments.includes('')) return undefined;
  for (const template of templates) {
    const surplus = segments.length - template.parts.length;
    // The last part is the member's parameter, which a collection's path does not have.
    if (surplus < -1 || !meets(template, segments)) continue;
    if (surplus > 0 || namesNoMember(template.resource, segments)) return undefined;
    const ids = segments.filter((_, i) => template.parts[i] === null).map(decodeSegment);
    return toTracked(template, surplus === 0 ? 'member' : 'collection', ids);
  }
  return undefined;
}

/** Compared exactly: a segment with another spelling is an id. */
function namesNoMember({ collection, nonMembers }: TrackedResourceOptions, segments: readonly string[]) {
  return nonMembers?.includes(segments[collection.split('/').length - 1] ?? '') === true;
}

function meets({ parts }: Template, segments: readonly string[]): boolean {
  return parts.every((part, i) => part === null || part === segments[i]);
}

/** `/carts/1/` meets `/carts/{id}/**` to the letter, but an empty rest is another spelling of the member. */
function isExact({ exact, data }: PathMatch<TrackedRow>, { segments }: CanonicalRequest): boolean {
  if (!exact || segments.includes('')) return false;
  return data.role !== 'below' || segments.length > data.resource.member.split('/').length - 1;
}

/** `/carts/1/**` also meets `/carts/1` itself; anything else that is met means a second interpretation of the path. */
function isSameResource(match: PathMatch<TrackedRow>, exact: PathMatch<TrackedRow>): boolean {
  if (match === exact) return true;
  const { data } = match;
  return (
    data.resource === exact.data.resource &&
    exact.data.role === 'member' &&
    data.role === 'below' &&
    data.names.every((name) => match.params[name] === exact.params[name])
  );
}

function toTracked({ resource, names }: Template, role: Role, ids: readonly string[]): TrackedRequest {
  const collectionIds = ids.slice(0, names.length - 1);
  const member = role === 'collection' ? undefined : keyOfMember(resource, ids);
  return { resource, role, collectionIds, member };
}

function keyOfMember({ collection, member, batch }: TrackedResourceOptions, ids: readonly string[]) {
  const key = memberKey(member, ids);
  return batch === 'guarded' ? guardedKey(collection, ids.slice(0, -1), key) : key;
}

/** Key of a member whose id was read in a document. */
export function memberKeyOf({ resource, collectionIds }: TrackedRequest, id: string): ResourceKey {
  return keyOfMember(resource, [...collectionIds, id]);
}

/** Whether a path, or a type and an id, name the very member that a request meets. */
export function isMember(
  { resource, collectionIds, member }: TrackedRequest,
  named: { readonly path: string } | { readonly type: string; readonly id: string },
): boolean {
  const names = resource.collection.split('/');
  if ('type' in named) {
    const isOfType = named.type.toLowerCase() === names.at(-1)?.toLowerCase();
    return isOfType && keyOfMember(resource, [...collectionIds, named.id]) === member;
  }
  const path = named.path.split(/[?#]/, 1)[0] ?? '';
  // Drop what precedes the collection's path: an origin, a prefix of the shop.
  const segments = path.split('/').slice(-names.length).map(decodeSegment);
  const isOfCollection = names.slice(1).every((name, i) => name.startsWith('{') || name === segments[i]);
  const ids = segments.filter((_, i) => names[i + 1]?.startsWith('{') ?? true);
  return isOfCollection && keyOfMember(resource, ids) === member;
}

export function collectionKeyOf({ resource, collectionIds }: TrackedRequest, subject: string): ResourceKey {
  const { collection, batch } = resource;
  return batch === 'guarded'
    ? guardedKey(collection, collectionIds)
    : collectionKey(collection, collectionIds, subject);
}
