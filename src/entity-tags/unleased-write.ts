import type { ForwardOutcome, Passage, ResponseEdits } from '../forwarding/passage.ts';
import { markChanged, type Write, writtenFields } from './tracked-write.ts';
import { writeOutcome } from './write-outcome.ts';

/**
 * A change on or below a member by somebody whom no token names, that names no state itself. It takes no lease, so that
 * nobody can make the owner of a resource wait for what anybody may send. Where the shop may have acted on it, the
 * member's tag dies before the answer goes out: what was read before is not written over by a later write. To a write
 * that is under way at that moment it is a writer elsewhere.
 */
export function beginUnleasedWrite(write: Omit<Write, 'tags'>): Passage {
  const { tracking, key } = write;
  return {
    requestFields: writtenFields({ ...write, tags: null }, null),
    collectBytes: tracking.trackedResponseBytes,
    streamedFields: { etag: null },
    async settle(forwarded: ForwardOutcome): Promise<ResponseEdits> {
      const outcome = writeOutcome(forwarded);
      // A stranger's collection has no tag.
      await markChanged(tracking, key, outcome, true);
      return forwarded.kind === 'answered' ? { fields: { etag: null } } : {};
    },
  };
}
