import type { FieldEdits, FieldList } from '../http/field-list.ts';
import type { Rejection } from '../http/rejection.ts';
import type { Eventually } from '../lib/eventually.ts';
import type { UpstreamFault } from './port.ts';

/**
 * How a feature (entity tags, refresh tokens) changes one forwarded request, and learns its outcome. The forwarder calls
 * `onOutcome` exactly once, also after a fault.
 */
export interface UpstreamHooks {
  /** Changes to the fields of the forwarded request (a translated `If-Match`, say). */
  readonly requestFields?: FieldEdits | undefined;
  /** Called in the tick in which the first byte is written; `false`: outcome `unsent`. */
  readonly maySend?: () => boolean;
  /** Milliseconds from the start of sending to the last byte handed to the kernel; later: the socket is destroyed. */
  readonly sendWithinMs?: number;
  /** Milliseconds from the start of the exchange to the complete answer, at most `upstream.responseTimeout`. */
  readonly answerWithinMs?: number;
  /**
   * Bytes of response body to buffer so that `onOutcome` can still edit the head; 0: the response streams. A longer
   * (or stalling, or event-stream) body is passed through: `onOutcome` is then called at its end, and its edits are ignored.
   */
  readonly bufferLimit: number;
  /**
   * Whether a body of this status must not be passed through if it cannot be buffered whole: `onOutcome` gets `body:
   * null`, and must refuse. Needs `answerWithinMs`, since such a body may have no end.
   */
  readonly withholds?: (status: number) => boolean;
  /**
   * Changes to the fields of a response whose head leaves before `onOutcome` is called: one that streams, or one that could
   * not be buffered and is passed through. For example, to remove the shop's own `ETag`.
   */
  readonly streamedHeaderEdits?: (status: number) => FieldEdits | undefined;
  /** `true`: the exchange continues to its end even if the client leaves; `once-sent`: only if it has a connection by then. */
  readonly ignoreClientAbort?: boolean | 'once-sent';
  onOutcome(outcome: ForwardOutcome): Eventually<ResponseEdits>;
}

/** Hooks of observe mode, with the refusal that was not enforced. */
export interface ObservedHooks extends UpstreamHooks {
  readonly observed?: Rejection;
}

export type ForwardOutcome =
  /** No byte of the request left this process. */
  | { readonly kind: 'unsent'; readonly fault: UpstreamFault['kind'] }
  /** The request, or part of it, left; whether the upstream acted on it is not known. */
  | { readonly kind: 'unknown'; readonly fault: UpstreamFault['kind'] | 'timeout' | 'late' }
  /** A complete response. */
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly fields: FieldList;
      /** The whole body as on the wire (content codings kept); null when it was passed through. */
      readonly body: Buffer | null;
    };

export interface ResponseEdits {
  /** Changes to the fields of the response. */
  readonly fields?: FieldEdits;
  /** Send 304 with these fields and no body instead (RFC 9110 section 15.4.5). */
  readonly notModified?: boolean;
  /** Withhold a collected response and refuse instead; ignored once the response streams. */
  readonly rejection?: Rejection;
}

/** What `onOutcome` threw. */
export interface HookFailure {
  readonly failure: unknown;
}

/** The edits of a feature, without a promise where they are known at once. Never throws or rejects. */
export function askForEdits(
  hooks: UpstreamHooks,
  outcome: ForwardOutcome,
): Eventually<ResponseEdits | HookFailure> {
  try {
    const edits = hooks.onOutcome(outcome);
    return edits instanceof Promise ? edits.catch((failure: unknown) => ({ failure })) : edits;
  } catch (failure) {
    return { failure };
  }
}
