import { RedisUnavailable } from '../redis/faults.ts';
import { bucketOf, type RedisArgument, type RedisRecords, runConfirmed, slotOf } from '../redis/redis.ts';
import { buildTokenScripts, type TokenScripts } from './lua.ts';
import type * as port from './token-store.ts';
import { type FamilyId, type SubjectDigest, standingOf, strayMs, type TokenDigest } from './token-store.ts';

interface RedisTokenStoreOptions extends port.TokenStoreOptions, RedisRecords {
  /** Default `buildTokenScripts()`. */
  readonly scripts?: TokenScripts;
}

/**
 * Enough to spread over the nodes of a Cluster, few enough to walk through all of them. Never change it: records would be
 * looked for in other buckets.
 */
const buckets = 64;
/** Of each bucket: a limit over all of them would need a second slot. */
const usualBook: port.BookLimits = { perSubject: 4, inAll: 256 };
/** Records that are listed or deleted at a time. */
const chunk = 200;

type Reply = readonly string[];

/** The store that all replicas share: a single Redis, one with Sentinels, or a Cluster. */
export class RedisTokenStore implements port.TokenStore {
  readonly #options: Required<RedisRecords> & { readonly scripts: TokenScripts };
  /** First arguments of every script on a token, on a subject or a family. */
  readonly #tokenTimes: readonly RedisArgument[];
  readonly #times: readonly RedisArgument[];

  constructor(options: RedisTokenStoreOptions) {
    this.#options = { keyPrefix: 'shopward', replicas: 0, scripts: buildTokenScripts(), ...options };
    const { perSubject, inAll } = options.book ?? usualBook;
    this.#times = [String(options.retentionMs), options.lifetimeMs];
    this.#tokenTimes = [...this.#times, strayMs(options.lifetimeMs), perSubject, inAll];
  }

