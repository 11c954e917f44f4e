import type { Socket } from 'node:net';

/** Faults of one direction. Bytes are counted per connection, from when the fault was set. */
export interface StreamFaults {
  /** Each chunk arrives this many milliseconds later; order is kept. */
  readonly delayMs?: number;
  readonly bytesPerSecond?: number;
  /** Bytes are read and never delivered. */
  readonly drop?: boolean;
  /**
   * Each chunk arrives twice, in one write: a copy that came after the next request on the connection would look like
   * its answer.
   */
  readonly duplicate?: boolean;
  /** Arrives once, instead of the bytes that were sent. */
  readonly replaceBy?: string;
  readonly cut?: Cut;
}

/** Ends the stream after `bytes` bytes, counted from the end of the text `behind` if it is given. */
export interface Cut {
  readonly behind?: string;
  readonly bytes: number;
  /** `half-close`: the other direction stays open; `stall`: everything stays open, and nothing more arrives. */
  readonly by: 'fin' | 'reset' | 'half-close' | 'stall';
}

const slicesPerSecond = 20;
const maxQueuedBytes = 256 * 1024;

/** Carries bytes from one socket to another, with the faults set at the time. */
export class FaultPump {
  readonly #source: Socket;
  readonly #sink: Socket;
  readonly #onCut: (by: Cut['by']) => void;
  readonly #queue: { readonly bytes: Buffer | 'end'; readonly dueMs: number }[] = [];
  #faults: StreamFaults = {};
  #queued = 0;
  #freeAtMs = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Bytes since the faults were set, as many as a cut needs. */
  #seen = '';
  #passed = 0;
  #replaced = false;
  #isCut = false;

  constructor(source: Socket, sink: Socket, onCut: (by: Cut['by']) => void) {
    this.#source = source;
    this.#sink = sink;
    this.#onCut = onCut;
    source.on('data', (chunk: Buffer) => this.#take(chunk));
    source.on('end', () => {
      if (!this.#isCut && this.#faults.drop !== true) this.#push('end');
    });
    sink.on('drain', () => source.resume());
    sink.on('close', () => this.stop());
  }

  /** Takes effect with the next chunk. */
  set(faults: StreamFaults): void {
    this.#faults = faults;
    this.#seen = '';
    this.#passed = 0;
    this.#replaced = false;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#queue.length = 0;
    this.#isCut = true;
  }

  #take(chunk: Buffer): void {
    const { drop, duplicate, replaceBy, cut } = this.#faults;
    if (drop === true || this.#isCut) return;
    if (replaceBy !== undefined) {
      if (!this.#replaced) this.#push(Buffer.from(replaceBy, 'latin1'));
      this.#replaced = true;
      return;
    }
    const left = cut === undefined ? chunk.length : this.#leftBefore(cut, chunk);
    const part = chunk.subarray(0, left);
    if (left > 0) this.#push(duplicate === true ? Buffer.concat([part, part]) : part);
    if (cut === undefined || left >= chunk.length) return;
    this.#isCut = true;
    if (cut.by !== 'stall') this.#onCut(cut.by);
  }

  /** How many bytes of the chunk lie before the cut. */
  #leftBefore({ behind, bytes }: Cut, chunk: Buffer): number {
    const before = this.#passed;
    this.#passed += chunk.length;
    if (behind === undefined) return Math.min(chunk.length, Math.max(0, bytes - before));
    this.#seen += chunk.toString('latin1');
    const at = this.#seen.indexOf(behind);
    if (at === -1) return chunk.length;
    return Math.min(chunk.length, Math.max(0, at + behind.length + bytes - before));
  }

  #push(bytes: Buffer | 'end'): void {
    const { delayMs = 0, bytesPerSecond } = this.#faults;
    const now = performance.now();
    if (bytes === 'end' || bytesPerSecond === undefined) {
      if (delayMs === 0 && this.#queue.length === 0) this.#deliver(bytes);
      else this.#enqueue(bytes, Math.max(now, this.#freeAtMs) + delayMs);
      return;
    }
    const slice = Math.max(1, Math.floor(bytesPerSecond / slicesPerSecond));
    for (let at = 0; at < bytes.length; at += slice) {
      const part = bytes.subarray(at, at + slice);
      this.#freeAtMs = Math.max(now, this.#freeAtMs) + (part.length / bytesPerSecond) * 1000;
      this.#enqueue(part, this.#freeAtMs + delayMs);
    }
  }

  #enqueue(bytes: Buffer | 'end', dueMs: number): void {
    this.#queue.push({ bytes, dueMs });
    this.#queued += bytes.length;
    if (this.#queued > maxQueuedBytes) this.#source.pause();
    if (this.#queue.length === 1) this.#wait();
  }

  #wait(): void {
    const next = this.#queue[0];
    if (next === undefined) return;
    this.#timer = setTimeout(
      () => {
        this.#queue.shift();
        this.#queued -= next.bytes.length;
        if (this.#queued <= maxQueuedBytes) this.#source.resume();
        this.#deliver(next.bytes);
        this.#wait();
      },
      Math.max(0, next.dueMs - performance.now()),
    );
  }

  #deliver(bytes: Buffer | 'end'): void {
    if (!this.#sink.writable) return;
    if (bytes === 'end') this.#sink.end();
    else if (!this.#sink.write(bytes)) this.#source.pause();
  }
}
