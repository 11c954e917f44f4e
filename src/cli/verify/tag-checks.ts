import type { Config } from '../../config/schema.ts';
import { marginMs } from '../../entity-tags/times.ts';
import type { NoReply, Reply } from './probe-client.ts';
import {
  type Check,
  checkRefusal,
  createCheck,
  parseJson,
  replyText,
  samplePath,
  skip,
  type Verification,
} from './verification.ts';

type Tracked = Exclude<Config['entityTags'], false>['resources'][number];

export interface TagCheckOptions {
  /** Paths of members to look at, instead of the first one of each collection. */
  readonly members: readonly string[];
  /** Also tries PATCH and DELETE of an id that does not exist. */
  readonly isUnsafeWanted: boolean;
}

/** Members of the tracked resources carry strong tags, which arrive as they were sent, and give 304. */
export async function checkTags(verification: Verification, options: TagCheckOptions): Promise<Check[]> {
  const { config, token } = verification;
  if (config.entityTags === false) return [];
  if (token === undefined) {
    const advice = 'no token: --token TOKEN or the variable SHOPWARD_TOKEN';
    return [skip('tags', 'entity tags', advice)];
  }
  const checks: Check[] = [];
  for (const resource of config.entityTags.resources) {
    const named = options.members.filter((path) => isMemberOf(path, resource));
    const found = named.length > 0 ? named : await findMember(verification, token, resource);
    if (typeof found === 'string') checks.push(skip('tags', resource.member, found));
    else for (const path of found) checks.push(...(await checkMember(verification, token, resource, path)));
    if (options.isUnsafeWanted) checks.push(...(await checkPreconditions(verification, token, resource)));
  }
  return checks;
}

function isMemberOf(path: string, { member }: Tracked): boolean {
  const parts = member.split('/');
  const segments = (path.split('?')[0] ?? '').split('/');
  return (
    parts.length === segments.length &&
    parts.every((part, i) => part.startsWith('{') || part.toLowerCase() === segments[i]?.toLowerCase())
  );
}

/** The path of a member of the token's user, or why there is none. */
async function findMember(
  { client }: Verification,
  token: string,
  { collection }: Tracked,
): Promise<string[] | string> {
  if (collection.includes('{')) return 'its collection has parameters: name a member with --resource PATH';
  const reply = await client.ask({ method: 'GET', path: collection, fields: credentials(token) });
  if ('fault' in reply || reply.status !== 200) return `GET ${collection} answered ${replyText(reply)}`;
  const document = parseJson(reply.body) as { data?: readonly { id?: unknown }[] } | undefined;
  const id = Array.isArray(document?.data) ? document.data[0]?.id : undefined;
  if (typeof id !== 'string') return `the user has none in ${collection}: name a member with --resource PATH`;
  return [`${collection}/${encodeURIComponent(id)}`];
}

async function checkMember(
  { client }: Verification,
  token: string,
  resource: Tracked,
  path: string,
): Promise<Check[]> {
  const ask = (more: Record<string, string> = {}) =>
    client.ask({ method: 'GET', path, fields: { ...credentials(token), ...more } });
  const name = `GET ${path}`;
  const plain = await ask();
  const tag = tagOf(plain);
  const first = checkTag(name, plain, resource, undefined);
  if (first.outcome === 'failed' || tag === undefined) return [first];
  const twice = checkTwice(name, plain, await ask(), resource);
  if (twice.outcome === 'failed') return [first, twice];
  const unchanged = await ask({ 'If-None-Match': tag });
  const is304 = !('fault' in unchanged) && unchanged.status === 304 && unchanged.body === '';
  const compressed = await ask({ 'Accept-Encoding': 'gzip' });
  return [
    first,
    twice,
    createCheck('tags', `${name} with If-None-Match`, is304, '304', replyText(unchanged)),
    checkTag(`${name} with Accept-Encoding: gzip`, compressed, resource, tag),
  ];
}

/**
 * Nobody changed it in between, so far as we know: what differs between two reads changes by itself, and costs every
 * writer its tag.
 */
function checkTwice(
  name: string,
  first: Reply | NoReply,
  second: Reply | NoReply,
  { member }: Tracked,
): Check {
  const tag = tagOf(second);
  const isSame = tag !== undefined && tag === tagOf(first);
  const pointers =
    isSame || 'fault' in first || 'fault' in second
      ? []
      : differingPointers(parseJson(first.body), parseJson(second.body)).filter((one) => one !== '');
  const line = `ignore: [${pointers.map(quote).join(', ')}]`;
  return createCheck(
    'tags',
    `${name}, twice`,
    isSame,
    'the same ETag',
    pointers.length === 0
      ? (tag ?? replyText(second))
      : `another ETag; ${pointers.map(quote).join(', ')} differ`,
    pointers.length === 0
      ? 'the resource changed in between (try again), or two replicas do not share a store'
      : `if the resource did not change, in the entry of ${member}: ${line}`,
  );
}

/** For YAML and for a terminal: names are the shop's. */
function quote(pointer: string): string {
  const text = pointer.length > 200 ? `${pointer.slice(0, 200)}...` : pointer;
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const strong = /^"[^"]*"$/;

