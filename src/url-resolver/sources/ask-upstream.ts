import type { FieldList } from '../../http/field-list.ts';

/** Asks the shop; the caller of the resolver brings it, over the forwarding engine. */
export type AskUpstream = (question: UpstreamQuestion) => Promise<UpstreamReply | UpstreamSilence>;

/** A GET without a body. Nothing of the client's request is in it but what is in the key. */
export interface UpstreamQuestion {
  /** Request target, byte for byte. */
  readonly target: string;
  /** All fields; `Host` is there only where the shop chooses its store by it, else the upstream's own is meant. */
  readonly fields: FieldList;
  /** Milliseconds from now to the complete reply; the exchange is to be ended then. */
  readonly timeoutMs: number;
  /** Bytes of body that are read; a longer body makes the reply `invalid`. */
  readonly maxBodyBytes: number;
}

/** A complete reply, as it came: no redirect was followed and no content coding undone. */
export interface UpstreamReply {
  readonly status: number;
  readonly fields: FieldList;
  readonly body: Buffer;
}

/** No complete reply. `invalid`: bytes that are not HTTP, a cut body, or too long a one. */
export interface UpstreamSilence {
  readonly fault: 'unreachable' | 'timeout' | 'invalid' | 'overloaded';
}
