import { hash, randomUUID } from 'node:crypto';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { meantTag, parseEntityTags, type TagReading } from '../http/entity-tag-list.ts';
import { type FieldList, fieldValues, isNamed, trimEndWhile } from '../http/field-list.ts';
import { foldText } from '../http/path-folding.ts';
import type { ResourceKey } from './tag-store.ts';

/** One record for all users and all spellings of an id. */
export function memberKey(template: string, ids: readonly string[]): ResourceKey {
  return digest(['member', template.toLowerCase(), ...ids.map(foldId)]);
}

/** One record per subject: the members of a collection depend on who asks. */
export function collectionKey(template: string, ids: readonly string[], subject: string): ResourceKey {
  return digest(['collection', template.toLowerCase(), ...ids.map(foldId), subject]);
}

/** For `batch: guarded`: a collection with one record for all subjects, and its members (`ResourceKey`). */
export function guardedKey(collection: string, ids: readonly string[], member = ''): ResourceKey {
  return `${collectionKey(collection, ids, 'all')}.${member}` as ResourceKey;
}

/**
 * Folds the spellings that a database's collation or the shop's router takes for one id: `foldText`, `;params`, spaces and
 * dots at the end; in a whole number also leading spaces, `+` and zeros, and a final `.0`; in a UUID hyphens, braces
 * and zeros. Two spellings must not mean two leases; two ids under one lease only wait for one another. Exported for its tests.
 */
export function foldId(id: string): string {
  if (id.length < 32 ? folded.test(id) && !shortUuid.test(id) : uuid.test(id)) return id;
  const [name = ''] = foldText(id).split(';', 1);
  const text = trimEndWhile(name, isIgnoredAtTheEnd);
  const bare = digitsOfUuid(text.trimStart());
  const [, digits] = wholeNumber.exec(bare ?? text.trimStart()) ?? [];
  if (digits !== undefined) return digits.replace(/^0+(?=\d)/, '');
  return bare?.replace(uuidGroups, '$1-$2-$3-$4-$5') ?? text;
}

/** Java adds zeros to each group, and cuts a long one; PostgreSQL ignores where the hyphens are. */
function digitsOfUuid(text: string): string | undefined {
  const plain = text.replace(/^urn:uuid:|[{}()+]/g, '');
  const isShort = plain.length < 36 && shortUuid.test(plain);
  const groups = plain.split('-');
  const padded = groupSizes.map((size, i) => (groups[i] ?? '').padStart(size, '0').slice(-size));
  const bare = (isShort ? padded : groups).join('');
  return uuidGroups.test(bare) ? bare : undefined;
}

function isIgnoredAtTheEnd(code: number): boolean {
  return code === 0 || code === 0x2e || /\s/.test(String.fromCharCode(code));
}

/** A whole number as databases cast it. `1e0`, `0x1` and `1abc`, which only some cast, stay ids of their own. */
const wholeNumber = /^\+?(\d+)(?:\.0*)?$/;
const groupSizes = [8, 4, 4, 4, 12];
const uuidGroups = /^([\da-f]{8})([\da-f]{4})([\da-f]{4})([\da-f]{4})([\da-f]{12})$/;