  async claim(token: TokenDigest, op: string, holdMs: number): Promise<port.ClaimAnswer> {
    return readClaim(await this.#onToken('claim', token, op, holdMs));
  }

  async confirm(token: TokenDigest, op: string, holdMs: number): Promise<'confirmed' | 'lost'> {
    const args = [...this.#tokenTimes, packDigest(token), op, holdMs];
    const keys = this.#tokenKeys(token);
    const { redis, scripts, replicas } = this.#options;
    const { reply, isConfirmed } = await runConfirmed(redis, scripts.confirm, keys, args, replicas);
    const [answer] = toReply(reply);
    if (answer === 'lost') return answer;
    if (answer !== 'confirmed') throw new RedisUnavailable('error');
    if (!isConfirmed) throw new RedisUnavailable('noreplicas');
    return answer;
  }

  async release(token: TokenDigest, op: string): Promise<void> {
    await this.#onToken('release', token, op);
  }

  async markIndeterminate(token: TokenDigest, op: string): Promise<void> {
    await this.#onToken('markIndeterminate', token, op);
  }

  async markUsed(
    token: TokenDigest,
    { owner, family, isProven, answer }: port.Use,
  ): Promise<FamilyId | 'full'> {
    const args = [
      packOwner(owner),
      family,
      isProven ? '1' : '0',
      answer?.sealed ?? '',
      answer?.leewayMs ?? 0,
    ];
    const [reply] = await this.#onToken('markUsed', token, ...args);
    return reply === 'full' ? 'full' : ((reply ?? family) as FamilyId);
  }

  async record(
    token: TokenDigest,
    { subject, generation, family, lifetimeMs }: port.IssuedRecord,
  ): Promise<void> {
    await this.#onToken('record', token, packOwner(subject), generation, family, lifetimeMs);
  }

  async addToSubject(subject: SubjectDigest, token: TokenDigest, lifetimeMs: number): Promise<port.Standing> {
    const [generation, nowMicros] = await this.#onSubject('add', subject, packDigest(token), lifetimeMs);
    return { generation: Number(generation), nowMicros: Number(nowMicros) };
  }

  async generationOf(subject: SubjectDigest): Promise<number> {
    const [generation] = await this.#onSubject('generation', subject);
    return Number(generation);
  }

  async endFamily(family: FamilyId, lifetimeMs: number): Promise<void> {
    await this.#onFamily('endFamily', family, lifetimeMs);
  }

  async isFamilyEnded(family: FamilyId): Promise<boolean> {
    const [endedAt] = await this.#onFamily('familyEnd', family);
    return endedAt !== '';
  }

  async noteRevocation(token: TokenDigest, by: SubjectDigest, op: string): Promise<port.NoteAnswer> {
    const [answer] = await this.#onToken('noteRevocation', token, packDigest(by), op);
    if (answer === 'noted' || answer === 'foreign' || answer === 'full') return answer;
    throw new RedisUnavailable('error');
  }

  async settleRevocation(token: TokenDigest, by: SubjectDigest, op: string, stands: boolean): Promise<void> {
    await this.#onToken('settleRevocation', token, packDigest(by), op, stands ? '1' : '0');
  }

  async noteRevocationOfAll(subject: SubjectDigest, op: string): Promise<number> {
    const [noted] = await this.#onSubject('noteAll', subject, op);
    return Number(noted);
  }

  async settleRevocationOfAll(
    subject: SubjectDigest,
    op: string,
    noted: number,
    stands: boolean,
  ): Promise<void> {
    await this.#onSubject('settleAll', subject, op, noted, stands ? '1' : '0');
  }

  async *list(subject?: SubjectDigest): AsyncIterable<port.TokenEntry> {
    const remembered = {
      generationOf: remember((owner: SubjectDigest) => this.generationOf(owner)),
      isFamilyEnded: remember((family: FamilyId) => this.isFamilyEnded(family)),
    };
    for await (const tokens of this.#digests(subject)) {
      const entries = await Promise.all(tokens.map((token) => this.#look(token, remembered)));
      for (const entry of entries) if (entry !== null) yield entry;
    }
  }

  async purgeExpired(subject?: SubjectDigest): Promise<number> {
    let purged = 0;
    for await (const tokens of this.#digests(subject, Date.now() + clockSlackMs)) {
      const replies = await Promise.all(tokens.map((token) => this.#onToken('purge', token)));
      for (const [i, [isPurged, packed]] of replies.entries()) {
        if (isPurged !== '1') continue;
        purged += 1;
        const owner = packed ? unpackDigest<SubjectDigest>(packed) : subject;
        if (owner === undefined) continue;
        await this.#options.redis.command(
          'ZREM',
          this.#subjectKeys(owner)[1],
          packDigest(tokens[i] as TokenDigest),
        );
      }
    }
    return purged;
  }

  async #look(
    token: TokenDigest,
    remembered: Parameters<typeof standingOf>[0],
  ): Promise<port.TokenEntry | null> {
    const reply = await this.#onToken('look', token);
    if (reply.length === 0) return null;
    const [own = '', owner = '', generation = '0', root = '', issued, expires, used, revoked] = reply;
    const roots = readRoots(owner, generation, root);
    const { isOver } = await standingOf(remembered, roots);
    return {
      token,
      subject: roots.subject,
      family: roots.family,
      state: isOver && own !== 'used' ? 'revoked' : (own as port.TokenState),
      issuedAtMs: Number(issued),
      expiresAtMs: Number(expires),
      usedAtMs: used ? Number(used) : null,
      revokedAtMs: revoked ? Number(revoked) : null,
    };
  }

  /** Digests of tokens in chunks: the subject's or all, with `untilMs` only those that expire by then. */
  async *#digests(subject: SubjectDigest | undefined, untilMs?: number): AsyncIterable<TokenDigest[]> {
    const indexes =
      subject === undefined
        ? Array.from({ length: buckets }, (_, bucket) => `${this.#slot(bucket)}:expiry`)
        : [this.#subjectKeys(subject)[1]];
    for (const index of indexes) {
      // The whole index is read before anything is deleted, which would move the offsets.
      const all: TokenDigest[][] = [];
      for (let offset = 0; ; offset += chunk) {
        const range = ['-inf', untilMs ?? '+inf', 'LIMIT', offset, chunk];
        const reply = await this.#options.redis.command('ZRANGEBYSCORE', index, ...range);
        const tokens = toReply(reply).map((packed) => unpackDigest<TokenDigest>(packed));
        if (tokens.length > 0) all.push(tokens);
        if (tokens.length < chunk) break;
      }
      yield* all;
    }
  }

  #onToken(name: keyof TokenScripts, token: TokenDigest, ...args: RedisArgument[]): Promise<Reply> {
    return this.#run(name, this.#tokenKeys(token), [...this.#tokenTimes, packDigest(token), ...args]);
  }

  #onSubject(name: keyof TokenScripts, subject: SubjectDigest, ...args: RedisArgument[]): Promise<Reply> {
    return this.#run(name, this.#subjectKeys(subject), [...this.#times, ...args]);
  }

  #onFamily(name: keyof TokenScripts, family: FamilyId, ...args: RedisArgument[]): Promise<Reply> {
    const bucket = Buffer.from(family, 'base64url').readUInt32BE(0) % buckets;
    return this.#run(name, [`${this.#slot(bucket)}:family:${family}`], [...this.#times, ...args]);
  }

  async #run(name: keyof TokenScripts, keys: string[], args: readonly RedisArgument[]): Promise<Reply> {
    const { redis, scripts } = this.#options;
    return toReply(await redis.runScript(scripts[name], keys, args));
  }

