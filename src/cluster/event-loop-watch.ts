import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { noteProgress, heartbeats } from '../lib/per-tick.ts';

/** `workerData` of the watching thread. */
export interface WatchedEventLoop {
  readonly stallMs: number;
  /** Number of the worker process, for the log. */
  readonly worker: number | undefined;
  /** Grows while the event loop runs, also within a long tick of many short callbacks. */
  readonly heartbeats: Int32Array;
  readonly heartbeatMs: number;
  readonly stackWithinMs: number;
}

/**
 * Milliseconds that the thread has to read the stack. The debugger does not answer during a blocking system call; otherwise
 * it first lists every script of the process, which takes more than a second on a busy machine.
 */
export const stackWithinMs = 4_000;

// The build rewrites `.ts` in imports, but not in URLs, so the extension is taken from this file.
const threadFile = new URL(`./event-loop-watch-thread${extname(import.meta.url)}`, import.meta.url);

/**
 * Starts a thread that watches the event loop of this one. When the loop has been blocked for `stallMs`, the thread logs the
 * call stack and kills the process with SIGKILL, so that its supervisor starts another one. A weaker signal is no use: a
 * process with a blocked event loop handles none. Returns a function that stops the thread.
 */
export function watchEventLoop(stallMs: number, worker?: number): () => void {
  const heartbeatMs = Math.min(250, stallMs / 10);
  const workerData: WatchedEventLoop = { stallMs, worker, heartbeats, heartbeatMs, stackWithinMs };
  const thread = new Worker(threadFile, {
    workerData,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  });
  thread.unref();
  // If the thread fails, the process still serves.
  thread.on('error', () => {});
  const timer = setInterval(noteProgress, heartbeatMs).unref();
  return () => {
    clearInterval(timer);
    void thread.terminate();
  };
}
