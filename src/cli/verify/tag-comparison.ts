import type { Config } from '../../config/schema.ts';
import { isContainer, parseJson } from '../../lib/json.ts';
import { escapeUnit } from '../../lib/text.ts';
import type { Reply } from './probe-client.ts';
import { type Check, createCheck, replyText } from './verification.ts';

export type TrackedResource = Exclude<Config['entityTags'], false>['resources'][number];

/**
 * Checks that two reads have the same tag. Unless somebody changed the resource in between, what differs changes by itself, and
 * makes every writer's tag stale.
 */
export function checkTwice(name: string, first: Reply, second: Reply, { member }: TrackedResource): Check {
  const tag = second.fields.etag;
  const isSame = tag !== undefined && tag === first.fields.etag;
  const pointers =
    isSame || first.status === 0 || second.status === 0
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

/** Quotes a pointer for YAML and the terminal, since its names come from the shop. */
function quote(pointer: string): string {
  const text = pointer.length > 200 ? `${pointer.slice(0, 200)}...` : pointer;
  return JSON.stringify(text).replace(/[^\x20-\x7e]/g, escapeUnit);
}

const strong = /^"[^"]*"$/;

/** Checks a tag as it arrived: strong, and equal to `sent` where that is known. */
export function checkTag(
  name: string,
  reply: Reply,
  { member, ifMatch }: TrackedResource,
  sent: string | undefined,
): Check {
  const expected = sent === undefined ? '200 with a strong ETag' : 'the same ETag';
  if (reply.status !== 200) return createCheck('tags', name, false, expected, replyText(reply));
  const tag = reply.fields.etag;
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
  // Iterative, since a document may be nested deeply.
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
