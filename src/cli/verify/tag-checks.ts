import { marginMs } from '../../entity-tags/times.ts';
import { checkTag, checkTwice, type TrackedResource } from './tag-comparison.ts';
import {
  type Check,
  checkRefusal,
  createCheck,
  firstOf,
  replyText,
  samplePath,
  skip,
  type Verification,
} from './verification.ts';

/**
 * Checks that members of tracked resources have strong tags, which arrive unchanged and give 304. `members`: their paths, instead
 * of the first one of each collection; `isUnsafeWanted`: also tries PATCH and DELETE of an id that does not exist.
 */
export async function checkTags(
  verification: Verification,
  options: { readonly members: readonly string[]; readonly isUnsafeWanted: boolean },
): Promise<Check[]> {
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

function isMemberOf(path: string, { member }: TrackedResource): boolean {
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
  { collection }: TrackedResource,
): Promise<string[] | string> {
  if (collection.includes('{')) return 'its collection has parameters: name a member with --resource PATH';
  const reply = await client.ask({ method: 'GET', path: collection, fields: credentials(token) });
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
  const ask = (more: Record<string, string> = {}) =>
    client.ask({ method: 'GET', path, fields: { ...credentials(token), ...more } });
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

/** Checks that writes are refused before the shop is asked. The id does not exist, in case nothing refuses them. */
async function checkPreconditions(
  { client, rejections, id }: Verification,
  token: string,
  { member, methods }: TrackedResource,
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

function credentials(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}` };
}

/** Enough writes to see a slow one, and few enough for a live shop. */
const writes = 5;

/**
 * Measures how long the shop takes for a change of each member, and checks that `entityTags.lease` suffices for the slowest: if
 * the shop acts on a write after its lease has ended, an update can be lost. `change` is JSON text that each of `members` can
 * be PATCHed with several times.
 */
export async function checkWrites(
  verification: Verification,
  options: { readonly members: readonly string[]; readonly change: string | undefined },
): Promise<Check[]> {
  const { config, token } = verification;
  const { change, members } = options;
  if (change === undefined || config.entityTags === false) return [];
  if (token === undefined || members.length === 0) {
    return [skip('tags', 'time of a write', '--write needs --resource PATH and a token')];
  }
  const checks: Check[] = [];
  for (const path of members)
    checks.push(await timeWrites(verification, token, path, change, config.entityTags));
  return checks;
}

async function timeWrites(
  { client }: Verification,
  token: string,
  path: string,
  body: string,
  { lease, sendBy }: { readonly lease: number; readonly sendBy: number },
): Promise<Check> {
  const name = `PATCH ${path}, ${writes} times`;
  let slowestMs = 0;
  for (let i = 0; i < writes; i++) {
    const read = await client.ask({ method: 'GET', path, fields: credentials(token) });
    const tag = read.fields.etag;
    if (tag === undefined) return createCheck('tags', name, false, '200 with an ETag', replyText(read));
    const startedMs = performance.now();
    const reply = await client.ask({
      method: 'PATCH',
      path,
      body,
      fields: { ...credentials(token), 'If-Match': tag },
    });
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
    const isDone = reply.status >= 200 && reply.status < 300;
    if (!isDone) return createCheck('tags', name, false, 'a change that the shop accepts', replyText(reply));
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