/** Most ids; `foldId` changes nothing in them. */
const folded = /^(?:0|[1-9]\d*|[a-z_-][a-z\d_-]*)$/;
const uuid = /^(?=.*[a-f])[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
const shortUuid = /^[\da-f]+(?:-[\da-f]+){4}$/;

/** In hexadecimal, so that no part of an id has a meaning in a key. Exported for its tests. */
export function digest(parts: readonly string[]): ResourceKey {
  return hash('sha256', lengthPrefixed(parts), 'hex').slice(0, 48) as ResourceKey;
}

/** Each part with its length before it, so that one part cannot look like two. */
function lengthPrefixed(parts: readonly string[]): string {
  let text = '';
  for (let i = 0; i < parts.length; i += 1) text += `${(parts[i] as string).length}:${parts[i]}`;
  return text;
}

/** The values of one field in the same form, without an array. */
function valuesOf(fields: FieldList, name: string): string {
  let text = '';
  for (let i = 0; i < fields.length; i += 2) {
    if (isNamed(fields[i] as string, name)) text += `${(fields[i + 1] as string).length}:${fields[i + 1]}`;
  }
  return text;
}

export type Identity = { readonly subject?: string | undefined } | undefined;

/** Fields by which a shop may choose a representation (RFC 9110 section 12.5). Content-Type is for versions. */
const negotiatedFields = ['accept', 'accept-language', 'content-type', 'store', 'x-agent-authorization'];
/** What a variant includes besides target and Host: a `Vary` with only these names needs no further check. */
const toldApart = new Set([...negotiatedFields, 'accept-encoding', 'authorization', 'host']);
/** Fields that name the sender if there is no verified token. */
const anonymousFields = ['x-anonymous-customer-unique-id', 'authorization', 'cookie'];
/** Names of one `Vary` that the variant of a record includes; only the tag includes the others. */
const maxVaryNames = 16;

/** The sender, for keys: the verified subject, else a digest of the fields that may tell users apart. */
export function subjectOf(request: Pick<CanonicalRequest, 'fields'>, identity: Identity): string {
  const subject = identity?.subject;
  if (subject !== undefined) return `subject ${subject}`;
  const values = anonymousFields.map((name) => valuesOf(request.fields, name));
  return values.join('') === '' ? 'nobody' : `unverified ${shortHash(values)}`;
}

/** Whether the sender is not verified, so that it may pretend to be any user. */
export function isAnonymous(identity: Identity): boolean {
  return identity?.subject === undefined;
}

/**
 * The name under which a fingerprint is kept: equal requests of one subject have the same. A digest, so that neither
 * a token nor an id reaches a key. `kind` keeps answers to different methods apart, `vary` is the answer's.
 */
export function variantOf(
  request: Pick<CanonicalRequest, 'fields' | 'host' | 'path' | 'query'>,
  subject: string,
  kind: 'read' | 'created',
  vary: Vary = noVary,
): string {
  // With their order and weights, because the shop chooses by them.
  const codings = fieldValues(request.fields, 'accept-encoding').join().toLowerCase().replaceAll(' ', '');
  const parts = [kind, request.path, request.query, subject, request.host, codings];
  for (const name of negotiatedFields) parts.push(valuesOf(request.fields, name));
  for (const name of vary.followed) parts.push(name, valuesOf(request.fields, name));
  return shortHash(parts);
}

/** Names in `Vary` (RFC 9110 section 12.5.5) beyond the fields that every variant includes; usually none. */
export interface Vary {
  /** `*`: the answer depends on more than the request. */
  readonly isAny: boolean;
  /** Fields by which records tell variants apart. */
  readonly followed: readonly string[];
  /** Fields that only the tag includes: `Cookie`, which would make each request a variant, and all beyond 16. */
  readonly others: readonly string[];
}

const noVary: Vary = { isAny: false, followed: [], others: [] };

export function readVary(lines: readonly string[]): Vary {
  if (lines.length === 0) return noVary;
  const named = lines.join(',').toLowerCase().split(',');
  const names = new Set(
    named.map((name) => name.trim()).filter((name) => name !== '' && !toldApart.has(name)),
  );
  const isAny = names.delete('*');
  const hasCookie = names.delete('cookie');
  const sorted = [...names].sort();
  const others = sorted.splice(maxVaryNames);
  return { isAny, followed: sorted, others: hasCookie ? [...others, 'cookie'] : others };
}

/**
 * The tag of a representation: its state, and a digest of all that tells it from other representations of that state. It is
 * computed with the epoch of the store, which no client knows, so it reveals nothing of a user, a token or a body.
 */
export function entityTagOf(
  state: string,
  { epoch, variant, fingerprint }: Readonly<Record<'epoch' | 'variant' | 'fingerprint', string>>,
  request: Pick<CanonicalRequest, 'fields'>,
  { others }: Vary = noVary,
): string {
  const parts = [epoch, variant, fingerprint];
  for (const name of others) parts.push(name, valuesOf(request.fields, name));
  return `${state}.${hash('sha256', lengthPrefixed(parts), 'hex').slice(0, variantDigits)}`;
}

/** 96 bits. */
const variantDigits = 24;

/** 132 bits. */
function shortHash(parts: readonly string[]): string {
  return hash('sha256', lengthPrefixed(parts), 'base64url').slice(0, 22);
}

/** A new state: 32 hexadecimal digits, 122 random bits. No proxy or library rewrites these characters. */
export function randomTag(): string {
  const id = randomUUID();
  return id.slice(0, 8) + id.slice(9, 13) + id.slice(14, 18) + id.slice(19, 23) + id.slice(24);
}

const stateLength = 32;
/** `<state>.<variant>`, or the state alone, as earlier versions gave it out. */
const ownTag = /^[0-9a-f]{32}(?:\.[0-9a-f]{1,24})?$/;
const soleOwnTag = /^"([0-9a-f]{32})(?:\.[0-9a-f]{1,24})?"$/;

/** The state that one of shopward's own tags names; undefined for any other tag. */
export function stateOf(tag: string): string | undefined {
  return ownTag.test(tag) ? tag.slice(0, stateLength) : undefined;
}

/** The tag of an answer to a write. No read has this variant, so the tag is valid only in `If-Match`. */
export function tagOfWrite(state: string): string {
  return `${state}.0`;
}

/** Whether a request may only create, by `If-None-Match: *` (RFC 9110 section 13.1.2). */
export function isCreation(ifMatch: readonly string[], ifNoneMatch: readonly string[]): boolean {
  return ifMatch.length === 0 && parseEntityTags(ifNoneMatch, 'strict') === '*';
}

/**
 * What `If-Match` requires (RFC 9110 section 13.1.1), together with the `If-None-Match` of a write: the states of which
 * one must be current. `never`: no current state can match, because the field is malformed, or has only weak tags, tags
 * that are not shopward's, or states that `If-None-Match` names, too; or it is `*`, since a change has to name the state
 * that it was made for.
 */
export function readIfMatch(
  ifMatch: readonly string[],
  ifNoneMatch: readonly string[],
  reading: TagReading,
): 'missing' | 'never' | readonly string[] {
  if (ifMatch.length === 0) return 'missing';
  // Nearly every write has one such tag.
  const [, sole] = ifMatch.length === 1 ? (soleOwnTag.exec(ifMatch[0] as string) ?? []) : [];
  if (sole !== undefined && ifNoneMatch.length === 0) return [sole];
  const wanted = parseEntityTags(ifMatch, reading);
  if (!Array.isArray(wanted)) return 'never';
  const strong = wanted.filter(({ weak }) => !weak || reading === 'lenient');
  const states = new Set(strong.map((tag) => stateOf(meantTag(tag, reading))));
  states.delete(undefined);
  // Without a tag of shopward's, the second list need not be parsed.
  if (states.size === 0) return 'never';
  const excluded = ifNoneMatch.length === 0 ? [] : parseEntityTags(ifNoneMatch, reading);
  if (!Array.isArray(excluded)) return 'never';
  for (const tag of excluded) states.delete(stateOf(meantTag(tag, reading)));
  return states.size === 0 ? 'never' : ([...states] as string[]);
}
