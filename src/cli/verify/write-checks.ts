import { marginMs } from '../../entity-tags/times.ts';
import { type Check, createCheck, skip } from './check.ts';
import { replyText } from './refusal.ts';
import type { Verification } from './verification.ts';

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