/** A tag as it arrived: strong, and the same as `sent` where that is known. */
function checkTag(
  name: string,
  reply: Reply | NoReply,
  { member, ifMatch }: Tracked,
  sent: string | undefined,
): Check {
  const expected = sent === undefined ? '200 with a strong ETag' : 'the same ETag';
  if ('fault' in reply || reply.status !== 200)
    return createCheck('tags', name, false, expected, replyText(reply));
  const tag = tagOf(reply);
  if (tag === undefined) {
    const advice =
      'entity tags are off there, their store is away (see /readyz), or something in front drops ETag';
    return createCheck('tags', name, false, expected, 'no ETag', advice);
  }
  if (strong.test(tag) && (sent === undefined || bare(tag) === bare(sent)) && !isMarked(tag)) {
    const isOk = sent === undefined || tag === sent;
    return createCheck('tags', name, isOk, expected, tag, 'the resource changed in between: try again');
  }
  const isTaken = ifMatch === 'lenient';
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
    .replace(/-{1,2}(?:gzip|br|deflate|zstd)$/, '');
}

/** Refused before the shop is asked; the id does not exist, should nothing refuse them. */
async function checkPreconditions(
  { client, rejections, id }: Verification,
  token: string,
  { member, methods }: Tracked,
): Promise<Check[]> {
  const path = samplePath(member, id);
  const checks: Check[] = [];
  for (const method of methods) {
    const ask = (more: Record<string, string> = {}) =>
      client.ask({ method, path, body: '{}', fields: { ...credentials(token), ...more } });
    const without = checkRefusal(
      'unsafe',
      `${method} ${member} without If-Match`,
      await ask(),
      rejections['if-match-missing'],
    );
    checks.push(without);
    if (without.outcome === 'failed') continue;
    const other = await ask({ 'If-Match': '"shopward-verify"' });
    const name = `${method} ${member} with another If-Match`;
    checks.push(checkRefusal('unsafe', name, other, rejections['if-match-invalid']));
  }
  return checks;
}

function tagOf(reply: Reply | NoReply): string | undefined {
  return 'fault' in reply ? undefined : reply.fields.etag;
}

function credentials(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}` };
}

export interface WriteCheckOptions {
  /** Paths of members that may be written. */
  readonly members: readonly string[];
  /** JSON text of a change that may be made several times over; undefined: none. */
  readonly change: string | undefined;
}

/** Enough to see a slow one, few enough for a live shop. */
const writes = 5;

/**
 * How long the shop takes for a change of each member, and whether `entityTags.lease` leaves room for the slowest: a
 * shop that acts on a write after its lease has ended can lose somebody's update.
 */
export async function checkWrites(verification: Verification, options: WriteCheckOptions): Promise<Check[]> {
  const { config, token } = verification;
  const { change, members } = options;
  if (change === undefined || config.entityTags === false) return [];
  if (token === undefined || members.length === 0) {
    return [skip('tags', 'time of a write', '--write needs --resource PATH and a token')];
  }
  const checks: Check[] = [];
  for (const path of members) checks.push(await timeWrites(verification, path, change, config.entityTags));
  return checks;
}

async function timeWrites(
  { client, token }: Verification,
  path: string,
  body: string,
  { lease, sendBy }: { readonly lease: number; readonly sendBy: number },
): Promise<Check> {
  const name = `PATCH ${path}, ${writes} times`;
  const authorization = { Authorization: `Bearer ${token}` };
  let slowestMs = 0;
  for (let i = 0; i < writes; i++) {
    const read = await client.ask({ method: 'GET', path, fields: authorization });
    const tag = 'fault' in read ? undefined : read.fields.etag;
    if (tag === undefined) return createCheck('tags', name, false, '200 with an ETag', replyText(read));
    const startedMs = performance.now();
    const reply = await client.ask({
      method: 'PATCH',
      path,
      body,
      fields: { ...authorization, 'If-Match': tag },
    });
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
    const isDone = !('fault' in reply) && reply.status >= 200 && reply.status < 300;
    if (!isDone) return createCheck('tags', name, false, 'a change that the shop takes', replyText(reply));
  }
  const neededMs = slowestMs + sendBy + marginMs;
  return createCheck(
    'tags',
    name,
    neededMs <= lease,
    `entityTags.lease of ${seconds(neededMs)} at least`,
    `the slowest took ${seconds(slowestMs)}: a lease of ${seconds(neededMs)} at least, ${seconds(lease)} is set`,
    `set entityTags.lease to the shop's longest write, and ${seconds(sendBy + marginMs)} more`,
  );
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** So many are enough to see what it is. */
const maxPointers = 10;

/**
 * JSON pointers (RFC 6901) of the values in which two documents differ, the first ten; none where they are equal. A
 * member that only one of them has counts as one difference, whatever is below it.
 */
export function differingPointers(one: unknown, other: unknown): string[] {
  const found: string[] = [];
  // A list, not a recursion: how deep a document is, is its author's choice.
  const open: Array<readonly [pointer: string, one: unknown, other: unknown]> = [['', one, other]];
  for (let next = open.pop(); next !== undefined && found.length < maxPointers; next = open.pop()) {
    const [pointer, left, right] = next;
    if (!isContainer(left) || !isContainer(right) || Array.isArray(left) !== Array.isArray(right)) {
      if (left !== right) found.push(pointer);
      continue;
    }
    const names = new Set([...Object.keys(left), ...Object.keys(right)]);
    for (const name of [...names].reverse()) {
      open.push([`${pointer}/${escapeName(name)}`, left[name], right[name]]);
    }
  }
  return found;
}

function escapeName(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
