import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import { isolated } from '../lib/faults.ts';

interface BodyLimits {
  /** Bytes of one body; more is 413. */
  readonly limitBytes: number;
  /** Milliseconds for which a reader may wait beyond the time that the body's bytes account for; then 408. */
  readonly timeoutMs: number;
  /** Bytes that account for one second of waiting: the lowest rate of a long body. Default 500. */
  readonly bytesPerSecond?: number | undefined;
}

/** Bytes a second; like the minimum rate of Apache's mod_reqtimeout. */
const defaultBytesPerSecond = 500;

/** The same as options among others. */
export interface BodyOptions {
  readonly bodyLimitBytes: BodyLimits['limitBytes'];
  readonly bodyTimeoutMs: BodyLimits['timeoutMs'];
  readonly bodyBytesPerSecond?: BodyLimits['bytesPerSecond'];
}

export function bodyLimits(options: BodyOptions): BodyLimits {
  return {
    limitBytes: options.bodyLimitBytes,
    timeoutMs: options.bodyTimeoutMs,
    bytesPerSecond: options.bodyBytesPerSecond,
  };
}

/** The refusal of a body whose Content-Length is too large, before a byte of it is read (RFC 9110 section 15.5.14). */
function refuseAnnouncedBody(body: CanonicalRequest['body'], limitBytes: number): Rejection | undefined {
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
    const announced = typeof body === 'object' ? body.length : Number.POSITIVE_INFINITY;
    const collected = new CollectedBody(Math.min(limits.limitBytes, announced));
    const settle = (result: Buffer | Rejection) => {
      stop();
      incoming.off('data', onData).off('end', onEnd).off('error', onCut).off('close', onCut);
      if (!Buffer.isBuffer(result)) incoming.pause();
      resolve(result);
    };
    const onData = isolated(
      (chunk: Buffer) => collected.add(chunk),
      () => incoming.destroy(),
    );
    const onEnd = isolated(
      () => settle(collected.octets()),
      () => incoming.destroy(),
    );
    const onCut = () => settle(reject('bad-request', { reason: 'body-cut' }));
    const stop = watchBody(incoming, limits, settle);
    incoming.on('data', onData).on('end', onEnd).on('error', onCut).on('close', onCut).resume();
  });
}

/**
 * A body in one piece. Pieces are copied together as they come: in a Buffer of its own, an octet that comes as a chunk or
 * a packet of its own would cost hundreds. The usual body is one piece, and is not copied.
 */
export class CollectedBody {
  readonly #mostBytes: number;
  #held: Buffer = Buffer.alloc(0);
  #length = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  add(piece: Buffer): void {
    if (this.#length === 0) this.#held = piece;
    else {
      const length = this.#length + piece.length;
      if (length > this.#held.length) this.#grow(length);
      piece.copy(this.#held, this.#length);
    }
    this.#length += piece.length;
  }

  get length(): number {
    return this.#length;
  }

  octets(): Buffer {
    return this.#held.subarray(0, this.#length);
  }

  #grow(length: number): void {
    const roomy = Math.min(Math.max(2 * length, 16_384), this.#mostBytes);
    const grown = Buffer.allocUnsafeSlow(Math.max(length, roomy));
    this.#held.copy(grown, 0, 0, this.#length);
    this.#held = grown;
  }
}

/**
 * Watches a body that somebody else reads, and does not begin to read it: `refused` is called at most once, on the chunk
 * that passes the limit (before a later listener sees it), or when the body is too slow although the reader wants more.
 * Returns what ends the watch.
 *
 * Slow is checked as a bucket of time: it holds `timeoutMs`, waiting empties it, and each byte fills it again by what it
 * accounts for. So a stall may take `timeoutMs`, however much came before it, and a trickle below the rate ends as well.
 */
export function watchBody(
  incoming: IncomingMessage,
  { limitBytes, timeoutMs, bytesPerSecond = defaultBytesPerSecond }: BodyLimits,
  refused: (rejection: Rejection) => void,
  onProgress?: () => void,
): () => void {
  const tickMs = Math.min(1_000, Math.ceil(timeoutMs / 4));
  let bytes = 0;
  let leftMs = timeoutMs;
  // A `data` listener alone would make the stream flow.
  if (incoming.readableFlowing === null) incoming.pause();
  const stop = () => {
    clearInterval(timer);
    incoming.off('data', count).off('end', stop).off('close', stop);
  };
  const cut = () => void incoming.destroy();
  const refuse = (rejection: Rejection) => {
    stop();
    refused(rejection);
  };
  const count = isolated((chunk: Buffer) => {
    bytes += chunk.length;
    leftMs = Math.min(timeoutMs, leftMs + (chunk.length / bytesPerSecond) * 1_000);
    onProgress?.();
    if (bytes > limitBytes) refuse(reject('payload-too-large'));
  }, cut);
  const tick = isolated(() => {
    // If the reader has paused, the upstream is slow, not the client.
    if (incoming.isPaused()) return;
    leftMs -= tickMs;
    if (leftMs <= 0) refuse(reject('request-timeout', { reason: 'slow-body' }));
  }, cut);
  const timer = setInterval(tick, tickMs);
  incoming.on('data', count).once('end', stop).once('close', stop);
  return stop;
}

/** `100 Continue`, where the client waits for it (RFC 9110 section 10.1.1): when its body is really wanted. */
export function sendContinue(request: CanonicalRequest, response: ServerResponse): void {
  if (request.expectsContinue && !response.headersSent && !response.destroyed) response.writeContinue();
}
