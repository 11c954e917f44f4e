import { RedisUnavailable } from '../redis/redis.ts';

/** Writes that a store that was away did not take: each is tried again until it does. */
export interface Unwritten {
  /** Never rejects with the store's fault. The write must bear repetition. */
  write(write: () => void | Promise<void>): Promise<void>;
  readonly waiting: number;
  /** Tries once more and stops; gives how many are lost. */
  close(): Promise<number>;
}

export interface UnwrittenOptions {
  /** Default 1000. */
  readonly retryMs?: number;
  /** Writes that may wait; one more is lost. Default 10000. */
  readonly limit?: number;
  readonly onDelayed: () => void;
  readonly onLost: () => void;
}

export function createUnwritten(options: UnwrittenOptions): Unwritten {
  const { retryMs = 1000, limit = 10_000, onDelayed, onLost } = options;
  const waiting: Array<() => void | Promise<void>> = [];
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  const schedule = () => {
    if (isClosed || waiting.length === 0) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      void drain().then(schedule);
    }, retryMs).unref();
  };
  const drain = async () => {
    while (waiting.length > 0) {
      const [next] = waiting;
      if (next === undefined || !(await succeeds(next))) return;
      waiting.shift();
    }
  };

  return {
    async write(write) {
      if (await succeeds(write)) return;
      if (waiting.length >= limit) return onLost();
      waiting.push(write);
      onDelayed();
      schedule();
    },
    get waiting() {
      return waiting.length;
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await drain();
      return waiting.length;
    },
  };
}

async function succeeds(write: () => void | Promise<void>): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (fault) {
    if (fault instanceof RedisUnavailable) return false;
    throw fault;
  }
}
