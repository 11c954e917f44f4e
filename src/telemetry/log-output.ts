import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { isolated } from '../lib/faults.ts';

/** Bytes of lines that wait for the reader; further lines are dropped and counted. */
const keptBytes = 1024 * 1024;
/** Octets that are written to a pipe atomically (PIPE_BUF of Linux): workers share one pipe, and lines must not mix. */
const pieceBytes = 4096;
/** How long a line waits for others: a write, which wakes up the reader, costs more than a line. */
const gatherMs = 5;
/** With so many octets they are written at the end of the turn, without waiting: a pipe holds 64 KiB. */
const gatherBytes = 4 * pieceBytes;
/** Buffers that are kept for reuse. */
const keptPieces = 16;
/** Between two attempts to write. */
const pauseMs = 50;
/** How long a process that ends waits for a reader that reads nothing. */
const lastWaitMs = 500;

export interface LogOutputStatus {
  /** Attempts to write that failed. A slow reader (`EAGAIN`) does not count. */
  readonly failures: number;
  /** Lines that were dropped. */
  readonly droppedLines: number;
  /**
   * The system's error code while lines cannot be written, such as `ENOSPC`; `EAGAIN` once lines are dropped for a slow
   * reader.
   */
  readonly fault: string | undefined;
}

interface LogOutputOptions {
  /** Writes what it can without blocking, and returns the number of bytes. Throws the system's error. */
  write(piece: Buffer): number;
  /** The line that says how many were dropped. */
  droppedLine(count: number): string;
  /** Default 1 MiB. Only tests set it. */
  readonly keptBytes?: number;
}

interface Piece {
  /** The part that is not written yet. */
  bytes: Buffer;
  readonly lines: number;
  /** The buffer to reuse; undefined: the piece has one of its own. */
  readonly memory: Buffer | undefined;
}

/**
 * The output of the log, which never blocks. Lines that the reader does not take are kept up to a bound; beyond it they are
 * dropped, counted, and reported in a line of their own as soon as there is room. Lines wait up to 5 ms for one another, since a
 * write costs more than a line: a process that is killed (SIGKILL) loses these; any other end writes them.
 */
export class LogOutput {
  readonly #options: LogOutputOptions;
  readonly #keptBytes: number;
  /** The piece that new lines are added to, and how much of it is used. */
  #open: Buffer = Buffer.allocUnsafeSlow(pieceBytes);
  #openBytes = 0;
  #openLines = 0;
  /** Pieces that are not written yet; the first one perhaps in part. */
  readonly #pieces: Piece[] = [];
  readonly #spare: Buffer[] = [];
  #waitingBytes = 0;
  #unreported = 0;
  #isTimed = false;
  #isScheduled = false;
  #willTryAgain = false;
  #failures = 0;
  #droppedLines = 0;
  #fault: string | undefined;

  constructor(options: LogOutputOptions) {
    this.#options = options;
    this.#keptBytes = options.keptBytes ?? keptBytes;
  }

  get status(): LogOutputStatus {
    const isMerelySlow = this.#fault === 'EAGAIN' && this.#unreported === 0;
    return {
      failures: this.#failures,
      droppedLines: this.#droppedLines,
      fault: isMerelySlow ? undefined : this.#fault,
    };
  }

