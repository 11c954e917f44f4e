import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RejectionName } from '../../../src/http/rejection.ts';
import { finish } from '../../../src/lib/slices.ts';
import { RedisUnavailable } from '../../../src/redis/faults.ts';
import { guardRedis } from '../../../src/redis/membership.ts';
import type { Redis } from '../../../src/redis/redis.ts';
import { combineStates } from '../../../src/rollout/counting.ts';
import { bounds } from '../../../src/rollout/counts.ts';
import { makeReport } from '../../../src/rollout/report.ts';
import { Rollout } from '../../../src/rollout/rollout.ts';
import { lostAfterMs, SharedCounts } from '../../../src/rollout/shared-counts.ts';
import { DecisionCounts, dayMs } from '../../../src/telemetry/decision-counts.ts';
import { type SingleRedis, startRedis } from '../../harness/redis-processes.ts';
import { connect } from '../refresh-tokens/stores.ts';

const rows = [
  { method: 'GET', template: '/carts/{id}', scopes: [], observe: true },
  { method: 'POST', template: '/orders', scopes: [], observe: true },
  { method: 'GET', template: '/enforced', scopes: [], observe: false },
] as const;

let server: SingleRedis;
let redis: Redis;
let prefix = '';
let deployments = 0;
const meta = () => `${prefix}:{rollout}`;

beforeAll(async () => {
  server = await startRedis({ settings: {} });
  redis = await connect(server.url);
});
afterAll(async () => {
  await redis.close();
  await server.close();
});
beforeEach(() => {
  prefix = `shop${++deployments}`;
});

interface Replica {
  readonly counts: DecisionCounts;
  readonly now: () => number;
  readonly rollout: Rollout;
  newData(why: string): void;
}

function replica(more: Partial<ConstructorParameters<typeof Rollout>[0]> = {}): Replica {
  let newData: (why: string) => void = () => {};
  const counts = new DecisionCounts({ forRollout: true });
  const rollout = new Rollout({
    counts,
    keepMs: 30 * dayMs,
    intervalMs: 3_600_000,
    isObserving: () => false,
    rules: () => 'the rules',
    rows: () => rows,
    store: { redis, prefix },
    onNewData: (listener) => {
      newData = listener;
    },
    onFault: (fault) => {
      throw fault;
    },
    ...more,
  });
  return { rollout, counts, now: more.now ?? Date.now, newData: (why) => newData(why) };
}

interface Sent {
  readonly route?: string;
  readonly observed?: RejectionName;
  readonly rejection?: RejectionName;
  readonly userAgent?: string;
  readonly address?: string;
  readonly subject?: string;
  readonly clientId?: string;
  readonly method?: string;
  readonly decision?: string;
}

function note(
  { rollout, counts, now }: Replica,
  { route = '/carts/{id}', userAgent = 'app/1', address = '192.0.2.1', ...more }: Sent,
): void {
  const { subject, clientId, ...outcome } = more;
  const decision = more.rejection === undefined ? 'forwarded' : 'refused';
  const record = { route, method: 'GET', decision, clientAddress: address, ...outcome };
  const sender = subject === undefined ? undefined : { subject, clientId };
  rollout.follow();
  counts.note(record as never, now(), { fields: ['User-Agent', userAgent] } as never, sender);
}

/** What the row lets pass. */
const order = { route: '/orders', method: 'POST' } as const;
const missing = { observed: 'access-token-missing' } as const;

async function report(...replicas: Replica[]) {
  const states = await Promise.all(replicas.map(({ rollout }) => rollout.state()));
  return finish(makeReport(finish(combineStates(states)), rows, false, Date.now()));
}
const rowOf = async (name: string, ...replicas: Replica[]) =>
  (await report(...replicas)).rows.find(({ row }) => row === name);

/** As if the deployment had begun to count eight days before. */
async function age(): Promise<void> {
  const early = String(Date.now() - 8 * dayMs);
  await redis.command('HSET', meta(), 'wholeSince', early);
  const told = (await redis.command('HGETALL', `${meta()}:rows`)) as string[];
  for (let i = 0; i < told.length; i += 2) {
    await redis.command('HSET', `${meta()}:rows`, told[i] ?? '', `${told[i + 1]?.split('|')[0]}|${early}`);
  }
}

