import { type Redis, type RedisArgument, RedisUnavailable } from '../redis/redis.ts';
import { buildTokenScripts, type TokenScripts } from './token-scripts.ts';
import type {
  ClaimAnswer,
  IssuedRecord,
  SubjectDigest,
  TokenDigest,
  TokenEntry,
  TokenState,
  TokenStore,
  TokenStoreOptions,
} from './token-store.ts';

export interface RedisTokenStoreOptions extends TokenStoreOptions {
  readonly redis: Redis;
  /** Begins every key; deployments that share a Redis need different ones. Default `shopward`. */
  readonly keyPrefix?: string;
  /** How many replicas must have a claim before it counts (`WAIT`). Default 0. */
  readonly replicas?: number;
  /** Default `buildTokenScripts()`. */
  readonly scripts?: TokenScripts;
}

/** Enough to spread over the nodes of a Cluster, few enough to walk through all of them. Never change it. */
const buckets = 64;
/** Records that the command line reads or deletes at a time. */
const chunk = 200;

type Reply = readonly string[];

/** Refresh tokens shared by every replica, in a Redis of one node, behind Sentinels, or in a Cluster. */
export class RedisTokenStore implements TokenStore {
  readonly kind = 'redis';
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #replicas: number;
  readonly #scripts: TokenScripts;
  /** First arguments of every script. */
  readonly #times: readonly [string, number];

  constructor(options: RedisTokenStoreOptions) {
    this.#redis = options.redis;
    this.#prefix = options.keyPrefix ?? 'shopward';
    this.#replicas = options.replicas ?? 0;
    this.#scripts = options.scripts ?? buildTokenScripts();
    this.#times = [String(options.retentionMs), options.lifetimeMs];
  }

