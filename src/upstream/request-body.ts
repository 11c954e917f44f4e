import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { EarlyBody } from '../http/node-http.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import { isolated } from '../lib/faults.ts';

export interface BodyLimits {
  /** Maximum bytes of one body; more is 413. */
  readonly bodyLimitBytes: number;
  /** Milliseconds for which a body may stall; the bytes that arrive give back time (`watchBody`). Then 408. */
  readonly bodyTimeoutMs: number;
}

/** Bytes that give back one second; like the minimum rate of Apache's mod_reqtimeout. */
const bytesPerSecond = 500;

/**
 * Reads a whole body: its bytes, or why not (413, 408, or 400 for one that breaks off). `beforeReading` is called once,
 * just before the body is read: it may send `100 Continue`.
 */
export function readWholeBody(
  incoming: IncomingMessage & Partial<EarlyBody>,
  body: CanonicalRequest['body'],
  limits: BodyLimits,
  beforeReading?: () => void,
): Promise<Buffer | Rejection> {
  const announced = typeof body === 'object' ? body.length : Number.POSITIVE_INFINITY;
  // Refused before a byte of it is read (RFC 9110 section 15.5.14).
  if (typeof body === 'object' && announced > limits.bodyLimitBytes)
    return Promise.resolve(reject('payload-too-large'));
  if (body === 'none' || announced === 0) return Promise.resolve(Buffer.alloc(0));
  if (incoming.destroyed) return Promise.resolve(bodyCut);
  beforeReading?.();
  return new Promise((resolve) => {
    const collect = () => collectStream(incoming, announced, limits, resolve);
    // A body without an announced length has to be counted as it comes.
    if (body === 'chunked' || incoming.readEarly === undefined) collect();
    else
      incoming.readEarly((whole) =>
        whole === undefined ? collect() : resolve(whole.length === announced ? whole : bodyCut),
      );
  });
}

const bodyCut = reject('bad-request', { reason: 'body-cut' });

function collectStream(
  incoming: IncomingMessage,
  announced: number,
  limits: BodyLimits,
  resolve: (result: Buffer | Rejection) => void,
): void {
  // The body may have broken off in the tick of its head.
  if (incoming.destroyed) {
    resolve(bodyCut);
    return;
  }
  const collected = new CollectedBody(Math.min(limits.bodyLimitBytes, announced));
  const isWhole = (length: number) => announced === Number.POSITIVE_INFINITY || length === announced;
  const finish = (result: Buffer | Rejection) => {
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
    // If the body was read before, the stream ends without an octet.
    () => finish(isWhole(collected.length) ? collected.octets() : bodyCut),
    () => incoming.destroy(),
  );
  const onCut = () => finish(bodyCut);
  const stop = watchBody(incoming, limits, finish);
  incoming.on('data', onData).on('end', onEnd).on('error', onCut).on('close', onCut).resume();
}

/**
 * Joins the chunks of a body as they arrive. A Buffer for each chunk would cost hundreds of octets, even for a chunk of one.
 * The usual body is one chunk, and is not copied.
 */
export class CollectedBody {
  readonly #mostBytes: number;
  #octets: Buffer = Buffer.alloc(0);
  #length = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  add(chunk: Buffer): void {
    if (this.#length === 0) this.#octets = chunk;
    else {
      const length = this.#length + chunk.length;
      if (length > this.#octets.length) this.#grow(length);
      chunk.copy(this.#octets, this.#length);
    }
    this.#length += chunk.length;
  }

  get length(): number {
    return this.#length;
  }

  octets(): Buffer {
    return this.#octets.subarray(0, this.#length);
  }

  #grow(length: number): void {
    const roomy = Math.min(Math.max(2 * length, 16_384), this.#mostBytes);
    const grown = Buffer.allocUnsafeSlow(Math.max(length, roomy));
    this.#octets.copy(grown, 0, 0, this.#length);
    this.#octets = grown;
  }
}

/**
 * Watches a body while its reader reads it; never starts the reading itself. `refused` is called at most once, on the chunk
 * that passes the limit (before a later listener sees it), or when the body is too slow although the reader wants more.
 * Returns a function that ends the watch.
 *
 * The time that is left starts at `bodyTimeoutMs`. Waiting uses it up, and each byte gives some back, up to `bodyTimeoutMs`.
 * So a stall may last `bodyTimeoutMs`, however much came before, and a body below the minimum rate ends as well.
 */
export function watchBody(
  incoming: IncomingMessage,
  { bodyLimitBytes, bodyTimeoutMs }: BodyLimits,
  refused: (rejection: Rejection) => void,
  onProgress?: () => void,
): () => void {
  const tickMs = Math.min(1_000, Math.ceil(bodyTimeoutMs / 4));
  let bytes = 0;
  let leftMs = bodyTimeoutMs;
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
    leftMs = Math.min(bodyTimeoutMs, leftMs + (chunk.length / bytesPerSecond) * 1_000);
    onProgress?.();
    if (bytes > bodyLimitBytes) refuse(reject('payload-too-large'));
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

/** `100 Continue`, if the client waits for it (RFC 9110 section 10.1.1): just before its body is read. */
export function sendContinue(request: CanonicalRequest, response: ServerResponse): void {
  if (request.expectsContinue && !response.headersSent && !response.destroyed) response.writeContinue();
}
