import { isRejection, type Rejection } from '../http/rejection.ts';
import type { ForwardOutcome, ResponseEdits, UpstreamHooks } from '../upstream/hooks.ts';
import { isInTime, markChanged, takeLease, type Write, writtenFields } from './tracked-write.ts';
import { writeOutcome } from './write-outcome.ts';

/**
 * A change on or below a member by somebody whom no token names, that names no state itself. It waits for writes with a
 * tag, and for whoever another one of its kind got in the way of; nobody waits for it. Where the shop may have acted on
 * it, the member's tag dies before the answer goes out: what was read before is not written over by a later write. To a
 * write that was granted after this one was let through, and before that mark, it is a writer elsewhere.
 */
export async function beginUnleasedWrite(write: Omit<Write, 'tags'>): Promise<UpstreamHooks | Rejection> {
  const { tracking, key } = write;
  const untagged: Write = { ...write, tags: null };
  const granted = await takeLease(untagged, true);
  if (isRejection(granted)) return granted;
  return {
    requestFields: writtenFields(untagged, null),
    maySend: () => isInTime(tracking, granted),
    sendWithinMs: tracking.times.sendWithinMs,
    bufferLimit: tracking.trackedResponseBytes,
    streamedHeaderEdits: { etag: null },
    // Who hangs up at once would have the mark made before the shop acts.
    ignoreClientAbort: true,
    async onOutcome(forwarded: ForwardOutcome): Promise<ResponseEdits> {
      await markChanged(tracking, key, writeOutcome(forwarded), true);
      return forwarded.kind === 'answered' ? { fields: { etag: null } } : {};
    },
  };
}