/** As if nothing had been written for a while, by `id` or by anybody. */
async function silence(ms: number, whose: 'everybody' | 'the first'): Promise<void> {
  const beats = (await redis.command('HGETALL', `${meta()}:processes`)) as string[];
  const [id = '', text = ''] = beats;
  const [batch, , rules] = text.split('|');
  const then = Date.now() - ms;
  if (whose === 'the first')
    await redis.command('HSET', `${meta()}:processes`, id, `${batch}|${then}|${rules}`);
  else await redis.command('HSET', meta(), 'last', then);
}

describe('counted together', () => {
  it('is what a row would have refused between the edit that lets it observe and the next write', async () => {
    const [carts, orders, enforced] = rows;
    const state = { rows: [{ ...carts, observe: false }, orders, enforced], nowMs: Date.now() - 60_000 };
    const one = replica({ rows: () => state.rows, now: () => state.nowMs });
    await one.rollout.start();
    await one.rollout.flush();
    // Another process hears of the edit later, and writes first.
    const other = replica({ rows: () => state.rows, now: () => state.nowMs });
    await other.rollout.start();
    await other.rollout.flush();
    state.rows = [...rows];
    // A client that did not wait is counted, too.
    note(one, { ...missing, decision: 'aborted' });
    state.nowMs += 30_000;
    await other.rollout.flush();
    await one.rollout.flush();
    expect(await rowOf('GET /carts/{id}', one, other)).toMatchObject({
      verdict: 'refuses',
      wouldBeRefused: 1,
    });
    await Promise.all([one.rollout.close(), other.rollout.close()]);
  });

  it('by two replicas, and across a restart', async () => {
    const [one, other] = [replica(), replica()];
    note(one, missing);
    note(other, missing);
    note(other, { ...missing, userAgent: 'browser' });
    note(other, { rejection: 'access-token-missing' });
    await one.rollout.close();
    await other.rollout.flush();
    const again = replica();
    note(again, missing);
    await again.rollout.flush();
    const row = await rowOf('GET /carts/{id}', again, other);
    expect(row).toMatchObject({ verdict: 'refuses', wouldBeRefused: 4, refused: 1 });
    const observed = row?.reasons.find(({ kind }) => kind === 'observed');
    expect(observed?.clients).toMatchObject({ count: 2, areMore: false });
    expect(observed?.clients.named[0]).toMatchObject({ userAgent: 'app/1', requests: 3 });
    expect(observed?.days.at(-1) ?? 0).toBeGreaterThan(0);
    expect(JSON.stringify(row)).not.toContain('192.0.2.1');
  });

  it('what is not written yet is told, too, and counts once afterwards', async () => {
    const one = replica();
    note(one, missing);
    expect(await rowOf('GET /carts/{id}', one)).toMatchObject({ wouldBeRefused: 1 });
    await one.rollout.flush();
    await one.rollout.flush();
    expect(await rowOf('GET /carts/{id}', one)).toMatchObject({ wouldBeRefused: 1 });
  });

  it('a batch whose answer was lost counts once', async () => {
    let isLosing = false;
    const losing = {
      command: redis.command.bind(redis),
      runScript: async (...args: Parameters<Redis['runScript']>) => {
        const reply = await redis.runScript(...args);
        if (!isLosing) return reply;
        isLosing = false;
        throw new RedisUnavailable('timeout');
      },
    } as Partial<Redis> as Redis;
    const one = replica({ store: { redis: losing, prefix } });
    await one.rollout.flush();
    note(one, missing);
    isLosing = true;
    await one.rollout.flush();
    note(one, missing);
    await one.rollout.flush();
    await one.rollout.flush();
    expect(await rowOf('GET /carts/{id}', one)).toMatchObject({ wouldBeRefused: 2 });
  });
});

