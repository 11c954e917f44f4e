import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Component,
  type ComponentLog,
  type Health,
  type HealthDetail,
  type MetricSpec,
  counter,
  gauge,
  total,
} from '../lib/component.ts';
import type { RedisCredentials } from './clients.ts';
import { type ConnectRedisOptions, connectRedis } from './connect-redis.ts';
import { RedisUnavailable, cureOf } from './faults.ts';
import { type Member, Membership, type RecordForms, guardRedis, membersKeys, validMs } from './membership.ts';
import type { Redis, RedisCalls, RedisStatus } from './redis.ts';
import type { Health as StoreHealth, HealthLine } from './store-health.ts';

export interface RedisStore extends Component {
  /** For features that need no agreement between replicas. */
  readonly redis: Redis;
  /** For entity tags: refuses until it is known what the other replicas track. */
  readonly forTags: RedisCalls;
  /** Whether another replica forwards unchecked what this one checks. `line` is one of `Member.tracked`. */
  isUntracked(line: string): boolean;
  /** For refresh tokens: refuses while the tokens in the store are digested by another key. */
  readonly forTokens: RedisCalls;
  /** The form in which records are written, and those that are read. */
  form(): number;
  readonly forms: RecordForms;
  /** Milliseconds of a cold start, in which a new store gives out no tags: the longest lease of all replicas. */
  coldStartMs(): number;
  health(): Health;
  /** How many processes share the store, this one included; null: it cannot be reached. */
  sharing(): Promise<number | null>;
  /** For connections that are opened from now on. */
  useCredentials(credentials: RedisCredentials): void;
  /** Calls `listener` whenever the data may be another (a first connection, an emptied store, a failover). */
  onNewData(listener: () => void): void;
}

/** Milliseconds that the start waits for Redis; without it the proxy starts all the same. */
const startWaitMs = 2_000;
const evictingText = 'the Redis of store.url may evict records: its maxmemory-policy must be noeviction';
/** Share of `maxmemory` from which on `/readyz` and the console say that Redis fills up. */
const fullShare = 0.8;

type RedisStoreOptions = Required<Pick<ConnectRedisOptions, 'url' | 'timeoutMs' | 'replicas'>> &
  Pick<ConnectRedisOptions, 'credentials'> & {
    readonly prefix: string;
    /** Called with a server's time and the time of the request (milliseconds since the epoch). */
    readonly onTime?: (shownMs: number, askedMs: number) => void;
    /** What the replicas that share the store have to agree on. */
    readonly member: Member;
  };

/** Opens the store that all features share. Connects in the background; throws only for a malformed address. */
export function openRedisStore(options: RedisStoreOptions, log: ComponentLog): RedisStore {
  const { member, prefix, onTime, ...connection } = options;
  const { replicas } = connection;
  const listeners: (() => void)[] = [];
  const announce = () => {
    for (const listener of listeners) listener();
  };
  const redis = connectRedis({
    ...connection,
    onLine: (about, line) => writeLine(log, about, line),
    onFacts(facts, before) {
      if (facts.timeMs !== undefined) onTime?.(facts.timeMs, facts.askedMs);
      if (facts.replicationIds === before?.replicationIds) return;
      membership.announce().catch(() => {});
      announce();
    },
  });
  const membership = new Membership({
    redis,
    prefix,
    member,
    onProblems: (problems) =>
      problems.length === 0
        ? log.info({ event: 'store-settings' }, 'the replicas that share the store agree again')
        : log.error({ event: 'store-settings', problems }, 'replicas that share the store do not agree'),
    onNewStore: announce,
  });
  return {
    redis,
    forTags: guardRedis(redis, () => membership.refusesTags()),
    forTokens: guardRedis(redis, () => membership.refusesTokens()),
    isUntracked: (line) => membership.isUntracked(line),
    form: () => membership.form(),
    forms: member.forms,
    coldStartMs: () => membership.coldStartMs(),
    onNewData: (listener) => void listeners.push(listener),
    // Counts an ended process for ten seconds and its lease, then until another removes it.
    sharing: () => redis.command('HLEN', membersKeys(prefix)[0]).then(Number, () => null),
    useCredentials: (credentials) => redis.useCredentials(credentials),
    start: () => start(redis, membership, log),
    metrics: storeMetrics(redis, membership),
    name: 'store',
    title: 'Store',
    health: () => storeHealth(redis, replicas, membership),
    async close() {
      membership.close();
      await redis.close();
    },
  };
}

async function start(redis: Redis, membership: Membership, log: ComponentLog): Promise<void> {
  // Rejects only where the policy evicts: leases that vanish under memory pressure are worse than none.
  const isReached = await redis.ready(startWaitMs).catch((fault: unknown) => {
    const isEvicting = fault instanceof RedisUnavailable && fault.word === 'evicting';
    throw isEvicting ? new Error(evictingText, { cause: fault }) : fault;
  });
  if (!isReached) return log.error({ event: 'store' }, 'Redis cannot be reached yet; starting without it');
  await membership.announce().catch(() => {});
  if (membership.agreement()?.passesBy !== true) return;
  log.info({ event: 'store-settings' }, 'a replica tracks more: starting in 8 s, when it knows this process');
  await sleep(validMs);
}

