import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RejectionName } from '../../../src/http/rejection.ts';
import { finish } from '../../../src/lib/slices.ts';
import { RedisUnavailable } from '../../../src/redis/faults.ts';
import type { Redis } from '../../../src/redis/redis.ts';
import { bounds, type RolloutCounts } from '../../../src/rollout/counts.ts';
import { MemoryCounts } from '../../../src/rollout/memory-counts.ts';
import type { ListedRow } from '../../../src/rollout/observed-rows.ts';
import { makeReport } from '../../../src/rollout/report.ts';
import { Rollout } from '../../../src/rollout/rollout.ts';
import { createSharedCounts, lostAfterMs } from '../../../src/rollout/shared-counts.ts';
import { bounds as countBounds, DecisionCounts, dayMs } from '../../../src/telemetry/decision-counts.ts';
import { type SingleRedis, startRedis } from '../../harness/redis-processes.ts';
import { connect } from '../refresh-tokens/stores.ts';

const carts: ListedRow = { method: 'GET', template: '/carts/{id}', scopes: [], observe: true };
const orders: ListedRow = { method: 'POST', template: '/orders', scopes: [], observe: true };
const enforced: ListedRow = { method: 'GET', template: '/enforced', scopes: [], observe: false };

let server: SingleRedis;
let redis: Redis;
let deployments = 0;
const keepMs = 30 * dayMs;

beforeAll(async () => {
  server = await startRedis({ settings: {} });
  redis = await connect(server.url);
});
afterAll(async () => {
  await redis.close();
  await server.close();
});

interface Sent {
  readonly route?: string;
  readonly observed?: RejectionName;
  readonly rejection?: RejectionName;
  readonly userAgent?: string;
  readonly clientId?: string;
  readonly method?: string;
  readonly decision?: string;
}

/** Replicas that share a list and a store. */
class Deployment {
  readonly prefix = `shop${++deployments}`;
  readonly key = `${this.prefix}:{roll-out}`;
  readonly store: RolloutCounts;
  nowMs = Date.now();
  list: readonly ListedRow[] = [carts, orders, enforced];

  constructor(kind: 'memory' | 'Redis') {
    const now = () => this.nowMs;
    this.store = kind === 'memory' ? new MemoryCounts(now) : createSharedCounts(redis, this.prefix, keepMs);
  }

  async replica(store = this.store) {
    const counts = new DecisionCounts({ forRollout: true });
    const rollout = new Rollout({
      ...{ counts, store, intervalMs: 3_600_000, isObserving: () => false, rules: () => 'the rules' },
      ...{ rows: () => this.list, now: () => this.nowMs },
      onFault(fault) {
        throw fault;
      },
    });
    await rollout.start();
    await rollout.flush();
    return {
      rollout,
      note: ({ route = '/carts/{id}', userAgent = 'app/1', clientId, ...more }: Sent) => {
        const decision = more.rejection === undefined ? 'forwarded' : 'refused';
        const record = { route, method: 'GET', decision, clientAddress: '192.0.2.1', ...more };
        const sender = clientId === undefined ? undefined : { subject: 'DE--21', clientId };
        const request = { fields: ['User-Agent', userAgent] };
        counts.note(record as never, this.nowMs, request as never, sender);
      },
      report: async () => finish(makeReport(await rollout.state(), this.list, false, this.nowMs)),
    };
  }

  /** As if the deployment had begun to count, and requests had met its rows, eight days before. */
  async age(): Promise<void> {
    await redis.command('HSET', this.key, 'wholeSince', String(Date.now() - 8 * dayMs));
    const met = (await redis.command('HGETALL', `${this.key}:rows`)) as string[];
    for (let i = 0; i < met.length; i += 2) {
      const row = { ...JSON.parse(String(met[i + 1])), sinceMs: Date.now() - 8 * dayMs };
      await redis.command('HSET', `${this.key}:rows`, String(met[i]), JSON.stringify(row));
    }
  }

