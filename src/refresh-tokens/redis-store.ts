import { RedisUnavailable } from '../redis/faults.ts';
import {
  type ClaimScript,
  type RedisRecords,
  type RedisScript,
  defineClaim,
  defineScript,
  slotOf,
} from '../redis/redis.ts';
import type { KindName, KnownTokens, NextRecord, Records, Seen } from './protocol.ts';
import { TokenStore, type TokenStoreOptions } from './token-store.ts';
import type { TokenDigest } from './token-values.ts';

const clock = `
local time = redis.call('TIME')
local micros = string.format('%.0f', time[1] * 1000000 + time[2])
`;

/** KEYS: records. Returns the clock, then their texts. */
const readLua = `${clock}
local texts = redis.call('MGET', unpack(KEYS))
for i = 1, #texts do texts[i] = texts[i] or '' end
return {micros, unpack(texts)}
`;

/**
 * KEYS: record, index of known tokens by expiry. ARGV: text seen, next text, milliseconds to keep it, id, expiry, and the
 * expiry before which the index needs no entry; all but the id may be empty. Returns nothing, or the clock and the current text.
 */
const replaceLua = `${clock}
local seen = redis.call('GET', KEYS[1]) or ''
if seen ~= ARGV[1] then return {micros, seen} end
if ARGV[2] == '' then redis.call('DEL', KEYS[1])
elseif ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
if ARGV[5] ~= '' then redis.call('ZADD', KEYS[2], ARGV[5], ARGV[4])
else redis.call('ZREM', KEYS[2], ARGV[4]) end
if ARGV[6] ~= '' then redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. ARGV[6]) end
return {}
`;

interface TokenScripts {
  readonly read: RedisScript;
  /** It changes nothing once its caller has been answered. */
  readonly replace: ClaimScript;
}

/** `edit` lets tests break a script on purpose. Exported for its tests. */
export function buildTokenScripts(edit: (lua: string, name: string) => string = (lua) => lua): TokenScripts {
  return {
    read: defineScript('token-read', edit(readLua, 'read')),
    replace: defineClaim('token-replace', edit(replaceLua, 'replace')),
  };
}

interface RedisTokenStoreOptions extends TokenStoreOptions, RedisRecords {
  /** Default `buildTokenScripts()`. */
  readonly scripts?: TokenScripts;
}

/**
 * Enough to spread over the nodes of a Cluster, few enough to walk through all of them. Never change it: records would be
 * looked for in other buckets.
 */
const buckets = 64;
/** Tokens that are listed at a time. */
const chunk = 200;

/** Records that all replicas share: in a single Redis, one with Sentinels, or a Cluster. */
class SharedRecords implements Records {
  readonly #options: Required<RedisRecords> & { readonly scripts: TokenScripts };
  readonly #retentionMs: number | 'keep';

  constructor({ retentionMs, ...options }: RedisTokenStoreOptions) {
    this.#options = { keyPrefix: 'shopward', replicas: 0, scripts: buildTokenScripts(), ...options };
    this.#retentionMs = retentionMs;
  }

  async read(kind: KindName, id: string): Promise<Seen> {
    return toSeen(await this.#read([this.#keyOf(kind, id)]));
  }

  async replace(
    kind: KindName,
    id: string,
    seen: string,
    { text, keptMs, expiresAtMs }: NextRecord,
    isConfirmed: boolean,
  ): Promise<Seen | 'replaced'> {
    const { redis, scripts, replicas } = this.#options;
    const isEndless = keptMs === Number.POSITIVE_INFINITY;
    const isListed = expiresAtMs !== undefined && text !== '';
    const overMs = isListed && this.#retentionMs !== 'keep' ? Date.now() - this.#retentionMs - dayMs : '';
    const args = [seen, text, isEndless ? '' : Math.ceil(keptMs), id, isListed ? expiresAtMs : '', overMs];
    const keys = [this.#keyOf(kind, id), this.#indexOf(bucketFor(id))];
    const wanted = isConfirmed ? replicas : 0;
    const { reply, replicas: confirmed } = await redis.runClaim(scripts.replace, keys, args, wanted);
    if (!Array.isArray(reply)) throw new RedisUnavailable('error');
    if (reply.length > 0) return toSeen(reply.map(String));
    if (confirmed < wanted) throw new RedisUnavailable('noreplicas');
    return 'replaced';
  }

  async *known(untilMs?: number): AsyncIterable<KnownTokens> {
    for (let bucket = 0; bucket < buckets; bucket += 1) {
      // The whole index is read before anything is deleted, which would move the offsets.
      const found: TokenDigest[][] = [];
      for (let offset = 0; ; offset += chunk) {
        const range = ['-inf', untilMs ?? '+inf', 'LIMIT', offset, chunk];
        const reply = await this.#options.redis.command('ZRANGEBYSCORE', this.#indexOf(bucket), ...range);
        const tokens = Array.isArray(reply) ? reply.map((token) => String(token) as TokenDigest) : [];
        if (tokens.length > 0) found.push(tokens);
        if (tokens.length < chunk) break;
      }
      for (const tokens of found) {
        const [micros, ...texts] = await this.#read(tokens.map((token) => this.#keyOf('token', token)));
        const all = tokens.map((token, i) => ({ token, text: texts[i] ?? '' }));
        yield { nowMicros: Number(micros), tokens: all.filter(({ text }) => text !== '') };
      }
    }
  }

  keepAnswer(token: TokenDigest, text: string, forMs: number): Promise<unknown> {
    return this.#options.redis.command('SET', this.#answerOf(token), text, 'PX', Math.ceil(forMs));
  }

  async answerOf(token: TokenDigest): Promise<string | null> {
    const text = await this.#options.redis.command('GET', this.#answerOf(token));
    return text === null ? null : String(text);
  }

  async #read(keys: readonly string[]): Promise<readonly string[]> {
    const { redis, scripts } = this.#options;
    const reply = await redis.runScript(scripts.read, keys, []);
    if (!Array.isArray(reply) || reply.length < 2) throw new RedisUnavailable('error');
    return reply.map(String);
  }

  #keyOf(kind: KindName, id: string): string {
    return `${this.#slot(bucketFor(id))}:${kind}:${id}`;
  }

  #indexOf(bucket: number): string {
    return `${this.#slot(bucket)}:known`;
  }

  #answerOf(token: TokenDigest): string {
    return `${this.#slot(bucketFor(token))}:answer:${token}`;
  }

  #slot(bucket: number): string {
    return slotOf(this.#options.keyPrefix, 'tokens', bucket);
  }
}

/** Entries leave the index a day late, since it is trimmed by this process's clock. */
const dayMs = 86_400_000;

/** Each id is base64url of at least 96 random or keyed bits. */
function bucketFor(id: string): number {
  return Buffer.from(id, 'base64url').readUInt32BE(0) % buckets;
}

function toSeen([micros, text = '']: readonly string[]): Seen {
  return { text, nowMicros: Number(micros) };
}

/** The store that all replicas share. */
export class RedisTokenStore extends TokenStore {
  constructor(options: RedisTokenStoreOptions) {
    super(new SharedRecords(options), options);
  }
}