function writeLine(
  log: ComponentLog,
  about: 'store' | 'replicas',
  { status, cause, calls, failed }: HealthLine,
): void {
  const word = cause?.word;
  const subject = about === 'store' ? 'Redis' : 'confirmation by the replicas of Redis';
  const words = { event: about === 'store' ? 'store' : 'store-replicas', status, word, calls, failed };
  if (status === 'ready') log.info(words, `${subject} is ready`);
  else log.error(words, `${subject} is ${status}${causeText(cause)}`);
}

function storeMetrics(redis: Redis, membership: Membership): MetricSpec[] {
  const ofStore = (name: string, help: string, combine: 'min' | 'max', value: () => number) =>
    gauge(`shopward_store_${name}`, help, combine, value);
  const memory = () => redis.status().facts?.memory;
  const claims = () => redis.status().claims;
  return [
    ofStore('up', 'Whether Redis can be used.', 'min', () => (redis.state().status === 'ready' ? 1 : 0)),
    ofStore(
      'replicas_confirmed',
      'Replicas that confirmed the last claim; 0 also if none is asked.',
      'min',
      () => claims().lastConfirmed ?? 0,
    ),
    ofStore(
      'memory_used_bytes',
      'Memory that Redis uses, of its fullest node.',
      'max',
      () => memory()?.usedBytes ?? 0,
    ),
    ofStore(
      'memory_max_bytes',
      'Memory that Redis may use (maxmemory); 0: no limit.',
      'max',
      () => memory()?.maxBytes ?? 0,
    ),
    ofStore(
      'disagreements',
      'Settings in which replicas that share the store differ.',
      'max',
      () => membership.agreement()?.problems.length ?? 0,
    ),
    counter(
      'shopward_store_claims',
      'Claims of writes and refreshes that Redis answered.',
      () => claims().made,
    ),
    counter(
      'shopward_store_claim_seconds',
      'Time that Redis took for all claims.',
      () => claims().totalMs / 1000,
    ),
    counter(
      'shopward_store_unconfirmed_claims',
      'Claims that fewer replicas confirmed than store.replicas.',
      () => claims().unconfirmed,
    ),
  ];
}

/** `down` where it cannot be used: requests that need it then get 503. */
function storeHealth(redis: Redis, replicas: number, membership: Membership): Health {
  const state = redis.state();
  const status = redis.status();
  const { claims, facts, replication } = status;
  const { usedBytes = 0, maxBytes = 0 } = facts?.memory ?? {};
  const memory = maxBytes === 0 ? megabytes(usedBytes) : `${megabytes(usedBytes)} of ${megabytes(maxBytes)}`;
  const claimMs = claims.made === 0 ? null : Math.round(claims.totalMs / claims.made);
  const details: HealthDetail[] = [
    { label: 'kind', value: `Redis, ${redis.kind}` },
    { label: 'since', value: state.since, unit: 'time' },
    { label: 'memory', value: memory },
    total('claims', claims.made),
    { label: 'time of a claim', value: claimMs, unit: 'ms', combine: 'max' },
  ];
  if (replication !== undefined) {
    const confirmed = claims.lastConfirmed ?? null;
    details.push(
      { label: 'replicas that confirmed', value: confirmed },
      total('unconfirmed', claims.unconfirmed),
    );
  }
  const reasons = storeReasons(state, status, replicas, membership);
  if (reasons.length === 0) return { status: 'ok', reasons, text: 'Redis answers', details };
  return { status: state.status === 'ready' ? 'degraded' : 'down', reasons, details };
}

const megabytes = (octets: number) => `${Math.round(octets / 1024 / 1024)} MiB`;

/** Problems of the store, for `/readyz` and the console, the most pressing first. */
function storeReasons(
  { status, cause }: StoreHealth,
  { replication, facts }: RedisStatus,
  replicas: number,
  membership: Membership,
): readonly string[] {
  const reasons: string[] = [];
  if (status !== 'ready') reasons.push(`Redis is ${status}${causeText(cause)}`);
  if (replication?.status === 'away') {
    const lack = `Redis${causeText(replication.cause)} (store.replicas is ${replicas})`;
    reasons.push(`${lack}; tracked writes and refreshes get 503`);
  }
  const { usedBytes = 0, maxBytes = 0 } = facts?.memory ?? {};
  const share = maxBytes === 0 ? 0 : usedBytes / maxBytes;
  if (share >= fullShare)
    reasons.push(
      `Redis is ${Math.round(share * 100)}% full; when it is full, tracked writes and refreshes get 503`,
    );
  if (status === 'ready') reasons.push(...membership.overdue());
  for (const problem of membership.agreement()?.problems ?? []) reasons.push(`store: ${problem}`);
  return reasons;
}

function causeText(cause: StoreHealth['cause']): string {
  if (cause === undefined) return '';
  const cure = cureOf(cause);
  return `: ${cause.text ?? cause.word}${cure === undefined ? '' : `; ${cure}`}`;
}