  async silence(): Promise<void> {
    await redis.command('HSET', this.key, 'last', String(Date.now() - 2 * lostAfterMs));
  }
}

type Replica = Awaited<ReturnType<Deployment['replica']>>;

/** A request that the row lets pass. */
const order = { route: '/orders', method: 'POST' } as const;
const missing = { observed: 'access-token-missing' } as const;

const rowOf = async ({ report }: Replica, name: string) =>
  (await report()).rows.find(({ row }) => row === name);

describe.each(['memory', 'Redis'] as const)('counts in %s', (kind) => {
  it('add up what replicas refused or would have refused, across a restart', async () => {
    const deployment = new Deployment(kind);
    const [one, other] = [await deployment.replica(), await deployment.replica()];
    one.note({});
    one.note(missing);
    other.note(missing);
    other.note({ ...missing, userAgent: 'browser' });
    other.note({ ...missing, method: 'HEAD' });
    other.note({ rejection: 'access-token-missing' });
    other.note({ rejection: 'keys-unavailable' });
    await one.rollout.close();
    await other.rollout.flush();
    const again = await deployment.replica();
    again.note(missing);
    const row = await rowOf(again, 'GET /carts/{id}');
    expect(row).toMatchObject({ verdict: 'refuses', wouldBeRefused: 5, refused: 1, asked: 6 });
    const observed = row?.reasons.find((reason) => reason.kind === 'observed');
    expect(observed?.clients).toEqual({
      ...{ count: 2, areMore: false },
      named: [
        { application: '', userAgent: 'app/1', requests: 4 },
        { application: '', userAgent: 'browser', requests: 1 },
      ],
    });
    expect(observed?.days).toEqual([0, 0, 0, 0, 0, 0, 5]);
  });

  it('name the application and the User-Agent of a client, cut, and nothing that names a person', async () => {
    const one = await new Deployment(kind).replica();
    one.note({ ...missing, clientId: 'mobile-app' });
    one.note({ ...missing, clientId: `\ud800${'c'.repeat(300)}`, userAgent: 'x'.repeat(300) });
    const report = JSON.stringify(await one.report());
    expect(report).not.toMatch(/DE--21|192\.0\.2\.1/);
    expect(report).toContain('{"application":"mobile-app","userAgent":"app/1","requests":1}');
    expect(report).toMatch(/"\ufffd?(\\ud800)?c{199,200}…","userAgent":"x{100}…"/);
  });

  it.each<[string, Sent]>([
    ['was really refused', { ...order, rejection: 'overloaded' }],
    ['met keys that were unavailable', { ...order, rejection: 'keys-unavailable' }],
    ['lost its client', { ...order, decision: 'aborted' }],
    ['met another row', { route: '/enforced' }],
  ])('do not count a request as one of a row when it %s', async (_, sent) => {
    const one = await new Deployment(kind).replica();
    one.note(sent);
    expect(await rowOf(one, 'POST /orders')).toMatchObject({ verdict: 'not-known', asked: 0 });
  });

  it('begin anew for a row whose rule changes or that leaves the list', async () => {
    const deployment = new Deployment(kind);
    const one = await deployment.replica();
    one.note({ ...order, observed: 'if-match-missing', decision: 'aborted' });
    one.note(missing);
    expect(await rowOf(one, 'POST /orders')).toMatchObject({ verdict: 'refuses', asked: 1 });
    deployment.nowMs += 1_000;
    deployment.list = [carts, { ...orders, scopes: ['write'] }];
    one.rollout.follow();
    deployment.nowMs += 1_000;
    const changed = await rowOf(one, 'POST /orders');
    expect(changed).toMatchObject({ verdict: 'not-known', asked: 0, wouldBeRefused: 1 });
    one.note(order);
    expect(await rowOf(one, 'POST /orders')).toMatchObject({ verdict: 'not-known', asked: 1 });
    expect(await rowOf(one, 'GET /carts/{id}')).toMatchObject({ verdict: 'refuses', asked: 1 });
    deployment.list = [orders];
    one.rollout.follow();
    await one.rollout.flush();
    expect((await one.report()).rows).toContainEqual(
      expect.objectContaining({
        text: 'the list has no such row any more: 0 requests refused, 1 would have been refused before',
      }),
    );
    deployment.list = [carts, orders];
    one.rollout.follow();
    expect(await rowOf(one, 'GET /carts/{id}')).toMatchObject({ verdict: 'not-known', asked: 0 });
  });

  it('keep the clients with most requests', async () => {
    const one = await new Deployment(kind).replica();
    for (let i = 0; i < countBounds.clients + 20; i++) one.note({ ...missing, userAgent: `invented/${i}` });
    await one.rollout.flush();
    for (let i = 0; i < 3; i++) one.note({ ...missing, userAgent: 'late/1' });
    const row = await rowOf(one, 'GET /carts/{id}');
    expect(row?.reasons[0]?.clients).toMatchObject({
      ...{
        count: bounds.clients,
        areMore: true,
        named: [{ userAgent: 'late/1', requests: 3 }, {}, {}, {}, {}],
      },
    });
    expect(row?.wouldBeRefused).toBe(countBounds.clients + 23);
  });

  it('have a gap when there are more rows and reasons than are kept', async () => {
    const deployment = new Deployment(kind);
    const one = await deployment.replica();
    one.note(order);
    for (let i = 0; i <= bounds.refusals; i++) one.note({ ...missing, route: `/invented/${i}` });
    deployment.nowMs += 1_000;
    expect(await one.report()).toMatchObject({ why: 'there are more rows and reasons than are kept' });
    for (let i = 0; i <= countBounds.reasons; i++) one.note({ ...missing, route: `/other/${i}` });
    const { why, rows } = await one.report();
    expect(why).toMatch(/^there (were|are) more rows and reasons than/);
    expect(rows.length).toBeLessThanOrEqual(bounds.refusals + 3);
  });
});

