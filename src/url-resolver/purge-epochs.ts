import { randomBytes } from 'node:crypto';
import { decodeOctets } from '../http/form-encoding.ts';
import { type Redis, defineScript } from '../redis/redis.ts';

/** The URLs to purge; `url` and `prefix` are decoded, as in the `url` attribute. */
export type Purge = { readonly url: string } | { readonly prefix: string } | 'all';

/** The scope of everything: the empty prefix. Exported for its tests. */
export const everything = 'p:';
/** Most scopes that have an epoch; one more purge becomes a purge of everything. Exported for its tests. */
export const maxScopes = 10_000;

/** A purge's scope as text: `p:` and a prefix, or `u:` and a folded URL. Exported for its tests. */
export function scopeOf(purge: Purge): string {
  if (purge === 'all') return everything;
  return 'url' in purge ? `u:${foldUrl(purge.url)}` : `p:${purge.prefix}`;
}

function createEpoch(): string {
  return randomBytes(9).toString('base64url');
}

/** The epochs of all scopes, the one of the last purge, and those of the purges before it. */
interface EpochTable {
  readonly last: string;
  /** Newest first; the oldest are left out. */
  readonly recent: readonly string[];
  readonly epochs: ReadonlyMap<string, string>;
}

/** The epochs that a process knows, by the rule of docs/decisions/url-mapping-purge.md: equal stamps mean no purge in between. */
export class PurgeEpochs {
  /** Counts changes; while it is the same, so is every stamp. */
  version = 0;
  #last = createEpoch();
  #everything = this.#last;
  /** By folded URL. */
  readonly #urls = new Map<string, string>();
  readonly #prefixes = new Map<string, { readonly folded: string; readonly epoch: string }>();

  /** Epoch of the last purge. */
  get last(): string {
    return this.#last;
  }

  /** The epochs of all scopes that cover the URL. */
  stampOf(url: string): string {
    if (this.#urls.size === 0 && this.#prefixes.size === 0) return this.#everything;
    const foldedUrl = foldUrl(url);
    const stamp = [this.#everything];
    const own = this.#urls.get(foldedUrl);
    if (own !== undefined) stamp.push(own);
    for (const [prefix, { folded, epoch }] of this.#prefixes) {
      // Unfolded as well: a prefix may end in the middle of characters that are folded together.
      if (url.startsWith(prefix) || foldedUrl.startsWith(folded)) stamp.push(epoch);
    }
    return stamp.sort().join();
  }

  /** Gives a scope a new epoch. */
  raise(scope: string, epoch: string): void {
    this.version += 1;
    this.#last = epoch;
    if (scope === everything || this.#urls.size + this.#prefixes.size >= maxScopes) this.#clear(epoch);
    else this.#set(scope, epoch);
  }

  /** Takes over all epochs of a store. False: the own last purge is not among them, so purges may be lost. */
  replace({ last, recent, epochs }: EpochTable): boolean {
    const isContinued = recent.includes(this.#last);
    this.version += 1;
    this.#last = last;
    this.#clear(epochs.get(everything) ?? createEpoch());
    for (const [scope, epoch] of epochs) if (scope !== everything) this.#set(scope, epoch);
    return isContinued;
  }

  #set(scope: string, epoch: string): void {
    const text = scope.slice(2);
    if (scope.startsWith('u:')) this.#urls.set(text, epoch);
    else this.#prefixes.set(text, { folded: foldUrl(text), epoch });
  }

  #clear(epoch: string): void {
    this.#everything = epoch;
    this.#urls.clear();
    this.#prefixes.clear();
  }
}

/** How often the shop decodes a value again that was decoded already. */
const shopDecodings = 2;

/**
 * The same text for all spellings that the shop takes for one URL: it decodes again, trims, ignores case, and replaces quotes,
 * spaces and line breaks by `-`. In doubt it folds too much: to purge too much costs a look-up, to purge too little gives wrong
 * answers. Slashes count, as at the shop. Exported for its tests.
 */
export function foldUrl(url: string): string {
  let text = url;
  for (let i = 0; i < shopDecodings; i += 1) {
    // Invalid UTF-8 as well: it becomes U+FFFD, and so alike.
    if (text.includes('%') || text.includes('+')) text = decodeOctets(Buffer.from(text)).toString();
  }
  const dashed = text
    .replaceAll('\0', ' ')
    .trim()
    .replace(/["' \r\n]/g, '-');
  // Both, since the lower case of a sigma depends on what follows it.
  return dashed.toLowerCase().toUpperCase();
}

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
