import type { Duplex } from 'node:stream';
import { isolated } from '../lib/faults.ts';
import { whenTickIsLong } from '../lib/per-tick.ts';

/** What node:net keeps of a socket that is open: Node has no other way to stop a read in the middle of a tick. */
interface Handle {
  /** Whether Node wants to read. */
  readonly reading?: boolean;
  readStart(): void;
  readStop(): void;
}

/**
 * Bounds the time that the reads of one tick of the event loop take. Node parses each read of 64 KiB at once, which takes up
 * to 25 ms if it has 11,000 chunks of one octet, and ten thousand connections can be readable in one tick. So once a tick is
 * long, the others are read in later ticks, those that have waited longest first.
 */
export class ReadQueue {
  readonly #sockets: ReadonlyMap<Duplex, unknown>;
  readonly #waiting = new Set<Duplex>();
  readonly #close: () => void;
  /** Sockets that are read in one tick: half as many after a long tick, twice as many after a short one. */
  #atOnce = 128;
  #isLong = false;

  /** `sockets`: the open ones; read whenever a tick is long. */
  constructor(sockets: ReadonlyMap<Duplex, unknown>) {
    this.#sockets = sockets;
    this.#close = whenTickIsLong(() => this.#stopReading());
  }

  close(): void {
    this.#close();
  }

  #stopReading(): void {
    if (this.#isLong) return;
    this.#isLong = true;
    if (this.#waiting.size === 0) setImmediate(this.#readNext);
    this.#atOnce = Math.max(1, Math.floor(this.#atOnce / 2));
    for (const socket of this.#sockets.keys()) {
      if (this.#waiting.has(socket)) continue;
      handleOf(socket)?.readStop();
      this.#waiting.add(socket);
    }
  }

  readonly #readNext = isolated(() => {
    if (!this.#isLong) this.#atOnce *= 2;
    this.#isLong = false;
    let left = this.#atOnce;
    for (const socket of this.#waiting) {
      if (left === 0) break;
      left -= 1;
      this.#waiting.delete(socket);
      // A socket that was paused meanwhile is read once it is resumed.
      const handle = handleOf(socket);
      if (handle?.reading === true) handle.readStart();
    }
    if (this.#waiting.size > 0) setImmediate(this.#readNext);
  });
}

function handleOf(socket: Duplex): Handle | undefined {
  return (socket as Duplex & { readonly _handle?: Handle | null })._handle ?? undefined;
}
