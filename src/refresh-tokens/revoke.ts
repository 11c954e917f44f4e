import { randomUUID } from 'node:crypto';
import type { Rejection } from '../http/rejection.ts';
import type { Eventually } from '../lib/eventually.ts';
import { RedisUnavailable } from '../redis/faults.ts';
import type { UpstreamHooks } from '../upstream/hooks.ts';
import type { RefreshTokenContext } from './context.ts';
import type { TokenEndpoint } from './endpoints.ts';
import { verdictOf } from './issue.ts';
import { refuseUnknown } from './refusals.ts';
import { bearer, type NoteAnswer } from './token-values.ts';

/** A note in the store that is pending until the shop's verdict is known. */
interface Note {
  note(op: string): Eventually<NoteAnswer>;
  conclude(op: string, stands: boolean): Eventually<void>;
}

/** Named in the path: a token of the user's own, or `mine`. Shown in the body: any user's token. */
type Revocation =
  | { readonly named: string; readonly subject: string }
  | { readonly shown: string; readonly format: TokenEndpoint['format'] };

/** Notes a revocation before it is forwarded, and takes the note back only if the shop certainly refused it. */
export async function beginRevocation(
  context: RefreshTokenContext,
  revocation: Revocation,
): Promise<UpstreamHooks | Rejection | undefined> {
  const { emit, retries } = context;
  const op = randomUUID();
  const { note, conclude } = noteOf(context, revocation);
  // First the delayed writes: a `mine` would miss a token that was issued while the store was away and is not recorded yet.
  await retries.flush();
  try {
    const answer = await note(op);
    if (answer !== 'noted') {
      emit(answer === 'full' ? 'revocation-not-noted' : 'revocation-foreign');
      return undefined;
    }
  } catch (fault) {
    if (!(fault instanceof RedisUnavailable)) throw fault;
    emit('store-unavailable');
    return refuseUnknown('format' in revocation ? revocation.format : 'json-api');
  }
  emit('revocation-noted');
  return {
    bufferLimit: 0,
    ignoreClientAbort: true,
    async onOutcome(outcome) {
      const stands = verdictOf(outcome) !== 'refused';
      if (!stands) emit('revocation-undone');
      await retries.write(() => conclude(op, stands));
      return {};
    },
  };
}

function noteOf({ store, digests }: RefreshTokenContext, revocation: Revocation): Note {
  const [by, text] =
    'shown' in revocation
      ? [bearer, revocation.shown]
      : [digests.ofSubject(revocation.subject), revocation.named];
  if (by !== bearer && text === 'mine') {
    let noted = 0;
    return {
      async note(op) {
        noted = await store.noteRevocationOfAll(by, op);
        return 'noted' as const;
      },
      conclude: (op, stands) => store.concludeRevocationOfAll(by, op, noted, stands),
    };
  }
  const token = digests.ofToken(text);
  return {
    note: (op) => store.noteRevocation(token, by, op),
    conclude: (op, stands) => store.concludeRevocation(token, by, op, stands),
  };
}