  #tokenKeys(token: TokenDigest): string[] {
    const slot = this.#slot(bucketOf(token, buckets));
    const packed = packDigest(token);
    return [`${slot}:${packed}`, `${slot}:expiry`, `${slot}:answer:${packed}`, `${slot}:book`];
  }

  #subjectKeys(subject: SubjectDigest): [string, string] {
    const slot = this.#slot(bucketOf(subject, buckets));
    const packed = packDigest(subject);
    return [`${slot}:subject:${packed}`, `${slot}:of:${packed}`];
  }

  #slot(bucket: number): string {
    return slotOf(this.#options.keyPrefix, 'tokens', bucket);
  }
}

/** The script decides by Redis' clock; this slack only bounds which records it is asked about. */
const clockSlackMs = 60_000;

/** A digest as base64url, a third shorter than hexadecimal: a record is mostly digests. Exported for its tests. */
export function packDigest(digest: TokenDigest | SubjectDigest): string {
  return Buffer.from(digest, 'hex').toString('base64url');
}

function packOwner(owner: SubjectDigest | null): string {
  return owner === null ? '' : packDigest(owner);
}

function unpackDigest<Digest extends TokenDigest | SubjectDigest>(packed: string): Digest {
  return Buffer.from(packed, 'base64url').toString('hex') as Digest;
}

function remember<Key, Value>(ask: (key: Key) => Value): (key: Key) => Value {
  const known = new Map<Key, Value>();
  return (key) => {
    const value = known.has(key) ? (known.get(key) as Value) : ask(key);
    known.set(key, value);
    return value;
  };
}

function toReply(reply: unknown): Reply {
  return Array.isArray(reply) ? reply.map(String) : [];
}

function readClaim([kind, ...rest]: Reply): port.ClaimAnswer {
  switch (kind) {
    case 'granted': {
      const [subject = '', generation = '0', family = '', known, ...revokedBy] = rest;
      return {
        kind,
        ...readRoots(subject, generation, family),
        isKnown: known === '1',
        revokedBy: revokedBy.map((by) => unpackDigest<SubjectDigest>(by)),
      };
    }
    case 'used': {
      const [subject = '', generation = '0', family = '', lifetime, usedFor, sealed] = rest;
      return {
        kind,
        ...readRoots(subject, generation, family),
        lifetimeMs: Number(lifetime),
        usedForMs: Number(usedFor),
        sealed: sealed || null,
      };
    }
    case 'in-exchange':
      return { kind, remainingMs: Number(rest[0]), isIndeterminate: rest[1] === '1' };
    case 'revoked':
    case 'expired':
      return { kind };
    default:
      throw new RedisUnavailable('error');
  }
}

function readRoots(subject: string, generation: string, family: string): port.Roots {
  return {
    subject: subject === '' ? null : unpackDigest<SubjectDigest>(subject),
    generation: Number(generation),
    family: family === '' ? null : (family as FamilyId),
  };
}
