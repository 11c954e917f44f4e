import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Rejection, reject } from '../rejections/rejection.ts';
import type { CanonicalRequest } from '../request/canonical-request.ts';

export interface BodyLimits {
  /** Bytes of one body; more is 413. */
  readonly limitBytes: number;
  /** Milliseconds without enough progress after which a body is 408. */
  readonly timeoutMs: number;
  /** Bytes that must arrive in each `timeoutMs`, lest a byte now and then hold a connection. Default 1024. */
  readonly minimumBytes?: number;
}

/** The refusal of a body that its own Content-Length makes too large, before a byte of it is read (RFC 9110 15.5.14). */
export function refuseAnnouncedBody(
  body: CanonicalRequest['body'],
  limitBytes: number,
): Rejection | undefined {
  return typeof body === 'object' && body.length > limitBytes ? reject('payload-too-large') : undefined;
}

/**
 * Reads a whole body: its bytes, or why not (413, 408, or 400 for one that breaks off). `beforeReading` is called once,
 * when the body is really wanted: the place for `100 Continue`.
 */
export function readWholeBody(
  incoming: IncomingMessage,
  body: CanonicalRequest['body'],
  limits: BodyLimits,
  beforeReading?: () => void,
): Promise<Buffer | Rejection> {
  const refusal = refuseAnnouncedBody(body, limits.limitBytes);
  if (refusal !== undefined) return Promise.resolve(refusal);
  if (body === 'none' || (typeof body === 'object' && body.length === 0))
    return Promise.resolve(Buffer.alloc(0));
  if (incoming.destroyed) return Promise.resolve(reject('bad-request', { reason: 'body-cut' }));
  beforeReading?.();
  return new Promise((resolve) => {
    const collected = new CollectedBody();
    const settle = (result: Buffer | Rejection) => {
      stop();
      incoming.off('data', onData).off('end', onEnd).off('error', onCut).off('close', onCut);
      if (!Buffer.isBuffer(result)) incoming.pause();
      resolve(result);
    };
    const onData = (chunk: Buffer) => collected.add(chunk);
    const onEnd = () => settle(collected.octets());
    const onCut = () => settle(reject('bad-request', { reason: 'body-cut' }));
    const stop = watchBody(incoming, limits, settle);
    incoming.on('data', onData).on('end', onEnd).on('error', onCut).on('close', onCut);
  });
}

/**
 * A body in one piece. Pieces are copied together as they come: in a Buffer of its own, an octet that a client sends as
 * a chunk of its own would cost hundreds. The usual body is one piece, and is not copied.
 */
class CollectedBody {
  #held: Buffer = Buffer.alloc(0);
  #length = 0;

  add(piece: Buffer): void {
    if (this.#length === 0) this.#held = piece;
    else {
      const length = this.#length + piece.length;
      if (length > this.#held.length) this.#grow(length);
      piece.copy(this.#held, this.#length);
    }
    this.#length += piece.length;
  }

  octets(): Buffer {
    return this.#held.subarray(0, this.#length);
  }

  #grow(length: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.max(2 * length, 16_384));
    this.#held.copy(grown, 0, 0, this.#length);
    this.#held = grown;
  }
}

/**
 * Watches a body that somebody else reads: `refused` is called at most once, on the chunk that passes the limit (before
 * a later listener sees it), or when too little arrives although the reader wants more. Returns what ends the watch.
 */
export function watchBody(
  incoming: IncomingMessage,
  limits: BodyLimits,
  refused: (rejection: Rejection) => void,
  onProgress?: () => void,
): () => void {
  const minimumBytes = limits.minimumBytes ?? 1024;
  let bytes = 0;
  let bytesBefore = 0;
  const stop = () => {
    clearInterval(timer);
    incoming.off('data', count).off('end', stop).off('close', stop);
  };
  const count = (chunk: Buffer) => {
    bytes += chunk.length;
    onProgress?.();
    if (bytes <= limits.limitBytes) return;
    stop();
    refused(reject('payload-too-large'));
  };
  const timer = setInterval(() => {
    const isSlow = bytes - bytesBefore < minimumBytes;
    bytesBefore = bytes;
    // A paused reader is the upstream's slowness, not the client's.
    if (!isSlow || incoming.isPaused()) return;
    stop();
    refused(reject('request-timeout'));
  }, limits.timeoutMs);
  incoming.on('data', count).once('end', stop).once('close', stop);
  return stop;
}

/** `100 Continue`, where the client waits for it (RFC 9110 section 10.1.1): when its body is really wanted. */
export function sendContinue(request: CanonicalRequest, response: ServerResponse): void {
  if (request.expectsContinue && !response.headersSent && !response.destroyed) response.writeContinue();
}
