import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { isolated } from '../lib/faults.ts';

/** Bytes of lines that are kept while nobody takes them; further lines are dropped, and counted. */
const keptBytes = 1024 * 1024;
/** Octets that a pipe takes as one piece, whoever else writes to it (PIPE_BUF of Linux): workers share theirs. */
const pieceBytes = 4096;
/** How long a line waits for others: a write, and a reader that wakes up, cost more than a line. */
const gatherMs = 5;
/** So many octets leave when the turn ends, however little they have waited: a pipe holds 64 KiB. */
const gatherBytes = 4 * pieceBytes;
/** Pieces of memory that are kept for lines to come. */
const keptPieces = 16;
/** Between two attempts to write what was not taken. */
const pauseMs = 50;
/** How long a process that ends waits for a reader that takes nothing. */
const lastWaitMs = 500;

export interface LogOutputStatus {
  /** Attempts to write that failed; a reader that is merely slow is no failure. */
  readonly failures: number;
  /** Lines that were dropped. */
  readonly droppedLines: number;
  /** The system's word while lines cannot be written: `ENOSPC`, `EPIPE`, or `EAGAIN` where nobody reads and lines are dropped. */
  readonly fault: string | undefined;
}

interface LogOutputOptions {
  /** Writes what it can without waiting, and returns the number of bytes; throws the system's error. */
  write(piece: Buffer): number;
  /** The line that tells of dropped ones. */
  droppedLine(count: number): string;
  /** Default 1 MiB. Only tests set it. */
  readonly keptBytes?: number;
}

interface Piece {
  /** What is left of it. */
  bytes: Buffer;
  readonly lines: number;
  /** To be used again; undefined: of this piece alone. */
  readonly memory: Buffer | undefined;
}

/**
 * Where log lines go, which never makes anybody wait: what the reader does not take is kept up to a bound, and lines
 * beyond it are dropped, counted, and reported in a line of their own as soon as there is room. Lines wait up to 5 ms for one
 * another, since a write costs more than a line; a process that is killed (SIGKILL) loses what it has not written, and any
 * other end of it writes all.
 */
export class LogOutput {
  readonly #options: LogOutputOptions;
  readonly #keptBytes: number;
  /** The piece that takes lines, as far as it is full. */
  #open: Buffer = Buffer.allocUnsafeSlow(pieceBytes);
  #openBytes = 0;
  #openLines = 0;
  /** Pieces that were not taken yet; of the first one maybe a part. */
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

  /** One whole line, with its line break. */
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

  /** Writes what can be written now; pino asks for it after a fatal line. */
  flushSync(): void {
    this.#writePieces();
    // A piece that would only wait stays open: its memory takes what else comes meanwhile.
    if (this.#pieces.length > 0) return;
    this.#endPiece();
    this.#writePieces();
  }

  /** The process ends: the rest is written for as long as the reader takes some of it. */
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
    // While the way is blocked, there is a next attempt already.
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
      // Nobody will ever read what this reader left, and another one is not to begin with old lines.
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
 * Writes to standard output without ever waiting for its reader. A pipe or a terminal is opened once more, so that
 * whoever shares it keeps waiting writes; a socket, or a pipe of another user, can only be switched as a whole.
 */
export function writeToStdout(): (piece: Buffer) => number {
  const descriptor = openWithoutWaiting();
  return (piece) => writeSync(descriptor, piece);
}

/** Keeps the descriptor that it switched from being closed. */
let switched: Socket | undefined;

function openWithoutWaiting(): number {
  const stdout = 1;
  const kind = fstatSync(stdout);
  // A write to a file waits for nobody.
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
