import type { Socket } from 'node:net';
import { isolate, isolated } from '../lib/faults.ts';
import { noteProgress } from '../lib/per-tick.ts';

/** The cost of reading a chunk of a body is 1, some 2.5 microseconds; of reading a head, this. */
export const costOfHead = 16;
/** What one tick of the event loop may read, in such costs: some 50 ms. Not a time, so no other slow work stops the reading. */
const mostInTick = 20_000;
let left = mostInTick;
let isEndNoted = false;
const queues = new Set<ReadQueue>();

/** Called with the cost of all that is read from clients. */
export function noteRead(cost: number): void {
  noteProgress();
  left -= cost;
  // Not in each tick, as an Immediate costs more than the rest. So some ticks may read only half as much.
  if (left < mostInTick / 2) noteEnd();
  if (left <= 0) for (const queue of queues) queue.stop();
}

function noteEnd(): void {
  if (!isEndNoted) setImmediate(beginTick);
  isEndNoted = true;
}

const beginTick = isolated(() => {
  left = mostInTick;
  isEndNoted = false;
  for (const queue of queues) if (queue.readNext()) noteEnd();
});

/** Octets that TLS adds, for a cost of 1: records that contain one octet, or change keys, take 0.4 microseconds for each. */
const addedForCost = 8;
/** Octets that TLS may add to what a tick reads of one socket. */
const mostAdded = 16_384;

/** Sockets that are read in the first tick after a long one. */
const firstAtOnce = 64;

/**
 * Bounds what one tick of the event loop reads. Node parses each read of 64 KiB at once, which takes up to 25 ms if it has
 * 11,000 chunks of one octet, and ten thousand connections can be readable in one tick. So once a tick is long, all sockets
 * wait, and later ticks read them in order. If such a tick is long, too, those that it did not reach stay first.
 */
export class ReadQueue {
  readonly #sockets: Pick<ReadonlyMap<Socket, unknown>, 'keys'>;
  /** Those in `#next` are the first ones. */
  readonly #waiting = new Set<Socket>();
  /** The sockets that are read in this tick, and how many octets of each were read before. */
  readonly #next = new Map<Socket, number>();
  /** TLS sockets of which this tick reads no more. */
  readonly #full = new Set<Socket>();
  /** Half as many after a long tick, twice as many after a short one. */
  #atOnce = firstAtOnce;
  #isLong = false;

  /** `sockets`: the open ones; read whenever a tick is long. */
  constructor(sockets: Pick<ReadonlyMap<Socket, unknown>, 'keys'>) {
    this.#sockets = sockets;
    queues.add(this);
  }

  close(): void {
    queues.delete(this);
  }

  /** A new socket waits if others do. */
  join(socket: Socket): void {
    if (this.#waiting.size > 0) this.#waiting.add(socket);
    this.resumed(socket);
  }

  /** Node resumes a socket after each part of a body, and then reads it, even if it waits. */
  resumed(socket: Socket): void {
    const waits = this.#waiting.has(socket) && (this.#isLong || !this.#next.has(socket));
    if (waits || this.#full.has(socket)) stopReading(socket);
  }

  /** Node tells of a TLS record only by this call, which is for the time-out of the socket. */
  countRecords(socket: Socket & { _unrefTimer?: () => void }): void {
    const refresh = socket._unrefTimer;
    // Its first records may have arrived with the end of its handshake.
    let [counted, fullAt] = [0, mostAdded];
    socket._unrefTimer = () => {
      refresh?.call(socket);
      const added = addedByTls(socket);
      // It falls while the records of one read are passed on.
      if (added <= counted) return;
      noteRead((added - counted) / addedForCost);
      counted = added;
      if (added < fullAt) return;
      fullAt = added + mostAdded;
      this.#full.add(socket);
      stopReading(socket);
      noteEnd();
    };
  }

  leave(socket: Socket): void {
    this.#waiting.delete(socket);
    this.#next.delete(socket);
    this.#full.delete(socket);
  }

  stop(): void {
    if (this.#isLong) return;
    this.#isLong = true;
    this.#atOnce = Math.max(1, Math.floor(this.#atOnce / 2));
    for (const socket of this.#sockets.keys()) {
      stopReading(socket);
      this.#waiting.add(socket);
    }
  }

  /** Lets the next ones be read; `false`: no socket waits. */
  readNext(): boolean {
    for (const [socket, octets] of this.#next) {
      if (this.#isLong && socket.bytesRead === octets) continue;
      this.#waiting.delete(socket);
      if (this.#isLong) this.#waiting.add(socket);
    }
    this.#next.clear();
    this.#atOnce = this.#waiting.size === 0 ? firstAtOnce : this.#atOnce * (this.#isLong ? 1 : 2);
    this.#isLong = false;
    for (const socket of this.#full) if (!this.#waiting.has(socket)) read(socket);
    this.#full.clear();
    for (const socket of this.#waiting) {
      if (this.#next.size >= this.#atOnce) break;
      this.#next.set(socket, socket.bytesRead);
      read(socket);
    }
    return this.#waiting.size > 0;
  }
}

/** What node:net keeps of a socket that is open: Node has no other way to stop a read in the middle of a tick. */
interface Handle {
  /** Whether Node wants to read. */
  readonly reading?: boolean;
  readonly bytesRead?: number;
  /** Of a TLS socket: its encrypted side. */
  readonly _parent?: { readonly bytesRead?: number };
  readStart(): void;
  readStop(): void;
}

function handleOf(socket: Socket): Handle | undefined {
  return (socket as Socket & { readonly _handle?: Handle | null })._handle ?? undefined;
}

function addedByTls(socket: Socket): number {
  const { _parent: encrypted, bytesRead = 0 } = handleOf(socket) ?? {};
  return (encrypted?.bytesRead ?? 0) - bytesRead;
}

function stopReading(socket: Socket): void {
  isolate(() => handleOf(socket)?.readStop());
}

/** A socket that was paused meanwhile is read once it is resumed. */
function read(socket: Socket): void {
  isolate(() => {
    const handle = handleOf(socket);
    if (handle?.reading === true) handle.readStart();
  });
}
