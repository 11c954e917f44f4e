import fc from 'fast-check';
import * as localModule from '../../../src/url-resolver/local-cache.ts';
import * as cacheModule from '../../../src/url-resolver/mapping-cache.ts';
import { startCounts } from '../../../src/url-resolver/options.ts';
import type { Partition } from '../../../src/url-resolver/partition.ts';
import type { Purge, PurgeLog } from '../../../src/url-resolver/purges.ts';
import * as followerModule from '../../../src/url-resolver/purges.ts';
import type { LookupOutcome, UpstreamSource } from '../../../src/url-resolver/source.ts';

/** The code under test. A test may replace a part by a broken one. */
export interface Code {
  readonly follower: typeof followerModule;
  readonly local: typeof localModule;
  readonly cache: typeof cacheModule;
  /** The number of purges that the log keeps. */
  readonly room: number;
}

export const code: Code = { follower: followerModule, local: localModule, cache: cacheModule, room: 3 };

const urls = ['/a', '/a/b', '/c'] as const;
const purges: readonly Purge[] = ['all', { prefix: '/a' }, ...urls.map((url) => ({ url }))];
const isCovered = (purge: Purge, url: string) =>
  purge === 'all' || ('url' in purge ? purge.url === url : url.startsWith(purge.prefix));

const kinds = ['ask', 'ask', 'ask', 'deliver', 'deliver', 'deliver', 'purge', 'read'] as const;
type Kind = (typeof kinds)[number] | 'empty' | 'fail over' | 'deliver all';
export type Step = readonly [kind: Kind, process: number, which: number];

export const steps = fc.array(
  fc.tuple(fc.constantFrom<Kind>(...kinds, 'empty', 'fail over'), fc.nat(1), fc.nat(1000)),
  { minLength: 10, maxLength: 60 },
);

const deliverAll: Step = ['deliver all', 0, 0];
const purgeOf = (url: string): Step => [
  'purge',
  0,
  purges.findIndex((one) => one !== 'all' && 'url' in one && one.url === url),
];
const purgeAll: Step = ['purge', 0, 0];

/** Sequences that random ones seldom reach. */
export const traces: readonly (readonly Step[])[] = [
  // A purge of everything between two purges of another URL.
  [
    purgeOf('/c'),
    deliverAll,
    ['ask', 0, 0],
    deliverAll,
    purgeAll,
    deliverAll,
    purgeOf('/c'),
    deliverAll,
    ['ask', 0, 0],
  ],
  // A purge of a URL after one of a prefix.
  [['purge', 0, 1], deliverAll, ['ask', 0, 1], deliverAll, purgeOf('/a/b'), deliverAll, ['ask', 0, 1]],
  // Two purges are read together.
  [
    ...([['ask', 1, 0], deliverAll, purgeOf('/a'), deliverAll, purgeOf('/c'), deliverAll] as Step[]),
    ...([['read', 1, 0], deliverAll, ['ask', 1, 0]] as Step[]),
  ],
  // The log is read after it has dropped a purge.
  [
    ...([
      ['ask', 1, 0],
      deliverAll,
      purgeOf('/a'),
      deliverAll,
      purgeOf('/a/b'),
      deliverAll,
      purgeOf('/c'),
    ] as Step[]),
    ...([deliverAll, purgeOf('/c'), deliverAll, ['read', 1, 0], deliverAll, ['ask', 1, 0]] as Step[]),
  ],
];

/** A purge: for each URL that it covers, the lowest version that may be served once the purge is known. */
type Made = ReadonlyMap<string, number>;

/** Two processes, a store and a shop. Each message between them waits until a step delivers it, in any order. */
class World {
  readonly #code: Code;
  /** Version of each URL's mapping at the shop; it changes before each purge. */
  readonly #shop = new Map<string, number>(urls.map((url) => [url, 0]));
  /** The newest entry comes first. */
  #log: readonly string[] = [];
  #before = { log: [] as readonly string[], made: 0 };
  #travelling: (() => void)[] = [];
  #made: Made[] = [];
  readonly processes: ReturnType<World['createProcess']>[];
  readonly violations: string[] = [];

  constructor(given: Code) {
    this.#code = given;
    this.processes = [this.createProcess(), this.createProcess()];
  }