describe('0 would-be refusals for seven days', () => {
  const verdict = async (...replicas: Replica[]) => (await rowOf('POST /orders', ...replicas))?.verdict;

  it('is said when it was counted for so long, without a gap', async () => {
    const one = replica();
    await one.rollout.start();
    note(one, order);
    await one.rollout.flush();
    expect(await verdict(one)).toBe('not-known');
    await age();
    expect(await rowOf('POST /orders', one)).toMatchObject({
      verdict: 'safe',
      text: 'safe: 0 would-be refusals for seven days, counted without a gap; 1 request asked for it',
      asked: 1,
    });
    expect((await report(one)).rows.map(({ row }) => row)).not.toContain('GET /enforced');
    // A clean restart is no gap.
    await one.rollout.close();
    const next = replica();
    await next.rollout.flush();
    expect(await verdict(next)).toBe('safe');
  });

  it.each<[string, string, (one: Replica, other: Replica) => Promise<unknown>]>([
    [
      'a replica ended without its last word',
      'a process ended without its last word',
      async (_, other) => {
        await silence(2 * lostAfterMs, 'the first');
        await other.rollout.flush();
      },
    ],
    [
      'nobody counted for a while',
      'nobody counted before',
      async (one, other) => {
        await one.rollout.close();
        await other.rollout.close();
        await silence(2 * lostAfterMs, 'everybody');
        await replica().rollout.flush();
      },
    ],
    [
      'the store was restarted',
      "the store's data may be older",
      async (one) => {
        one.newData('it was restarted');
        await one.rollout.flush();
      },
    ],
    [
      'there were more rows and reasons than are kept',
      'more rows and reasons',
      async (one) => {
        for (let i = 0; i <= bounds.entries; i++) note(one, { ...missing, route: `/invented/${i}` });
        await one.rollout.flush();
      },
    ],
  ])('is not said when %s', async (_, why, happen) => {
    const [one, other] = [replica(), replica()];
    await one.rollout.start();
    note(one, order);
    await one.rollout.flush();
    await other.rollout.flush();
    await age();
    expect(await verdict(one)).toBe('safe');
    await happen(one, other);
    const told = await rowOf('POST /orders', replica({ store: { redis, prefix } }));
    expect(told?.verdict).toBe('not-known');
    expect(told?.text).toContain(why);
  });

  it('a store that nobody could reach for a while is no gap: what was counted is written afterwards', async () => {
    const [one, other] = [replica(), replica()];
    await one.rollout.start();
    note(one, order);
    await one.rollout.flush();
    await other.rollout.flush();
    await age();
    await silence(10 * lostAfterMs, 'everybody');
    await silence(10 * lostAfterMs, 'the first');
    await other.rollout.flush();
    await one.rollout.flush();
    expect(await verdict(one)).toBe('safe');
  });

  it('is not said of a row whose rule is younger, nor while replicas differ', async () => {
    const one = replica();
    await one.rollout.start();
    note(one, {});
    await one.rollout.flush();
    await age();
    const stricter = rows.map((row) => (row.method === 'POST' ? { ...row, scopes: ['write'] } : row));
    const other = replica({ rows: () => stricter });
    await other.rollout.flush();
    expect((await rowOf('GET /carts/{id}', one, other))?.text).toContain('do not observe by the same list');
    await one.rollout.close();
    const told = await report(other);
    const ofRow = (name: string) => told.rows.find(({ row }) => row === name);
    expect(ofRow('GET /carts/{id}')?.verdict).toBe('safe');
    expect(ofRow('POST /orders')?.text).toContain('the row, or a setting that it depends on, changed then');
  });

  it('the memory store counts since the start of the process, and says so', async () => {
    let nowMs = Date.now();
    const one = replica({ store: undefined, now: () => nowMs });
    const told = async () =>
      finish(makeReport(finish(combineStates([await one.rollout.state()])), rows, false, nowMs)).rows.find(
        ({ row }) => row === 'POST /orders',
      );
    await one.rollout.start();
    note(one, { ...missing, route: '/enforced' });
    expect((await report(one)).why).toBe('the memory store counts since the start of the process');
    note(one, order);
    nowMs += 8 * dayMs;
    expect(await told()).toMatchObject({ verdict: 'not-asked' });
    note(one, order);
    expect(await told()).toMatchObject({ verdict: 'safe', asked: 1 });
    await one.rollout.close();
  });

  describe('of 0 requests proves nothing', () => {
    it('a row without requests is reported as such, with since when, and makes the whole report no better', async () => {
      const one = replica();
      await one.rollout.start();
      note(one, order);
      await one.rollout.flush();
      await age();
      const told = await report(one);
      expect([told.verdict, told.text]).toEqual([
        'not-asked',
        'of the observed rows: 1 that nobody asked for, 1 safe to enforce',
      ]);
      const row = told.rows.find((each) => each.row === 'GET /carts/{id}');
      const since = `${new Date(told.wholeSinceMs ?? 0).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
      expect(row).toMatchObject({ asked: 0, text: `not known: nobody asked for it since ${since}` });
    });

    it('what was asked before the seven days counts no more, and is shown as the last time', async () => {
      const one = replica();
      await one.rollout.start();
      note(one, order);
      await one.rollout.flush();
      await age();
      const lastMs = Date.now() - 7 * dayMs - 60_000;
      await redis.command(
        'HSET',
        `${meta()}:asked`,
        'POST /orders',
        `${lastMs}|${Math.floor(lastMs / dayMs)}=3`,
      );
      const row = await rowOf('POST /orders', one);
      expect(row?.verdict).toBe('not-asked');
      expect(row?.text).toContain(new Date(lastMs).toISOString().slice(0, 10));
    });

    it.each<[string, Sent]>([
      [
        'was refused in earnest, so that its token was never looked at',
        { ...order, rejection: 'overloaded' },
      ],
      ['met keys that could not be had', { ...order, rejection: 'keys-unavailable' }],
      ['had no client any more', { ...order, decision: 'aborted' }],
      ['another row decided', { route: '/enforced' }],
    ])('a request that %s is none', async (_, sent) => {
      const one = replica();
      await one.rollout.start();
      note(one, sent);
      await one.rollout.flush();
      await age();
      expect(await rowOf('POST /orders', one)).toMatchObject({ verdict: 'not-asked', asked: 0 });
    });

    it('is counted by replicas together, once each, for nine days at most', async () => {
      const [one, other] = [replica(), replica()];
      const old = Math.floor(Date.now() / dayMs) - 30;
      await one.rollout.flush();
      await redis.command('HSET', `${meta()}:asked`, 'POST /orders', `5|${old}=7`);
      for (const each of [one, other]) {
        await each.rollout.start();
        note(each, order);
        note(each, { ...order, observed: 'if-match-missing' });
        await each.rollout.flush();
        await each.rollout.flush();
      }
      note(other, order);
      expect(await rowOf('POST /orders', one, other)).toMatchObject({ asked: 5, wouldBeRefused: 2 });
      expect(await redis.command('HGET', `${meta()}:asked`, 'POST /orders')).not.toContain(`${old}=`);
    });

    it('a row of ANY counts requests of each method; a row that leaves the list is forgotten', async () => {
      const any = [{ method: 'ANY', template: '/orders', scopes: [], observe: true }] as const;
      const one = replica({ rows: () => any });
      await one.rollout.start();
      note(one, { ...order, method: 'DELETE' });
      await one.rollout.flush();
      const told = finish(
        makeReport(finish(combineStates([await one.rollout.state()])), any, false, Date.now()),
      );
      expect(told.rows.find(({ row }) => row === 'ANY /orders')?.asked).toBe(1);
      await one.rollout.close();
      const next = replica();
      await next.rollout.flush();
      expect(await redis.command('HKEYS', `${meta()}:asked`)).toEqual([]);
    });
  });

  it('what would have been refused is not called enforced where its row is gone', async () => {
    const one = replica();
    note(one, { ...missing, route: '/gone' });
    expect((await rowOf('GET /gone', one))?.text).toBe(
      'the list has no such row any more: 0 requests refused, 1 would have been refused before',
    );
  });

  it('two replicas that tell a row at once keep the earlier time, whichever writes last', async () => {
    const other = await connect(server.url);
    const told = new Map([['GET /carts/{id}', 'a rule']]);
    const isWritten = Promise.withResolvers<void>();
    const late: Redis = {
      ...guardRedis(other, () => undefined),
      // It has seen that nobody told the row, and goes on once the other one has.
      async command(name, ...args) {
        const reply = await other.command(name, ...args);
        if (name === 'HGETALL') await isWritten.promise;
        return reply;
      },
    };
    const telling = new SharedCounts(late, prefix, dayMs).tellRows(told, 2_000);
    await new SharedCounts(redis, prefix, dayMs).tellRows(told, 1_000);
    isWritten.resolve();
    await telling;
    expect(await redis.command('HGETALL', `${meta()}:rows`)).toEqual(['GET /carts/{id}', 'a rule|1000']);
    await new SharedCounts(other, prefix, dayMs).tellRows(told, 500);
    await new SharedCounts(redis, prefix, dayMs).tellRows(new Map([['GET /carts/{id}', 'another']]), 3_000);
    expect(await redis.command('HGETALL', `${meta()}:rows`)).toEqual(['GET /carts/{id}', 'another|3000']);
    await other.close();
  });

  it('a worker that did not answer is reported', async () => {
    const one = replica();
    await one.rollout.flush();
    await age();
    const counting = finish(combineStates([await one.rollout.state()], 1));
    expect(finish(makeReport(counting, rows, false, Date.now())).rows[0]?.text).toContain('1 of the workers');
  });
});

describe('bounds', () => {
  it('100,000 invented clients and paths stay within them, in memory and in the store', async () => {
    const one = replica();
    await one.rollout.flush();
    for (let i = 0; i < 100_000; i++) {
      note(one, {
        ...missing,
        userAgent: `invented/${i} ${'x'.repeat(500)}`,
        address: `2001:db8::${i.toString(16)}`,
        route: i % 2 === 0 ? '/carts/{id}' : `/invented/${i}`,
      });
    }
    await one.rollout.flush();
    const keys = (await redis.command('KEYS', `${prefix}:*`)) as string[];
    expect(keys.length).toBeLessThanOrEqual(bounds.entries + 5);
    for (const key of keys) expect(await redis.command('PTTL', key)).toBeGreaterThan(0);
    const entry = `${meta()}:entry:observed access-token-missing GET /carts/{id}`;
    expect(await redis.command('HLEN', entry)).toBeLessThan(bounds.clients + 20);
    const bytes = await Promise.all(keys.map((key) => redis.command('MEMORY', 'USAGE', key)));
    expect(bytes.reduce((sum: number, one) => sum + Number(one), 0)).toBeLessThan(2 * 1024 * 1024);
    const row = await rowOf('GET /carts/{id}', one);
    expect(row).toMatchObject({ wouldBeRefused: 50_000 });
    expect(row?.reasons[0]?.clients).toMatchObject({ count: bounds.clients, areMore: true });
    expect(row?.reasons[0]?.clients.named[0]?.userAgent).toMatch(/^invented\/.{91}…$/);
  });

  it('what two replicas count is beyond the bound together: the counts are not whole any more', async () => {
    const both = [replica(), replica()];
    for (const [i, one] of both.entries()) {
      for (let n = 0; n < bounds.entries * 0.6; n++) note(one, { ...missing, route: `/invented/${i}/${n}` });
      await one.rollout.flush();
    }
    const why = String(await redis.command('HGET', meta(), 'why'));
    expect(why).toBe('there are more rows and reasons than are kept');
  });

  it('an application is named, with digests too, and takes the place of its users', async () => {
    const one = replica();
    for (const subject of ['DE--21', 'DE--22'])
      note(one, { observed: 'if-match-missing', subject, clientId: 'mobile-app' });
    await one.rollout.flush();
    const reason = (await rowOf('GET /carts/{id}', one))?.reasons[0];
    expect(reason?.clients).toMatchObject({
      count: 1,
      named: [{ client: 'client mobile-app', requests: 2 }],
    });
  });
});

describe('Redis away', () => {
  it('is counted on, written when it is back; what is shown says so', async () => {
    const own = await startRedis({ settings: {} });
    const connection = await connect(own.url, 500);
    const one = replica({ store: { redis: connection, prefix } });
    await one.rollout.flush();
    own.process?.pause();
    try {
      note(one, missing);
      await one.rollout.flush();
      note(one, missing);
      const told = await report(one);
      expect(told.problems.join()).toContain('the store cannot be read');
      expect(told.rows.find(({ row }) => row === 'POST /orders')?.verdict).toBe('not-known');
      expect(told.rows.map(({ wouldBeRefused }) => wouldBeRefused)).toContain(2);
    } finally {
      own.process?.resume();
    }
    await expect
      .poll(
        async () => {
          await one.rollout.flush();
          const { problems, rows: all } = await report(one);
          return [problems.length, all.find(({ row }) => row === 'GET /carts/{id}')?.wouldBeRefused];
        },
        { timeout: 30_000 },
      )
      .toEqual([0, 2]);
    await one.rollout.close();
    await connection.close();
    await own.close();
  });
});
