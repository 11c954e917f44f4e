import { connectRedis } from '../../../src/redis/connect-redis.ts';
import type { Redis } from '../../../src/redis/redis.ts';
import { MemoryTokenStore } from '../../../src/refresh-tokens/memory-store.ts';
import { NoteLimit } from '../../../src/refresh-tokens/note-limit.ts';
import { buildTokenScripts, RedisTokenStore } from '../../../src/refresh-tokens/redis-store.ts';
import type { TokenSteps } from '../../../src/refresh-tokens/token-store.ts';
import { eventually } from '../../harness/eventually.ts';
import { lifetimeMs, notesOfSubject, type Subject } from './store-contract.ts';

export function memorySubject(steps?: TokenSteps): Subject {
  let nowMs = 1_700_000_000_000;
  const store = new MemoryTokenStore({
    lifetimeMs,
    retentionMs: 'keep',
    noteLimit: new NoteLimit(notesOfSubject),
    now: () => nowMs,
    ...(steps && { steps }),
  });
  return {
    ...{ one: store, other: store },
    pass: async (ms) => {
      nowMs += ms;
    },
  };
}

export async function connect(url: string, timeoutMs = 20_000): Promise<Redis> {
  const redis = connectRedis({ url, timeoutMs });
  await eventually('store', async () => (await redis.ready(1000).catch(() => false)) || undefined);
  return redis;
}

export interface RedisSubjectOptions {
  /** Breaks the scripts on purpose. */
  readonly edit?: (lua: string, name: string) => string;
  readonly keyPrefix?: string;
}

/** Two stores with their own connections, as two replicas have. Only `pass` moves the clock of the scripts. */
export function redisSubject(
  [one, other]: readonly [Redis, Redis],
  { edit = (lua) => lua, keyPrefix }: RedisSubjectOptions = {},
): Subject {
  let passedMs = 0;
  const build = () => buildTokenScripts((lua, name) => setClock(edit(lua, name), startMs + passedMs));
  const scripts = { ...build() };
  const options = {
    lifetimeMs,
    retentionMs: 'keep',
    noteLimit: new NoteLimit(notesOfSubject),
    scripts,
    ...(keyPrefix && { keyPrefix }),
  } as const;
  return {
    one: new RedisTokenStore({ ...options, redis: one }),
    other: new RedisTokenStore({ ...options, redis: other }),
    pass: async (ms) => {
      passedMs += ms;
      Object.assign(scripts, build());
    },
  };
}

function setClock(lua: string, ms: number): string {
  const [before, after, ...more] = lua.split(readClock);
  if (after === undefined || more.length > 0) throw new Error('a script that does not read the clock once');
  return `${before}local time = { 0, ${ms * 1000} }${after}`;
}

const readClock = "local time = redis.call('TIME')";
const startMs = Date.now();
