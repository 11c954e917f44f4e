import { parseStrongTag } from '../http/entity-tag-list.ts';
import { type FieldList, fieldValue } from '../http/field-list.ts';
import { decodeSegment } from '../http/path-folding.ts';
import { isRejection, type Rejection } from '../http/rejection.ts';
import type { ForwardOutcome, ResponseEdits, UpstreamHooks } from '../upstream/hooks.ts';
import { answerOctets, recordRead, type TrackedExchange } from './context.ts';
import { createdId, fitsInPath } from './json-api.ts';
import { randomTag, variantOf } from './keys.ts';
import { fingerprintOf } from './representation.ts';
import { memberKeyOf, type TrackedRequest } from './resources.ts';
import { isInTime, markChanged, takeLease, type Write, writeOutcome, writtenFields } from './write.ts';

/**
 * A change on or below a member without token and tag. It waits for writes that have a tag, and for a verified user who has
 * priority; no write waits for it. If the shop may have acted on it, the member's tag is removed before the answer is sent,
 * so that no client overwrites this change with an older tag. Writes that have a lease by then do not see it.
 */
export async function beginUnleasedWrite(write: Write): Promise<UpstreamHooks | Rejection> {
  const { context, key } = write;
  const granted = await takeLease(write, true);
  if (isRejection(granted)) return granted;
  return {
    requestFields: writtenFields(write, null),
    maySend: () => isInTime(context, granted),
    sendWithinMs: context.times.sendWithinMs,
    bufferLimit: context.trackedResponseBytes,
    // Otherwise, for a client that disconnects at once, the tag would be removed before the shop acts.
    ignoreClientAbort: 'once-sent',
    async onOutcome(forwarded: ForwardOutcome): Promise<ResponseEdits> {
      await markChanged(context, key, writeOutcome(forwarded), true);
      return {};
    },
  };
}

/**
 * A change of a collection that asks for no precondition: mostly a POST that creates a member, whose 201 carries the
 * new member's tag. It takes no lease, since no client can have a tag of a member that does not exist yet. The answer
 * counts as a read of the member that began before the request was sent.
 */
export function beginCreation(exchange: TrackedExchange): UpstreamHooks {
  const { context, isAnonymous, key } = exchange;
  const startedAt = context.monotonic();
  return {
    requestFields: { 'if-match': null, 'if-none-match': null },
    bufferLimit: context.trackedResponseBytes,
    async onOutcome(outcome): Promise<ResponseEdits> {
      const [tag] = await Promise.all([
        tagOfCreated(exchange, startedAt, outcome),
        markChanged(context, isAnonymous ? undefined : key, writeOutcome(outcome)),
      ]);
      return tag === null ? {} : { fields: { ETag: `"${tag}"` } };
    },
  };
}

async function tagOfCreated(
  exchange: TrackedExchange,
  startedAt: number,
  outcome: ForwardOutcome,
): Promise<string | null> {
  const { context, request, tracked, subject, isAnonymous } = exchange;
  if (outcome.kind !== 'answered' || outcome.status !== 201 || outcome.body === null) return null;
  const octets = await answerOctets(context, outcome.fields, outcome.body);
  const id = (await createdId(octets)) ?? idOfLocation(outcome.fields, tracked);
  if (id === undefined) return null;
  return recordRead(exchange, memberKeyOf(tracked, id), null, startedAt, {
    variant: variantOf(request, subject, 'created'),
    fingerprint: await fingerprintOf(octets),
    newTag: randomTag(),
    shopTag: parseStrongTag(fieldValue(outcome.fields, 'etag')),
    isOfCollection: false,
    isAnonymous,
  });
}

/** The last segment of `Location`, if its path has as many segments as a member's (RFC 9110 section 10.2.2). */
function idOfLocation(fields: FieldList, { resource }: TrackedRequest): string | undefined {
  const path = fieldValue(fields, 'location')
    ?.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
    .replace(/[?#].*$/s, '');
  const segments = path?.split('/') ?? [];
  const id = segments.at(-1);
  const isMember = segments.length === resource.member.split('/').length;
  return isMember && id !== undefined && fitsInPath(id) ? decodeSegment(id) : undefined;
}
