import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { isolated } from '../lib/faults.ts';

/** RFC 6455 section 7.4.1. */
export const closeCodes = { goingAway: 1001, policyViolation: 1008 } as const;
type CloseCode = (typeof closeCodes)[keyof typeof closeCodes];

/** Milliseconds for an end to read what is written to it, and to end after the other has ended. */
const defaultStallTimeoutMs = 30_000;

/** Milliseconds for the Close frames to leave, and for both ends to answer them. */
const closingMs = 1_000;

/** Where the frames of one direction begin and end (RFC 6455 section 5.2). */
class FrameReader {
  readonly #head = Buffer.alloc(14);
  #headLength = 0;
  /** Octets of payload to come. */
  #left = 0;

  get isBetween(): boolean {
    return this.#headLength === 0 && this.#left === 0;
  }

  /** Reads a chunk; with `stops` only to the end of the current frame. Returns the number of octets read. */
  read(chunk: Buffer, stops = false): number {
    let at = 0;
    while (at < chunk.length && !(stops && this.isBetween)) {
      if (this.#left > 0) {
        const length = Math.min(this.#left, chunk.length - at);
        this.#left -= length;
        at += length;
      } else {
        this.#head[this.#headLength] = chunk[at] as number;
        this.#headLength += 1;
        at += 1;
        this.#endHead();
      }
    }
    return at;
  }

  #endHead(): void {
    if (this.#headLength < 2) return;
    const second = this.#head[1] as number;
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (this.#headLength < 2 + lengthBytes + (second >= 0x80 ? 4 : 0)) return;
    this.#headLength = 0;
    this.#left =
      short < 126
        ? short
        : lengthBytes === 2
          ? this.#head.readUInt16BE(2)
          : Number(this.#head.readBigUInt64BE(2));
  }
}

/** One direction of an open WebSocket. */
interface Way {
  readonly from: Socket;
  readonly to: Socket;
  readonly frames: FrameReader;
  /** `to` takes nothing, and `from` is not read. */
  isPaused: boolean;
  /** The Close frame was written; what `from` still sends is dropped. */
  isClosed: boolean;
}

/** Both sides of a WebSocket after its handshake. Silence is not an error. */
export class OpenWebSocket {
  readonly #ways: readonly [Way, Way];
  readonly #stallTimeoutMs: number;
  #timer: NodeJS.Timeout | undefined;
  #isEnding = false;
  #code: CloseCode | undefined;

  constructor(client: Socket, upstream: Socket, stallTimeoutMs = defaultStallTimeoutMs) {
    this.#stallTimeoutMs = stallTimeoutMs;
    this.#ways = [wayOf(client, upstream), wayOf(upstream, client)];
    for (const way of this.#ways) this.#relay(way);
  }

  /** Ends both sides with a Close frame. If a frame to a side does not end within a second, that side gets none. */
  end(code: CloseCode): void {
    if (this.#code !== undefined) return;
    this.#code = code;
    for (const way of this.#ways) this.#closeIfBetween(way);
    this.#isEnding = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#watch(closingMs);
  }

  #relay(way: Way): void {
    const { from, to } = way;
    const destroyBoth = () => this.#destroyBoth();
    const listen = (socket: Socket, event: string, act: (chunk: Buffer) => void) =>
      socket.on(event, isolated(act, destroyBoth));
    listen(from, 'data', (chunk) => this.#move(way, chunk));
    listen(to, 'drain', () => this.#goOn(way));
    from.on('error', () => from.destroy());
    listen(from, 'end', () => {
      this.#expectEnd();
      to.end();
    });
    listen(from, 'close', () => {
      this.#expectEnd();
      to.destroySoon();
      if (to.destroyed) clearTimeout(this.#timer);
    });
    from.resume();
  }

  #expectEnd(): void {
    this.#isEnding = true;
    this.#watch(this.#stallTimeoutMs);
  }

  #move(way: Way, chunk: Buffer): void {
    const { from, to, frames } = way;
    if (way.isClosed || !to.writable) return;
    const length = frames.read(chunk, this.#code !== undefined);
    if (length > 0 && !to.write(length === chunk.length ? chunk : chunk.subarray(0, length))) {
      way.isPaused = true;
      from.pause();
      this.#watch(this.#stallTimeoutMs);
    }
    this.#closeIfBetween(way);
  }

  #goOn(way: Way): void {
    if (!way.isPaused) return;
    way.isPaused = false;
    way.from.resume();
    if (this.#isEnding || this.#ways.some(({ isPaused }) => isPaused)) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #closeIfBetween(way: Way): void {
    if (this.#code === undefined || way.isClosed || !way.frames.isBetween) return;
    way.isClosed = true;
    way.to.end(closeFrame(this.#code, way === this.#ways[0]));
    if (way.from.isPaused()) way.from.resume();
  }

  #watch(withinMs: number): void {
    this.#timer ??= setTimeout(() => this.#destroyBoth(), withinMs);
  }

  #destroyBoth(): void {
    for (const { from } of this.#ways) from.destroy();
  }
}

function wayOf(from: Socket, to: Socket): Way {
  return { from, to, frames: new FrameReader(), isPaused: false, isClosed: false };
}

/** RFC 6455 section 5.5.1; frames to the shop are masked. */
function closeFrame(code: CloseCode, isMasked: boolean): Buffer {
  const payload = Buffer.from([code >> 8, code & 0xff]);
  if (!isMasked) return Buffer.concat([Buffer.from([0x88, 2]), payload]);
  const key = randomBytes(4);
  const masked = payload.map((octet, i) => octet ^ (key[i] as number));
  return Buffer.concat([Buffer.from([0x88, 0x82]), key, masked]);
}
