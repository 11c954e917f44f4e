import type { Config } from '../../config/schema.ts';
import type { NoReply, Reply } from './probe-client.ts';
import { type Check, createCheck, parseJson, replyText } from './verification.ts';

export type TrackedResource = Exclude<Config['entityTags'], false>['resources'][number];

export function tagOf(reply: Reply | NoReply): string | undefined {
  return 'fault' in reply ? undefined : reply.fields.etag;
}

/**
 * Nobody changed it in between, so far as we know: what differs between two reads changes by itself, and costs every
 * writer its tag.
 */
export function checkTwice(
  name: string,
  first: Reply | NoReply,
  second: Reply | NoReply,
  { member }: TrackedResource,
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
export function checkTag(
  name: string,
  reply: Reply | NoReply,
  { member, ifMatch }: TrackedResource,
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
    .replace(/-{1,2}(?:gzip|br|deflate|zstd)$/, '');
}

/** So many are enough to see what it is. */
const maxPointers = 10;

/**
 * JSON pointers (RFC 6901) of the values in which two documents differ, the first ten; none where they are equal. A
 * member that only one of them has counts as one difference, whatever is below it. Exported for its tests.
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
