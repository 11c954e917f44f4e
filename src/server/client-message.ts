import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { type EarlyBody, IncomingMessage as NodeMessage } from '../http/node-http.ts';
import { EndOfTick } from '../lib/end-of-tick.ts';
import { costOfHead, noteRead } from './read-queue.ts';

const noOctets: Buffer = Buffer.alloc(0);

const incomplete = new EndOfTick<ClientMessage>(
  (message) => message.readLate(),
  (message) => message.destroy(),
);

/**
 * A request whose body costs time by its length, not by the number of its chunks: see `GatheredChunks`. A body that arrives
 * with its head, as most do, needs no stream.
 */
export class ClientMessage extends NodeMessage implements EarlyBody {
  /** Most requests have no body. */
  #chunks: GatheredChunks | undefined;
  /** A part of the body, or its end, went to the stream. */
  #isStreamed = false;
  /** Waits for the end of the body in this tick; `#onlyChunk` is the one chunk that it may have. */
  #take: ((whole: Buffer | undefined) => void) | undefined;
  #onlyChunk = noOctets;

  constructor(socket: Socket) {
    super(socket);
    noteRead(costOfHead);
    // Node's own options for this limit also affect the socket and the response.
    const { _readableState } = this as unknown as { _readableState: { highWaterMark: number } };
    _readableState.highWaterMark = waitingBytes;
  }

  readEarly(take: (whole: Buffer | undefined) => void): void {
    // A second reader gets the stream; it must notice that the first one has taken the body.
    if (this.#isStreamed || this.#take !== undefined) {
      take(undefined);
      return;
    }
    this.#take = take;
    incomplete.add(this);
  }

  /** The body did not end in this tick, or has more chunks: all of it goes to the stream. */
  readLate(): void {
    const take = this.#take;
    if (take === undefined) return;
    this.#take = undefined;
    if (this.#onlyChunk !== noOctets) this.push(this.#onlyChunk);
    this.#onlyChunk = noOctets;
    take(undefined);
  }

  /** Node's parser calls it with each chunk, and with null at the end; `false` stops the reading of the socket. */
  override push(chunk: Buffer | null): boolean {
    noteRead(1);
    if (this.#take !== undefined) {
      if (chunk === null) this.#giveWhole(this.#take);
      else if (this.#onlyChunk === noOctets) {
        this.#onlyChunk = chunk;
        return true;
      } else this.readLate();
    }
    this.#isStreamed = true;
    if (chunk !== null && chunk.length < wholeBytes) {
      this.#chunks ??= new GatheredChunks(this, (octets) => super.push(octets));
      return this.#chunks.add(chunk);
    }
    this.#chunks?.release();
    return super.push(chunk);
  }

  /** Every reader of a stream calls this, or waits for the end of the tick. */
  override read(size?: number): unknown {
    this.#chunks?.beforeRead();
    return super.read(size);
  }

  /** The caller ends the stream, which has neither octets nor readers. */
  #giveWhole(take: (whole: Buffer) => void): void {
    this.#take = undefined;
    take(this.#onlyChunk);
    this.#onlyChunk = noOctets;
  }
}

/** Chunks of at least this many octets are passed on directly; smaller ones are gathered. */
const wholeBytes = 4_096;
/** Gathered octets that are passed on without waiting for the end of the tick. */
const gatheredBytes = 16_384;
/** Size of the largest buffer: the last chunk may exceed `gatheredBytes` by its own length. */
const maxGathered = gatheredBytes + wholeBytes;
/** Octets that wait for the reader when the socket is paused; one more read of Node (64 KiB) may be added. */
const waitingBytes = 32_768;
/** Small chunks that one connection may deliver in one tick of the event loop; the others wait for the next tick. */
const chunksPerTick = 1_024;

const gathered = new EndOfTick<GatheredChunks>(
  (chunks) => chunks.handOn(),
  (chunks) => chunks.stream.destroy(),
);

/**
 * Gathers the small chunks of a body: its cost depends on its length alone. Node makes a Buffer, an event and a queue entry
 * for each chunk: a chunk of one octet takes three hundred times its size, and its own write. This class joins small chunks
 * until the end of the tick or a read of the stream; one connection may deliver a bounded number.
 */
class GatheredChunks {
  readonly stream: Readable;
  readonly #pushOn: (octets: Buffer) => boolean;
  #octets: Buffer | undefined;
  #length = 0;
  #chunks = 0;

  /** `pushOn`: the stream's own `push`. */
  constructor(stream: Readable, pushOn: (octets: Buffer) => boolean) {
    this.stream = stream;
    this.#pushOn = pushOn;
  }

  /** Takes a chunk of less than `wholeBytes`. `false`: the socket must be paused. */
  add(chunk: Buffer): boolean {
    if (this.#chunks === 0) gathered.add(this);
    this.#chunks += 1;
    this.#gather(chunk);
    if (this.#length >= gatheredBytes) this.release();
    return this.#chunks < chunksPerTick && this.#length + this.stream.readableLength < waitingBytes;
  }

  /** Call it before the stream is read. */
  beforeRead(): void {
    if (this.#length > 0 && this.stream.readableLength === 0) this.release();
  }

  /** Called at the end of the tick. Without a reader the octets stay in one Buffer, so that the queue does not grow. */
  handOn(): void {
    const { stream } = this;
    this.#chunks = 0;
    if (stream.destroyed) return;
    if (stream.readableFlowing === true || stream.readableLength === 0) this.release();
  }

  /** Passes on the gathered octets. Call it before anything that follows them. */
  release(): void {
    const gathered = this.#octets;
    if (gathered === undefined) return;
    const octets = gathered.subarray(0, this.#length);
    this.#octets = undefined;
    this.#length = 0;
    this.#pushOn(octets);
  }

  #gather(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (this.#octets === undefined) this.#octets = chunk;
    else {
      if (length > this.#octets.length) this.#grow(length);
      chunk.copy(this.#octets, this.#length);
    }
    this.#length = length;
  }

  #grow(length: number): void {
    const gathered = this.#octets as Buffer;
    const grown = Buffer.allocUnsafeSlow(Math.min(Math.max(2 * length, 1_024), maxGathered));
    gathered.copy(grown, 0, 0, this.#length);
    this.#octets = grown;
  }
}
