import { defineScript, type Redis } from '../redis/redis.ts';
import {
  createEpoch,
  type EpochTable,
  everything,
  maxScopes,
  type Purge,
  PurgeEpochs,
  type Raise,
  scopeOf,
} from './purge-epochs.ts';

/** The epochs that all processes share. */
export interface EpochStore {
  /** Raises and publishes in one step. Rejects when the store cannot be reached: the purge is then not in force. */
  raise(scope: string): Promise<Raise>;
  /** All epochs; undefined: `last` is still the last one. Rejects when the store cannot be reached. */
  read(last: string): Promise<EpochTable | undefined>;
  /** Calls `onRaise` for each purge, and `onGap` whenever purges may have been missed. Returns how to unsubscribe. */
  subscribe(onRaise: (raise: Raise) => void, onGap: () => void): () => void;
}

/** The store is also read this often, in case the subscription has died unnoticed. */
const readEveryMs = 1000;

/** Keeps the epochs of this process in step with the store, by the transitions of docs/decisions/url-mapping-purge.md. */
export class EpochFollower {
  readonly epochs = new PurgeEpochs();
  readonly #store: EpochStore | undefined;
  readonly #forget: () => void;
  #reading: Promise<void> | undefined;
  #mustReadAgain = false;
  #unsubscribe: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** Without a store, this process is the only one. `forget` has to drop all its mappings. */
  constructor(store: EpochStore | undefined, forget: () => void) {
    this.#store = store;
    this.#forget = forget;
  }

  /** Subscribes, then reads the store; one that cannot be reached is read later. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#store?.subscribe(
      (raise) => this.#hear(raise),
      () => void this.catchUp(),
    );
    this.#timer = setInterval(() => void this.catchUp(), readEveryMs).unref();
    await this.catchUp();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#unsubscribe?.();
  }

  /** Resolves once this process knows the purge and all earlier ones. Rejects when the store cannot be reached. */
  async purge(purge: Purge): Promise<void> {
    const scope = scopeOf(purge);
    if (this.#store === undefined) return this.epochs.raise(scope, createEpoch());
    this.#hear(await this.#store.raise(scope));
    await this.catchUp();
  }

  /** Reads the store. A call during a reading causes another one. Never rejects. */
  catchUp(): Promise<void> {
    this.#mustReadAgain = true;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  #hear({ scope, epoch, previous }: Raise): void {
    if (previous === this.epochs.last) this.epochs.raise(scope, epoch);
    else if (epoch !== this.epochs.last) void this.catchUp();
  }

  async #read(): Promise<void> {
    while (this.#mustReadAgain) {
      this.#mustReadAgain = false;
      const { last } = this.epochs;
      // A store that cannot be reached is read at the next interval, or after the reconnection.
      const table = await this.#store?.read(last).catch(() => undefined);
      if (table === undefined) continue;
      if (last !== this.epochs.last) this.#mustReadAgain = true;
      else if (!this.epochs.replace(table)) this.#forget();
    }
  }
}

// KEYS epochs; ARGV scope, epoch, channel, most scopes
const raiseScript = defineScript(
  'purge-raise',
  `
local scope = ARGV[1]
local previous = redis.call('HGET', KEYS[1], 'last') or ''
local isFull = redis.call('HLEN', KEYS[1]) > tonumber(ARGV[4])
if isFull or redis.call('HEXISTS', KEYS[1], '${everything}') == 0 then scope = '${everything}' end
if scope == '${everything}' then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], scope, ARGV[2], 'last', ARGV[2])
local message = ARGV[2] .. ' ' .. previous .. ' ' .. scope
redis.call('PUBLISH', ARGV[3], message)
return message
`,
);

// KEYS epochs; ARGV last epoch that the caller knows, epoch of everything for a new hash
const readScript = defineScript(
  'purge-read',
  `
local last = redis.call('HGET', KEYS[1], 'last')
if last == ARGV[1] then return {} end
if not last then redis.call('HSET', KEYS[1], '${everything}', ARGV[2], 'last', ARGV[2]) end
return redis.call('HGETALL', KEYS[1])
`,
);

/** The epochs as a hash `<prefix>:epochs` in Redis, with a channel of the same name. */
export function createRedisEpochStore(redis: Redis, prefix: string): EpochStore {
  const key = `${prefix}:epochs`;
  return {
    async raise(scope) {
      return readRaise(
        String(await redis.runScript(raiseScript, [key], [scope, createEpoch(), key, maxScopes])),
      );
    },
    async read(last) {
      const reply = await redis.runScript(readScript, [key], [last, createEpoch()]);
      const texts = Array.isArray(reply) ? reply.map(String) : [];
      if (texts.length === 0) return undefined;
      const epochs = new Map<string, string>();
      for (let i = 0; i + 1 < texts.length; i += 2) epochs.set(texts[i] as string, texts[i + 1] as string);
      const newLast = epochs.get('last') ?? '';
      epochs.delete('last');
      return { last: newLast, epochs };
    },
    subscribe: (onRaise, onGap) => redis.subscribe(key, (message) => onRaise(readRaise(message)), onGap),
  };
}

/** Reads `epoch previous scope`; only the scope may have spaces. Exported for its tests. */
export function readRaise(message: string): Raise {
  const [epoch = '', previous = ''] = message.split(' ', 2);
  return { epoch, previous, scope: message.slice(epoch.length + previous.length + 2) };
}
