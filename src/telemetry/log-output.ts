import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { isolated } from '../lib/faults.ts';

/** Octets of lines that may wait for the reader; further lines are dropped and counted. */
const keptBytes = 1024 * 1024;
/** Octets that are written to a pipe atomically (PIPE_BUF of Linux): workers share one pipe, and lines must not mix. */
const chunkBytes = 4096;
/** Milliseconds that a line waits for others: a write wakes up the reader, and costs more than a line. */
const gatherMs = 5;
/** This many octets are written at once; a pipe takes 64 KiB. */
const gatherBytes = 4 * chunkBytes;
/** Milliseconds between two attempts to write. */
const pauseMs = 50;
/** Milliseconds that an ending process waits for a reader that reads nothing. */
const lastWaitMs = 500;

interface LogOutputOptions {
  /** Writes as much as possible without blocking, and returns the number of octets. Throws the system's error. */
  write(chunk: Buffer): number;
  /** Returns the line that says how many lines were dropped. */
  droppedLine(count: number): string;
  /** Default 1 MiB. Only tests set it. */
  readonly keptBytes?: number;
}

/** Whole lines that are written together. */
interface Chunk {
  text: string;
  octets: number;
  lines: number;
}

/**
 * The output of the log, which never blocks. Lines that the reader does not take are kept up to a bound; further lines are
 * dropped, counted, and reported in a line of their own as soon as there is room. Lines wait up to 5 ms for one another, since a
 * write costs more than a line. A process that is killed (SIGKILL) loses waiting lines; any other end writes them.
 */
export class LogOutput {
  readonly #options: LogOutputOptions;
  /** Chunks whose write has not begun; the last one takes further lines. */
  #chunks: Chunk[] = [];
  /** The rest of the buffer that is being written. */
  #current: { bytes: Buffer; readonly lines: number } | undefined;
  #waitingBytes = 0;
  /** Lines that were dropped since the last successful write. */
  #unreported = 0;
  /** Attempts to write that failed. A slow reader (`EAGAIN`) does not count. */
  #failures = 0;
  #droppedLines = 0;
  /** The system's error code while lines cannot be written, such as `ENOSPC`. */
  #fault: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LogOutputOptions) {
    this.#options = options;
  }

  /** `fault` is `EAGAIN` once lines are dropped for a slow reader. */
  get status() {
    const losesLines = this.#unreported > 0;
    const fault = this.#fault === 'EAGAIN' && !losesLines ? undefined : this.#fault;
    return { failures: this.#failures, droppedLines: this.#droppedLines, losesLines, fault };
  }

  /** Takes one whole line, with its line break. */
  write(line: string): void {
    const octets = Buffer.byteLength(line);
    if (this.#waitingBytes + octets > (this.#options.keptBytes ?? keptBytes)) this.#drop(1);
    else this.#add({ text: line, octets, lines: 1 });
    if (this.#fault === undefined && this.#waitingBytes >= gatherBytes) this.flushSync();
    else this.#flushAfter(gatherMs);
  }

  /** Writes as much as possible now; pino calls this after a fatal line. */
  flushSync(): void {
    while (this.#waitingBytes > 0) {
      this.#current ??= this.#takeChunk();
      const written = this.#tryWrite(this.#current.bytes);
      if (written === undefined) return;
      this.#waitingBytes -= written;
      const bytes = this.#current.bytes.subarray(written);
      this.#current = bytes.length === 0 ? undefined : { ...this.#current, bytes };
      this.#reportDropped();
    }
  }

  /** At the end of the process: blocks until all is written, or the reader has read nothing for `lastWaitMs`. */
  end(): void {
    this.flushSync();
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (let waitedMs = 0; waitedMs < lastWaitMs && this.#waitingBytes > 0 && this.#fault === 'EAGAIN'; ) {
      const before = this.#waitingBytes;
      Atomics.wait(pause, 0, 0, 5);
      this.flushSync();
      waitedMs = this.#waitingBytes < before ? 0 : waitedMs + 5;
    }
  }

  #add(line: Chunk): void {
    this.#waitingBytes += line.octets;
    const last = this.#chunks.at(-1);
    if (last === undefined || last.octets + line.octets > chunkBytes) {
      this.#chunks.push(line);
      return;
    }
    last.text += line.text;
    last.octets += line.octets;
    last.lines += line.lines;
  }

  #takeChunk() {
    const { text, lines } = this.#chunks.shift() as Chunk;
    return { bytes: Buffer.from(text), lines };
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
      // The reader has gone; a new reader should not begin with old lines.
      if (code === 'EPIPE') this.#dropWaiting();
      this.#flushAfter(pauseMs);
      return undefined;
    }
  }

  #flushAfter(ms: number): void {
    this.#timer ??= setTimeout(this.#flushInTime, ms).unref();
  }

  readonly #flushInTime = isolated((): void => {
    this.#timer = undefined;
    this.flushSync();
  });

  #dropWaiting(): void {
    for (const { lines } of [...this.#chunks, this.#current ?? { lines: 0 }]) this.#drop(lines);
    this.#chunks = [];
    this.#current = undefined;
    this.#waitingBytes = 0;
  }

  #drop(lines: number): void {
    this.#droppedLines += lines;
    this.#unreported += lines;
  }

  #reportDropped(): void {
    if (this.#unreported === 0) return;
    const text = this.#options.droppedLine(this.#unreported);
    this.#unreported = 0;
    this.#add({ text, octets: Buffer.byteLength(text), lines: 0 });
  }
}

/**
 * Returns a function that writes to standard output without blocking. A pipe or a terminal is opened a second time, so that
 * other processes that share it keep blocking writes. A socket, or a pipe of another user, cannot be opened again: it becomes
 * non-blocking for all of them.
 */
export function writeToStdout(): (chunk: Buffer) => number {
  const descriptor = openNonBlocking();
  return (chunk) => writeSync(descriptor, chunk);
}

/** Kept referenced: if the socket were garbage-collected, it would close the descriptor. */
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