  createProcess() {
    const { follower: followers, local: locals, cache: caches } = this.#code;
    const follower = new followers.PurgeFollower(this.#store(), () => {});
    const local = new locals.LocalCache(100, follower.purges);
    const hour = 3_600_000;
    const lifetimes = { ttlMs: hour, notFoundTtlMs: hour, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 };
    const source = {
      acquire: () => ({ granted: undefined, release() {} }),
      ask: (url: string): Promise<LookupOutcome> => {
        const mapping = { entityType: 'merchants', entityId: String(this.#shop.get(url)) };
        return this.#travel({ kind: 'found', mapping, keep: true });
      },
    } as unknown as UpstreamSource;
    const cache = new caches.MappingCache({
      ...{ local, source, lifetimes, purges: follower.purges, staleWaitMs: hour, now: () => 0 },
      ...{ tagOf: () => '', counts: startCounts(), onFailure: () => {} },
    });
    return { follower, cache, floor: new Map<string, number>() };
  }

  /** Resolves to `value` when a step delivers it. The value is computed now. */
  #travel<T>(value: T): Promise<T> {
    return new Promise((resolve) => this.#travelling.push(() => resolve(value)));
  }

  #store(): PurgeLog {
    return {
      add: (entry) => {
        this.#before = { log: this.#log, made: this.#made.length };
        this.#log = [entry, ...this.#log].slice(0, this.#code.room);
        return this.#travel(undefined);
      },
      read: (first, last) => this.#travel(this.#log.slice(first, last + 1)),
    };
  }

  async start(): Promise<void> {
    const started = this.processes.map(({ follower }) => follower.start());
    await this.deliverAll();
    await Promise.all(started);
  }

  async take([kind, who, which]: Step): Promise<void> {
    const one = this.processes[who] as World['processes'][number];
    switch (kind) {
      case 'ask':
        return this.#ask(one, urls[which % urls.length] as string);
      case 'deliver':
        return this.#deliver(which);
      case 'deliver all':
        return this.deliverAll();
      case 'purge':
        return this.#purge(one, purges[which % purges.length] as Purge);
      case 'read':
        return this.#read(one);
      case 'empty':
        this.#log = [];
        return;
      case 'fail over':
        await this.deliverAll();
        this.#log = this.#before.log;
        this.#made = this.#made.slice(0, this.#before.made);
        for (const each of this.processes) this.#read(each);
        return this.deliverAll();
    }
  }

  #ask(one: World['processes'][number], url: string): void {
    const floor = one.floor.get(url) ?? 0;
    const lookup = { url, key: url, client: 'c', partition: { locale: 'en' } as Partition };
    void Promise.resolve(one.cache.find(lookup)).then((result) => {
      const version = result.kind === 'known' ? Number(result.mapping.entityId) : -1;
      if (version < floor) this.violations.push(`${url}: version ${version} after a purge at ${floor}`);
    });
  }

  #purge(one: World['processes'][number], purge: Purge): void {
    for (const url of urls) this.#shop.set(url, (this.#shop.get(url) ?? 0) + 1);
    const purged = one.follower.purge(purge);
    this.#made.push(new Map([...this.#shop].filter(([url]) => isCovered(purge, url))));
    const made = [...this.#made];
    void purged.then(() => this.#learn(one, made));
  }

  #read(one: World['processes'][number]): void {
    const made = [...this.#made];
    void one.follower.catchUp().then(() => this.#learn(one, made));
  }

  #learn(one: World['processes'][number], made: readonly Made[]): void {
    for (const least of made) {
      for (const [url, version] of least) one.floor.set(url, Math.max(version, one.floor.get(url) ?? 0));
    }
  }

  async #deliver(which: number): Promise<void> {
    const [next] = this.#travelling.splice(which % Math.max(1, this.#travelling.length), 1);
    next?.();
    await new Promise((resolve) => setImmediate(resolve));
  }

  async deliverAll(): Promise<void> {
    do await this.#deliver(0);
    while (this.#travelling.length > 0);
  }

  stop(): void {
    for (const { follower } of this.processes) follower.stop();
  }
}

/** Runs the steps. Returns the answers that break the rule. */
export async function violationsOf(taken: readonly Step[], given: Code): Promise<readonly string[]> {
  const world = new World(given);
  await world.start();
  for (const step of taken) await world.take(step);
  await world.deliverAll();
  world.stop();
  return world.violations;
}
