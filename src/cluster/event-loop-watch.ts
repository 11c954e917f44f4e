import { Worker } from 'node:worker_threads';

export interface EventLoopWatch {
  close(): void;
}

interface EventLoopWatchOptions {
  /** How long the event loop may stand still, in milliseconds. */
  readonly stallMs: number;
  /** Number of the worker process, for the log. */
  readonly worker?: number;
}

/** What the watching thread is given. */
export interface WatchedEventLoop extends EventLoopWatchOptions {
  /** Grows with each beat of the event loop. */
  readonly beats: Int32Array;
  readonly beatMs: number;
}

/**
 * Milliseconds in which the thread has to learn what the event loop is doing. The debugger never answers where a system
 * call does not return; where JavaScript runs it first names every script of the process, which takes a busy machine
 * more than a second.
 */
export const stackWithinMs = 4_000;

// A URL is not rewritten when the sources are compiled, so the name follows the one of this file.
const threadFile = new URL(
  import.meta.url.endsWith('.ts') ? './event-loop-watch-thread.ts' : './event-loop-watch-thread.js',
  import.meta.url,
);

/**
 * Has a thread watch the event loop of this one. Where it stands still for `stallMs`, the thread logs what it was
 * doing and ends the process with SIGKILL, so that whoever supervises it starts another one. Nothing else can: a
 * process whose event loop stands still hears no signal that it handles.
 */
export function watchEventLoop(options: EventLoopWatchOptions): EventLoopWatch {
  const beatMs = Math.min(250, options.stallMs / 10);
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const workerData: WatchedEventLoop = { ...options, beats, beatMs };
  const thread = new Worker(threadFile, {
    workerData,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  });
  thread.unref();
  // A process without this thread still serves.
  thread.on('error', () => {});
  const timer = setInterval(() => Atomics.add(beats, 0, 1), beatMs).unref();
  return {
    close() {
      clearInterval(timer);
      void thread.terminate();
    },
  };
}