  async claim(token: TokenDigest, op: string, holdMs: number): Promise<ClaimAnswer> {
    const args = [...this.#times, token, op, holdMs];
    if (this.#replicas === 0)
      return readClaim(await this.#redis.runScript(this.#scripts.claim, this.#tokenKeys(token), args));
    const { reply, replicas } = await this.#redis.runScriptAndWait(
      this.#scripts.claim,
      this.#tokenKeys(token),
      args,
      this.#replicas,
    );
    const answer = readClaim(reply);
    if (answer.kind === 'granted' && replicas < this.#replicas) throw new RedisUnavailable('noreplicas');
    return answer;
  }

  async release(token: TokenDigest, op: string): Promise<void> {
    await this.#onToken('release', token, op);
  }

  async markUsed(token: TokenDigest, owner: SubjectDigest | null): Promise<void> {
    await this.#onToken('markUsed', token, owner ?? '');
  }

  async record(token: TokenDigest, { subject, generation, lifetimeMs }: IssuedRecord): Promise<void> {
    await this.#onToken('record', token, subject ?? '', generation, lifetimeMs);
  }

  async addToSubject(subject: SubjectDigest, token: TokenDigest, lifetimeMs: number): Promise<number> {
    return Number(await this.#onSubject('add', subject, token, lifetimeMs));
  }

  async generationOf(subject: SubjectDigest): Promise<number> {
    return Number(await this.#onSubject('generation', subject));
  }

  async noteRevocation(token: TokenDigest, by: SubjectDigest, op: string): Promise<'noted' | 'foreign'> {
    const [answer] = await this.#onToken('noteRevocation', token, by, op);
    return answer === 'noted' ? 'noted' : 'foreign';
  }

  async settleRevocation(token: TokenDigest, by: SubjectDigest, op: string, stands: boolean): Promise<void> {
    await this.#onToken('settleRevocation', token, by, op, stands ? '1' : '0');
  }

  async noteRevocationOfAll(subject: SubjectDigest, op: string): Promise<void> {
    await this.#onSubject('noteAll', subject, op);
  }

  async settleRevocationOfAll(subject: SubjectDigest, op: string, stands: boolean): Promise<void> {
    await this.#onSubject('settleAll', subject, op, stands ? '1' : '0');
  }

  async *list(subject?: SubjectDigest): AsyncIterable<TokenEntry> {
    const generations = new Map<string, Promise<number>>();
    const generationOf = (owner: SubjectDigest) => {
      const known = generations.get(owner) ?? this.generationOf(owner);
      generations.set(owner, known);
      return known;
    };
    for await (const tokens of this.#digests(subject)) {
      const entries = await Promise.all(tokens.map((token) => this.#look(token, generationOf)));
      for (const entry of entries) if (entry !== null) yield entry;
    }
  }

  async purgeExpired(subject?: SubjectDigest): Promise<number> {
    let purged = 0;
    for await (const tokens of this.#digests(subject, Date.now() + clockSlackMs)) {
      const replies = await Promise.all(tokens.map((token) => this.#onToken('purge', token)));
      for (const [i, [isPurged, owner]] of replies.entries()) {
        if (isPurged !== '1') continue;
        purged += 1;
        const index = this.#subjectKeys((owner || subject) as SubjectDigest)[1];
        if (owner || subject) await this.#redis.command('ZREM', index, tokens[i] as string);
      }
    }
    return purged;
  }

  async #look(
    token: TokenDigest,
    generationOf: (owner: SubjectDigest) => Promise<number>,
  ): Promise<TokenEntry | null> {
    const reply = await this.#onToken('look', token);
    if (reply.length === 0) return null;
    const [own = '', owner = '', generation, issued, expires, used, revoked] = reply;
    const subject = owner === '' ? null : (owner as SubjectDigest);
    const isOutdated = subject !== null && Number(generation) < (await generationOf(subject));
    return {
      token,
      subject,
      state: isOutdated && own !== 'used' ? 'revoked' : (own as TokenState),
      issuedAtMs: Number(issued),
      expiresAtMs: Number(expires),
      usedAtMs: used ? Number(used) : null,
      revokedAtMs: revoked ? Number(revoked) : null,
    };
  }

  /** Digests in chunks, from the subject's index or all of them; with `untilMs` those that expire by then. */
  async *#digests(subject: SubjectDigest | undefined, untilMs?: number): AsyncIterable<TokenDigest[]> {
    const indexes =
      subject === undefined
        ? Array.from({ length: buckets }, (_, bucket) => `${this.#slot(bucket)}:expiry`)
        : [this.#subjectKeys(subject)[1]];
    for (const index of indexes) {
      // Read whole before anything is deleted, so that positions do not move.
      const all: TokenDigest[][] = [];
      for (let offset = 0; ; offset += chunk) {
        const range = ['-inf', untilMs ?? '+inf', 'LIMIT', offset, chunk];
        const reply = await this.#redis.command('ZRANGEBYSCORE', index, ...range);
        const tokens = Array.isArray(reply) ? (reply as TokenDigest[]) : [];
        if (tokens.length > 0) all.push(tokens);
        if (tokens.length < chunk) break;
      }
      yield* all;
    }
  }

  async #onToken(name: keyof TokenScripts, token: TokenDigest, ...args: RedisArgument[]): Promise<Reply> {
    const all = [...this.#times, token, ...args];
    const reply = await this.#redis.runScript(this.#scripts[name], this.#tokenKeys(token), all);
    return Array.isArray(reply) ? reply.map(String) : [];
  }

  #onSubject(name: keyof TokenScripts, subject: SubjectDigest, ...args: RedisArgument[]): Promise<unknown> {
    const all = [...this.#times, ...args];
    return this.#redis.runScript(this.#scripts[name], this.#subjectKeys(subject), all);
  }

  #tokenKeys(token: TokenDigest): [string, string] {
    const slot = this.#slot(bucketOf(token));
    return [`${slot}:${token}`, `${slot}:expiry`];
  }

  #subjectKeys(subject: SubjectDigest): [string, string] {
    const slot = this.#slot(bucketOf(subject));
    return [`${slot}:subject:${subject}`, `${slot}:of:${subject}`];
  }

  /** Braces hold our own bucket number only: nobody can choose a slot. */
  #slot(bucket: number): string {
    return `${this.#prefix}:{tokens-${bucket}}`;
  }
}

/** The script judges by Redis' own clock; this only bounds what is looked at. */
const clockSlackMs = 60_000;

/** Digests are spread evenly by their first characters. */
function bucketOf(digest: string): number {
  return Number.parseInt(digest.slice(0, 8), 16) % buckets;
}

function readClaim(reply: unknown): ClaimAnswer {
  if (!Array.isArray(reply)) throw new RedisUnavailable('error');
  const [kind, first = '', generation = '0', ...revokedBy] = reply.map(String);
  switch (kind) {
    case 'granted':
      return {
        kind,
        subject: first === '' ? null : (first as SubjectDigest),
        generation: Number(generation),
        revokedBy: revokedBy as SubjectDigest[],
      };
    case 'in-exchange':
      return { kind, remainingMs: Number(first) };
    case 'used':
    case 'revoked':
    case 'expired':
      return { kind };
    default:
      throw new RedisUnavailable('error');
  }
}