  /** Takes one whole line, with its line break. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    const waiting = this.#waitingBytes + this.#openBytes + bytes;
    if (waiting > this.#keptBytes) {
      this.#drop(1);
      return;
    }
    if (this.#openBytes + bytes > pieceBytes) this.#endPiece();
    if (bytes > pieceBytes) this.#push({ bytes: Buffer.from(line), lines: 1, memory: undefined });
    else {
      this.#openBytes += this.#open.write(line, this.#openBytes);
      this.#openLines++;
    }
    this.#schedule(waiting);
  }

  /** Writes what can be written now; pino calls it after a fatal line. */
  flushSync(): void {
    this.#writePieces();
    // While others wait before it, the open piece is kept open for further lines.
    if (this.#pieces.length > 0) return;
    this.#endPiece();
    this.#writePieces();
  }

  /** At the end of the process: blocks until all is written, or the reader has read nothing for `lastWaitMs`. */
  end(): void {
    this.flushSync();
    const pause = new Int32Array(new SharedArrayBuffer(4));
    const waiting = () => this.#waitingBytes + this.#openBytes;
    for (let waitedMs = 0; waiting() > 0 && waitedMs < lastWaitMs && this.#fault === 'EAGAIN'; ) {
      const before = waiting();
      Atomics.wait(pause, 0, 0, 5);
      this.flushSync();
      waitedMs = waiting() < before ? 0 : waitedMs + 5;
    }
  }

  #schedule(waiting: number): void {
    // While writes fail, the next attempt is scheduled already.
    if (this.#fault !== undefined) return;
    if (!this.#isTimed) {
      this.#isTimed = true;
      setTimeout(this.#flushInTime, gatherMs).unref();
    }
    if (waiting < gatherBytes || this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#flushAtOnce);
  }

  readonly #flushInTime = isolated((): void => {
    this.#isTimed = false;
    this.#flush();
  });

  readonly #flushAtOnce = isolated((): void => {
    this.#isScheduled = false;
    this.#flush();
  });

  #flush(): void {
    if (this.#fault === undefined) this.flushSync();
  }

  #endPiece(): void {
    if (this.#openBytes === 0) return;
    const memory = this.#open;
    this.#push({ bytes: memory.subarray(0, this.#openBytes), lines: this.#openLines, memory });
    this.#open = this.#spare.pop() ?? Buffer.allocUnsafeSlow(pieceBytes);
    this.#openBytes = 0;
    this.#openLines = 0;
  }

  #push(piece: Piece): void {
    this.#pieces.push(piece);
    this.#waitingBytes += piece.bytes.length;
  }

  #writePieces(): void {
    for (let first = this.#pieces[0]; first !== undefined; first = this.#pieces[0]) {
      const written = this.#tryWrite(first.bytes);
      if (written === undefined) return;
      this.#waitingBytes -= written;
      if (written < first.bytes.length) first.bytes = first.bytes.subarray(written);
      else this.#release(this.#pieces.shift());
      this.#emitDropped();
    }
  }

  #release(piece: Piece | undefined): void {
    if (piece?.memory !== undefined && this.#spare.length < keptPieces) this.#spare.push(piece.memory);
  }

  #tryWrite(bytes: Buffer): number | undefined {
    try {
      const written = this.#options.write(bytes);
      this.#fault = undefined;
      return written;
    } catch (error) {
      const { code = 'unknown fault' } = error as NodeJS.ErrnoException;
      this.#fault = code;
      if (code !== 'EAGAIN') this.#failures++;
      // The reader has gone; a new one should not begin with old lines.
      if (code === 'EPIPE') this.#dropWaiting();
      this.#tryAgainLater();
      return undefined;
    }
  }

  #tryAgainLater(): void {
    if (this.#willTryAgain) return;
    this.#willTryAgain = true;
    setTimeout(this.#tryAgain, pauseMs).unref();
  }

  readonly #tryAgain = isolated((): void => {
    this.#willTryAgain = false;
    if (this.#waitingBytes + this.#openBytes > 0) this.flushSync();
    else if (this.#fault !== undefined) this.#tryAgainLater();
  });

  #dropWaiting(): void {
    this.#endPiece();
    for (const { lines } of this.#pieces.splice(0)) this.#drop(lines);
    this.#waitingBytes = 0;
  }

  #drop(lines: number): void {
    this.#droppedLines += lines;
    this.#unreported += lines;
  }

  #emitDropped(): void {
    if (this.#unreported === 0) return;
    const line = this.#options.droppedLine(this.#unreported);
    this.#endPiece();
    this.#push({ bytes: Buffer.from(line), lines: 0, memory: undefined });
    this.#unreported = 0;
  }
}

/**
 * Returns a function that writes to standard output without blocking. A pipe or a terminal is opened a second time for it, so
 * that other processes that share it still have blocking writes. A socket, or a pipe of another user, cannot be opened again:
 * it is switched to non-blocking for all.
 */
export function writeToStdout(): (piece: Buffer) => number {
  const descriptor = openNonBlocking();
  return (piece) => writeSync(descriptor, piece);
}

/** Referenced for ever: a collected socket would close the descriptor. */
let switched: Socket | undefined;

function openNonBlocking(): number {
  const stdout = 1;
  const kind = fstatSync(stdout);
  // A file has no reader to wait for.
  if (kind.isFile()) return stdout;
  try {
    const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
    return openSync(`/proc/self/fd/${stdout}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    switched = new Socket({ fd: stdout, readable: false, writable: true });
    switched.unref();
    return stdout;
  }
}
