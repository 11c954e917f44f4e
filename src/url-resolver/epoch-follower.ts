import { defineScript, type Redis } from '../redis/redis.ts';
import {
  createEpoch,
  type EpochTable,
  everything,
  maxScopes,
  type Purge,
  PurgeEpochs,
  scopeOf,
} from './purge-epochs.ts';

/** The epochs that all processes share. Its calls reject when the store cannot be reached. */
export interface EpochStore {
  /** Gives the scope a new epoch. */
  raise(scope: string): Promise<unknown>;
  /** All epochs. Undefined: no purge since `last`. */
  read(last: string): Promise<EpochTable | undefined>;
}

/** Polling interval: a purge reaches every process within this time and a round trip, less than a second. */
const readEveryMs = 500;

/** Keeps the epochs of this process in step with the store, by the transitions of docs/decisions/url-mapping-purge.md. */
export class EpochFollower {
  readonly epochs = new PurgeEpochs();
  readonly #store: EpochStore | undefined;
  readonly #forget: () => void;
  #reading: Promise<boolean> | undefined;
  #mustReadAgain = false;
  #timer: NodeJS.Timeout | undefined;

  /** Without a store, this process is the only one. `forget` has to drop all its mappings. */
  constructor(store: EpochStore | undefined, forget: () => void) {
    this.#store = store;
    this.#forget = forget;
  }

  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.catchUp(), readEveryMs).unref();
    await this.catchUp();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Resolves once this process knows the purge and all earlier ones. Rejects when the store cannot be reached. */
  async purge(purge: Purge): Promise<void> {
    const scope = scopeOf(purge);
    if (this.#store === undefined) return this.epochs.raise(scope, createEpoch());
    await this.#store.raise(scope);
    if (!(await this.catchUp())) throw new Error('the epochs cannot be read');
  }

  /** Reads the store; false: it cannot be reached. A call during a reading causes another one. Never rejects. */
  catchUp(): Promise<boolean> {
    this.#mustReadAgain = true;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<boolean> {
    let table: EpochTable | undefined | null;
    while (this.#mustReadAgain) {
      this.#mustReadAgain = false;
      table = await this.#store?.read(this.epochs.last).catch(() => null);
      if (table && !this.epochs.replace(table)) this.#forget();
    }
    return table !== null;
  }
}

/** Kept characters of the last epochs: about two hundred epochs. */
const recentLength = 2600;

// KEYS epochs; ARGV scope, epoch, most scopes, characters of the last epochs
const raiseScript = defineScript(
  'purge-raise',
  `
local scope = ARGV[1]
local recent = string.sub(ARGV[2] .. ' ' .. (redis.call('HGET', KEYS[1], 'recent') or ''), 1, tonumber(ARGV[4]))
local isFull = redis.call('HLEN', KEYS[1]) > tonumber(ARGV[3])
if isFull or redis.call('HEXISTS', KEYS[1], '${everything}') == 0 then scope = '${everything}' end
if scope == '${everything}' then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], scope, ARGV[2], 'last', ARGV[2], 'recent', recent)
`,
);

// KEYS epochs; ARGV last epoch that the caller knows, epoch of everything for a new hash
const readScript = defineScript(
  'purge-read',
  `
local last = redis.call('HGET', KEYS[1], 'last')
if last == ARGV[1] then return {} end
if not last then redis.call('HSET', KEYS[1], '${everything}', ARGV[2], 'last', ARGV[2], 'recent', ARGV[2]) end
return redis.call('HGETALL', KEYS[1])
`,
);

/** The epochs as a hash `<prefix>:epochs` in Redis. */
export function createRedisEpochStore(redis: Redis, prefix: string): EpochStore {
  const key = `${prefix}:epochs`;
  return {
    raise: (scope) =>
      redis.runScript(raiseScript, [key], [scope, createEpoch(), maxScopes + 2, recentLength]),
    async read(known) {
      const reply = await redis.runScript(readScript, [key], [known, createEpoch()]);
      const texts = Array.isArray(reply) ? reply.map(String) : [];
      if (texts.length === 0) return undefined;
      const fields = new Map<string, string>();
      for (let i = 0; i + 1 < texts.length; i += 2) fields.set(texts[i] as string, texts[i + 1] as string);
      const { last = '', recent = '' } = { last: fields.get('last'), recent: fields.get('recent') };
      const epochs = new Map([...fields].filter(([scope]) => scope !== 'last' && scope !== 'recent'));
      return { last, recent: recent.split(' '), epochs };
    },
  };
}