describe('a row in memory', () => {
  it('is safe after seven days with requests, and begins anew after seven without', async () => {
    const deployment = new Deployment('memory');
    const one = await deployment.replica();
    const verdict = async () => (await rowOf(one, 'POST /orders'))?.verdict;
    expect((await one.report()).why).toBe('the memory store counts since the start of the process');
    const verdicts: unknown[] = [];
    for (let day = 0; day <= 16; day++) {
      if (day < 8 || day > 15) one.note(order);
      verdicts.push(await verdict());
      deployment.nowMs += dayMs;
    }
    expect(verdicts).toEqual([
      ...Array(7).fill('not-known'),
      ...Array(8).fill('safe'),
      'not-asked',
      'not-known',
    ]);
  });
});

describe('counts in Redis', () => {
  const verdict = async (one: Replica) => (await rowOf(one, 'POST /orders'))?.verdict;
  const agedReplica = async (deployment = new Deployment('Redis')) => {
    const one = await deployment.replica();
    one.note(order);
    expect(await verdict(one)).toBe('not-known');
    await deployment.age();
    expect(await verdict(one)).toBe('safe');
    return { deployment, one };
  };

  it('have no gap after a restart', async () => {
    const { deployment, one } = await agedReplica();
    await one.rollout.close();
    expect(await verdict(await deployment.replica())).toBe('safe');
  });

  it.each<[string, boolean, (one: Replica, deployment: Deployment) => Promise<unknown>]>([
    ['when no process counted for two minutes', true, ({ rollout }) => rollout.close()],
    ['when the data is two minutes older than what was written', true, async () => {}],
    [
      'when the store was away for two minutes and the process counted on',
      false,
      async (_, deployment) => {
        deployment.nowMs += 2 * lostAfterMs;
      },
    ],
  ])('have a gap %s: %s', async (_, isGap, happen) => {
    const { deployment, one } = await agedReplica();
    await happen(one, deployment);
    await deployment.silence();
    const row = await rowOf(isGap ? await deployment.replica() : one, 'POST /orders');
    expect(row?.text).toMatch(isGap ? /^not known: .*\(no process counted before\)/ : /^safe: /);
  });

  it('begin anew when the store was emptied', async () => {
    const { deployment, one } = await agedReplica();
    await redis.command('DEL', deployment.key, `${deployment.key}:rows`);
    expect((await rowOf(one, 'POST /orders'))?.text).toMatch(/no request met it.*counting began then/);
  });

  it('are written again when the store did not take them, for the rule that was in force then', async () => {
    const deployment = new Deployment('Redis');
    let fails = 0;
    const failing: RolloutCounts = {
      async write(...batch) {
        if (fails-- > 0) throw new RedisUnavailable('timeout');
        await deployment.store.write(...batch);
      },
      forget: (names) => deployment.store.forget(names),
      read: () => deployment.store.read(),
    };
    const one = await deployment.replica(failing);
    one.note(missing);
    fails = 1;
    const { problems, rows } = await one.report();
    expect(problems).toEqual(['the last counts could not be written to the store']);
    expect(rows.map((row) => row.verdict)).toEqual(['not-known', 'not-known']);
    one.note(missing);
    await one.rollout.flush();
    expect(await rowOf(one, 'GET /carts/{id}')).toMatchObject({ wouldBeRefused: 2, asked: 2 });
    fails = 2;
    one.note(order);
    await one.rollout.flush();
    one.note(order);
    deployment.list = [carts, { ...orders, scopes: ['write'] }];
    one.rollout.follow();
    for (let i = 0; i < 3; i++) await one.rollout.flush();
    expect(await rowOf(one, 'POST /orders')).toMatchObject({ asked: 0 });
    const broken = await deployment.replica({ ...failing, read: () => Promise.reject(new Error()) });
    expect((await rowOf(broken, 'POST /orders'))?.text).toBe('not known: the store cannot be read');
  });

  it('stay small and expire', async () => {
    const deployment = new Deployment('Redis');
    const one = await deployment.replica();
    for (let i = 0; i < 100_000; i++) {
      const route = i % 2 === 0 ? '/carts/{id}' : `/invented/${i}`;
      one.note({ ...missing, userAgent: `invented/${i} ${'x'.repeat(500)}`, route });
    }
    await one.rollout.flush();
    const keys = (await redis.command('KEYS', `${deployment.prefix}:*`)) as string[];
    expect(keys.toSorted()).toEqual([deployment.key, `${deployment.key}:refusals`, `${deployment.key}:rows`]);
    for (const key of keys) expect(await redis.command('PTTL', key)).toBeGreaterThan(0);
    const bytes = await Promise.all(keys.map((key) => redis.command('MEMORY', 'USAGE', key, 'SAMPLES', '0')));
    expect(bytes.reduce((sum: number, one) => sum + Number(one), 0)).toBeLessThan(2 * 1024 * 1024);
    expect(await rowOf(one, 'GET /carts/{id}')).toMatchObject({ wouldBeRefused: 50_000 });
  });

  it('leave out entries that were not seen for rollout.keep', async () => {
    const { deployment, one } = await agedReplica();
    one.note(missing);
    await one.rollout.flush();
    for (const key of [`${deployment.key}:rows`, `${deployment.key}:refusals`]) {
      for (const field of (await redis.command('HKEYS', key)) as string[]) {
        const old = { ...JSON.parse(String(await redis.command('HGET', key, field))), lastSeenMs: 1 };
        await redis.command('HSET', key, field, JSON.stringify(old));
      }
    }
    expect(await rowOf(one, 'GET /carts/{id}')).toMatchObject({ wouldBeRefused: 0, asked: 0 });
    expect(await redis.command('EXISTS', `${deployment.key}:rows`, `${deployment.key}:refusals`)).toBe(0);
  });
});
