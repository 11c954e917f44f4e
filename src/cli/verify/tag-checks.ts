import type { Config } from '../../config/schema.ts';
import type { Reply } from './probe-client.ts';
import { type Check, createCheck, firstOf, replyText, skip, type Verification } from './verification.ts';

/**
 * Checks that members of tracked resources have strong tags, which arrive unchanged and give 304. `members`: paths to check
 * instead of the first member of each collection.
 */
export async function checkTags(verification: Verification, members: readonly string[]): Promise<Check[]> {
  const { config, token } = verification;
  if (config.entityTags === false) return [];
  if (token === undefined) {
    const advice = 'no token: --token TOKEN or the variable SHOPWARD_TOKEN';
    return [skip('tags', 'entity tags', advice)];
  }
  const checks: Check[] = [];
  for (const resource of config.entityTags.resources) {
    const named = members.filter((path) => isMemberOf(path, resource));
    const found = named.length > 0 ? named : await findMember(verification, token, resource);
    if (typeof found === 'string') checks.push(skip('tags', resource.member, found));
    else for (const path of found) checks.push(...(await checkMember(verification, token, resource, path)));
  }
  return checks;
}

function isMemberOf(path: string, { member }: TrackedResource): boolean {
  const parts = member.split('/');
  const segments = (path.split('?')[0] ?? '').split('/');
  return (
    parts.length === segments.length &&
    parts.every((part, i) => part.startsWith('{') || part.toLowerCase() === segments[i]?.toLowerCase())
  );
}

/** The path of a member that belongs to the token's user, or why there is none. */
async function findMember(
  { client }: Verification,
  token: string,
  { collection }: TrackedResource,
): Promise<string[] | string> {
  if (collection.includes('{')) return 'its collection has parameters: name a member with --resource PATH';
  const reply = await client.ask(collection, credentials(token));
  if (reply.status !== 200) return `GET ${collection} answered ${replyText(reply)}`;
  const id = firstOf(reply)?.id;
  if (typeof id !== 'string') return `the user has no member in ${collection}: name one with --resource PATH`;
  return [`${collection}/${encodeURIComponent(id)}`];
}

async function checkMember(
  { client }: Verification,
  token: string,
  resource: TrackedResource,
  path: string,
): Promise<Check[]> {
  const ask = (more: Record<string, string> = {}) => client.ask(path, { ...credentials(token), ...more });
  const name = `GET ${path}`;
  const plain = await ask();
  const tag = plain.fields.etag;
  const first = checkTag(name, plain, resource, undefined);
  if (first.outcome === 'failed' || tag === undefined) return [first];
  const twice = checkTwice(name, plain, await ask(), resource);
  if (twice.outcome === 'failed') return [first, twice];
  const unchanged = await ask({ 'If-None-Match': tag });
  const is304 = unchanged.status === 304 && unchanged.body === '';
  const compressed = await ask({ 'Accept-Encoding': 'gzip' });
  return [
    first,
    twice,
    createCheck('tags', `${name} with If-None-Match`, is304, '304', replyText(unchanged)),
    checkTag(`${name} with Accept-Encoding: gzip`, compressed, resource, tag),
  ];
}

function credentials(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}` };
}

type TrackedResource = Exclude<Config['entityTags'], false>['resources'][number];

/** Checks that two reads have one tag. If a part changes by itself, every client's tag is stale. */
function checkTwice(name: string, first: Reply, second: Reply, { member }: TrackedResource): Check {
  const tag = second.fields.etag;
  const isSame = tag !== undefined && tag === first.fields.etag;
  const advice = `if the resource was not changed in between, two replicas do not share a store, or a part of it changes by itself: name that part in ignore of ${member}`;
  return createCheck('tags', `${name}, twice`, isSame, 'the same ETag', tag ?? replyText(second), advice);
}

const strong = /^"[^"]*"$/;

/** Checks a tag as it arrived: strong, and equal in state to `sent` if that is known. */
function checkTag(
  name: string,
  reply: Reply,
  { member, ifMatch }: TrackedResource,
  sent: string | undefined,
): Check {
  const expected = sent === undefined ? '200 with a strong ETag' : 'an ETag of the same state';
  if (reply.status !== 200) return createCheck('tags', name, false, expected, replyText(reply));
  const tag = reply.fields.etag;
  if (tag === undefined) {
    const advice =
      'entity tags are off there, the store cannot be reached (see /readyz), or a proxy in front drops ETag';
    return createCheck('tags', name, false, expected, 'no ETag', advice);
  }
  if (strong.test(tag) && (sent === undefined || bare(tag) === bare(sent)) && !isMarked(tag)) {
    return createCheck('tags', name, true, expected, tag);
  }
  const isTaken = ifMatch === 'lenient' && (sent === undefined || bare(tag) === bare(sent));
  const got = `${tag}${reply.fields['content-encoding'] ? `, ${reply.fields['content-encoding']}` : ''}`;
  const advice =
    `the tag is altered on the way (compression in front does that), and clients that send it back get 412: ` +
    `set ifMatch: lenient for ${member}`;
  return createCheck(
    'tags',
    name,
    isTaken,
    isTaken ? `${expected}, or altered (ifMatch: lenient)` : expected,
    got,
    advice,
  );
}

function isMarked(tag: string): boolean {
  return /-{1,2}(?:gzip|br|deflate|zstd)"$/.test(tag);
}

function bare(tag: string): string {
  return tag
    .replace(/^W\//, '')
    .replace(/^"|"$/g, '')
    .replace(/-{1,2}(?:gzip|br|deflate|zstd)$/, '')
    .replace(/\.[0-9a-f]+$/, '');
}
