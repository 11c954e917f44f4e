import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { finish } from '../../../src/lib/slices.ts';
import { causeOf } from '../../../src/rollout/causes.ts';
import { type Counting, combineStates } from '../../../src/rollout/counting.ts';
import type { RolloutEntry } from '../../../src/rollout/counts.ts';
import { makeReport, type RowReport } from '../../../src/rollout/report.ts';
import type { RolloutState } from '../../../src/rollout/rollout.ts';
import { dayMs } from '../../../src/telemetry/decision-counts.ts';

const hourMs = dayMs / 24;

/** Noon of a day. */
const nowMs = 20_000 * dayMs + 12 * hourMs;
const today = 20_000;
const weekAgoMs = nowMs - 7 * dayMs;
const carts = { method: 'GET', template: '/carts/{id}', observe: true } as const;
const enforced = { method: 'GET', template: '/enforced', observe: false } as const;
const name = 'GET /carts/{id}';

const entry: RolloutEntry = {
  ...{ kind: 'observed', method: 'GET', route: '/carts/{id}', rejection: 'access-token-missing' },
  ...{
    requests: 2,
    sinceMs: weekAgoMs,
    lastSeenMs: nowMs,
    reason: undefined,
    days: {},
    clients: [],
    beyond: 0,
  },
};
const long: Counting = {
  ...{ entries: [], asked: {}, wholeSinceMs: weekAgoMs, why: 'the process started then', problems: [] },
  rowSinceMs: () => weekAgoMs,
};
const askedTwice = { asked: { [name]: { lastSeenMs: nowMs, days: { [today]: 2 } } } };

const reportRollout = (...asked: Parameters<typeof makeReport>) => finish(makeReport(...asked));

function report(counting: Partial<Counting>, isObserving = false) {
  return reportRollout({ ...long, ...counting }, [carts, enforced], isObserving, nowMs);
}
function verdictOn(counting: Partial<Counting>): Pick<RowReport, 'verdict' | 'text'> {
  const { verdict, text } = report(counting).rows.find(({ row }) => row === name) as RowReport;
  return { verdict, text };
}

describe('an observed row', () => {
  const gap = 'not known: nobody would have been refused yet, but the counts are complete only since';
  const young = 'not known: nobody has asked for it yet, but the counts are complete only since';
  it.each<[string, Partial<Counting>, RowReport['verdict'], string]>([
    [
      'refuses, where somebody would have been refused',
      { entries: [entry, { ...entry, method: 'PUT', requests: 1, lastSeenMs: nowMs - hourMs }] },
      'refuses',
      'not safe: 3 requests would have been refused, the last 2024-10-04 12:00 UTC',
    ],
    [
      'refuses, as long as it is seven days ago',
      { entries: [{ ...entry, requests: 1, lastSeenMs: weekAgoMs }] },
      'refuses',
      'not safe: 1 request would have been refused, the last 2024-09-27 12:00 UTC',
    ],
    [
      'is safe again after these',
      { entries: [{ ...entry, lastSeenMs: weekAgoMs - 1 }], ...askedTwice },
      'safe',
      'safe: 0 would-be refusals for seven days, counted without a gap; 2 requests asked for it',
    ],
    [
      'is safe, although what it refuses in earnest is refused',
      { entries: [{ ...entry, kind: 'refused' }], ...askedTwice },
      'safe',
      'safe: 0 would-be refusals for seven days, counted without a gap; 2 requests asked for it',
    ],
    [
      'is not known while something is wrong with the counts',
      { problems: ['the store is away', 'more'], ...askedTwice },
      'not-known',
      'not known: the store is away',
    ],
    [
      'is not known where nobody knows since when it is counted',
      { wholeSinceMs: null, ...askedTwice },
      'not-known',
      'not known: nothing says since when this is counted',
    ],
    [
      'nor where nobody knows since when it is observed so',
      { rowSinceMs: () => undefined, ...askedTwice },
      'not-known',
      'not known: nothing says since when this is counted',
    ],
    [
      'is not known before seven days are whole',
      { wholeSinceMs: weekAgoMs + 1, ...askedTwice },
      'not-known',
      `${gap} 2024-09-27 12:00 UTC (the process started then); the seven days end 2024-10-04 12:00 UTC`,
    ],
    [
      'says so when nobody has asked either',
      { wholeSinceMs: nowMs - dayMs },
      'not-known',
      `${young} 2024-10-03 12:00 UTC (the process started then); the seven days end 2024-10-10 12:00 UTC`,
    ],
    [
      'is not known for seven days after it changed',
      { rowSinceMs: () => weekAgoMs + 60_001, ...askedTwice },
      'not-known',
      `${gap} 2024-09-27 12:01 UTC (the row, or a setting that it depends on, changed then); the seven days end 2024-10-04 12:01 UTC`,
    ],
    [
      'that is seen within a minute of the start is as old as the counts',
      { rowSinceMs: () => weekAgoMs + 60_000, ...askedTwice },
      'not-known',
      `${gap} 2024-09-27 12:01 UTC (the process started then); the seven days end 2024-10-04 12:01 UTC`,
    ],
    [
      'that was refused before it changed counts from the change',
      { entries: [{ ...entry, lastSeenMs: nowMs - 2 }], rowSinceMs: () => nowMs - 1, ...askedTwice },
      'not-known',
      `${gap} 2024-10-04 11:59 UTC (the row, or a setting that it depends on, changed then); the seven days end 2024-10-11 11:59 UTC`,
    ],
    [
      'that nobody asked for proves nothing',
      {},
      'not-asked',
      'not known: nobody asked for it since 2024-09-27 12:00 UTC',
    ],
    [
      'nor does one that was asked for before the seven days',
      { asked: { [name]: { lastSeenMs: weekAgoMs - 1, days: { [today - 7]: 1 } } } },
      'not-asked',
      'not known: nobody asked for it since 2024-09-27 11:59 UTC',
    ],
    [
      'but seven days ago is enough',
      { asked: { [name]: { lastSeenMs: weekAgoMs, days: { [today - 7]: 1, [today - 8]: 5 } } } },
      'safe',
      'safe: 0 would-be refusals for seven days, counted without a gap; 1 request asked for it',
    ],
  ])('%s', (_, counting, verdict, text) => {
    expect(verdictOn(counting)).toEqual({ verdict, text });
  });

  it('is reported with its counts, and with null where nobody counts who asks', () => {
    const entries: RolloutEntry[] = [entry, { ...entry, kind: 'refused', requests: 5 }];
    expect(report({ entries, ...askedTwice }).rows[0]).toMatchObject({
      ...{ row: name, wouldBeRefused: 2, refused: 5, asked: 2 },
    });
    expect(report({ entries, asked: undefined }).rows[0]?.asked).toBeNull();
  });
});

describe('a row that is enforced', () => {
  const past: RolloutEntry = { ...entry, route: '/enforced', kind: 'refused', requests: 1 };
  it.each<[string, readonly RolloutEntry[], string | undefined]>([
    ['and has refused nobody is left out', [], undefined],
    ['says how many it refused', [past], 'enforced: 1 request refused'],
    [
      'says what it observed before',
      [past, { ...past, kind: 'observed', requests: 3 }],
      'enforced now: 1 request refused, 3 would have been refused before',
    ],
    [
      'counts what came by another method of the template',
      [{ ...past, method: 'PUT', requests: 4 }],
      'enforced: 4 requests refused',
    ],
  ])('%s', (_, entries, text) => {
    const row = report({ entries }).rows.find((one) => one.row === 'GET /enforced');
    expect(row?.text).toBe(text);
    if (row !== undefined) expect(row).toMatchObject({ verdict: 'enforced', asked: null });
  });

  it('and is gone from the list is reported under its own name', () => {
    const entries = [{ ...entry, route: '/gone' }];
    const { rows } = report({ entries, ...askedTwice });
    expect(rows.find(({ row }) => row === 'GET /gone')).toMatchObject({
      verdict: 'enforced',
      text: 'the list has no such row any more: 0 requests refused, 2 would have been refused before',
    });
  });
});

describe('all rows together', () => {
  const listOf = (...templates: readonly string[]) =>
    templates.map((template) => ({ method: 'GET', template, observe: true }) as const);
  const refusing = (route: string, requests: number): RolloutEntry => ({ ...entry, route, requests });

  it('are as good as the worst, which come first, those that would refuse most before the others', () => {
    const since = (row: string) => (row === 'GET /young' ? nowMs : weekAgoMs);
    const { verdict, text, rows } = reportRollout(
      {
        ...long,
        asked: { 'GET /safe': { lastSeenMs: nowMs, days: {} } },
        entries: [
          refusing('/few', 1),
          refusing('/many', 7),
          { ...refusing('/enforced', 9), kind: 'refused' },
        ],
        rowSinceMs: since,
      },
      [...listOf('/safe', '/silent', '/young', '/few', '/many'), enforced],
      false,
      nowMs,
    );
    expect(rows.map(({ row }) => row.slice('GET /'.length))).toEqual([
      ...['many', 'few', 'young', 'silent', 'safe', 'enforced'],
    ]);
    expect([verdict, text]).toEqual([
      'refuses',
      'of the observed rows: 2 would refuse somebody, 1 not known yet, 1 that nobody asked for, 1 safe to enforce',
    ]);
  });

  it.each([
    ['safe', 'of the observed rows: 1 safe to enforce', listOf('/carts/{id}')],
    ['not-asked', 'of the observed rows: 1 that nobody asked for', listOf('/other')],
    ['enforced', 'everything is enforced', [enforced]],
  ])('%s: %s', (verdict, text, rows) => {
    expect(reportRollout({ ...long, ...askedTwice }, rows, false, nowMs)).toMatchObject({ verdict, text });
  });

  it('are observed where everything is, and with them requests that no row names', () => {
    const { rows } = report({ entries: [{ ...entry, route: '*' }] }, true);
    expect(rows.map(({ row, verdict }) => [row, verdict])).toEqual([
      ['*', 'refuses'],
      [name, 'not-asked'],
      ['GET /enforced', 'not-asked'],
    ]);
  });
});

describe('a reason', () => {
  it('is reported with its days, its first clients, and what to do', () => {
    const clients = Array.from({ length: 7 }, (_, i) => ({
      ...{ client: `client ${i}`, userAgent: '', requests: 1, lastSeenMs: nowMs },
    }));
    const days = { [today - 7]: 9, [today - 6]: 1, [today]: 2 };
    const [reason] = report({ entries: [{ ...entry, clients, days, beyond: 1 }] }).rows[0]?.reasons ?? [];
    expect(reason).toEqual({
      ...{ kind: 'observed', method: 'GET', rejection: 'access-token-missing', requests: 2 },
      ...{ sinceMs: weekAgoMs, lastSeenMs: nowMs },
      clients: { count: 7, areMore: true, named: clients.slice(0, 5) },
      days: [1, 0, 0, 0, 0, 0, 2],
      cause: 'either',
      next: expect.stringMatching(/^These clients send no token/),
      more: 'docs/reasons.md#access-token-missing',
    });
  });

  it('separates what a client must change from what a setting must', () => {
    const invalid = (reason: string, requests: number): RolloutEntry => ({
      ...{ ...entry, rejection: 'access-token-invalid', reason, requests },
    });
    const { rows, causes } = report({ entries: [invalid('expired', 4), invalid('audience', 3), entry] });
    expect(causes).toEqual({ client: 4, setting: 3, either: 2 });
    expect(rows[0]?.reasons.map(({ reason, cause, more }) => [reason, cause, more])).toEqual([
      ['expired', 'client', 'docs/reasons.md#expired'],
      ['audience', 'setting', 'docs/reasons.md#audience'],
      [undefined, 'either', 'docs/reasons.md#access-token-missing'],
    ]);
  });

  it('of a token has advice of its own for each that docs/reasons.md explains', () => {
    const page = readFileSync(path.join(import.meta.dirname, '../../../docs/reasons.md'), 'utf8');
    const [, table = ''] = page.split('### What is wrong with a token');
    const reasons = [...(table.split('\n## ')[0] ?? '').matchAll(/<a id="([a-z-]+)">/g)].map(
      ([, one = '']) => one,
    );
    expect(reasons).toContain('expired');
    const general = causeOf('access-token-invalid', 'unheard-of').next;
    const without = reasons.filter((one) => causeOf('access-token-invalid', one).next === general);
    // These have a rejection of their own: `keys-unavailable`, `proof-invalid`, `insufficient-scope`.
    expect(without).toEqual(['introspection', 'keys', 'unbound', 'scope']);
  });

  it('that has no advice of its own has a general one', () => {
    const [reason] = report({ entries: [{ ...entry, rejection: 'overloaded' }] }).rows[0]?.reasons ?? [];
    expect(reason).toMatchObject({
      next: expect.stringMatching(/^Look at these/),
      clients: { areMore: false },
    });
  });
});

describe('states of several processes', () => {
  const state: RolloutState = {
    ...{
      shared: undefined,
      hasStore: false,
      here: [entry],
      askedHere: askedTwice.asked,
      startedMs: weekAgoMs,
    },
    ...{ rowsSince: { [name]: 5 }, leftOutSinceMs: null, rules: 'one' },
  };
  const shared = {
    ...{ entries: [entry], asked: askedTwice.asked, wholeSinceMs: 7, why: 'a gap', rules: ['one'] },
    rowsSince: { [name]: 6 },
  };
  const stored = { ...state, hasStore: true, shared };
  const combine = (states: readonly RolloutState[], silent?: number) => finish(combineStates(states, silent));
  const sums = ({ entries, asked }: Counting) => [entries[0]?.requests, asked?.[name]?.days[today]];

  it('are the memory of this process, where nothing is shared', () => {
    const counting = combine([state]);
    expect(sums(counting)).toEqual([2, 2]);
    expect(counting).toMatchObject({
      ...{ wholeSinceMs: weekAgoMs, problems: [] },
      why: 'the memory store counts since the start of the process',
    });
    expect([counting.rowSinceMs(name), counting.rowSinceMs('GET /x')]).toEqual([5, undefined]);
  });

  it('are what is written, with what each has not written yet; one that reads it is enough', () => {
    const unread = { ...state, hasStore: true };
    const counting = combine([unread, stored]);
    expect(sums(counting)).toEqual([6, 6]);
    expect(counting).toMatchObject({ wholeSinceMs: 7, why: 'a gap', problems: [] });
    expect(counting.rowSinceMs(name)).toBe(6);
  });

  it('are only what waits, where the store cannot be read: then nothing is known', () => {
    const unread = { ...state, hasStore: true };
    const counting = combine([unread, unread]);
    expect([counting.entries[0]?.requests, counting.asked]).toEqual([4, undefined]);
    expect(counting.wholeSinceMs).toBeNull();
    expect(counting.rowSinceMs(name)).toBeUndefined();
    const problem = 'the store cannot be read: only what is not written yet is shown';
    expect(counting.problems).toEqual([problem]);
    expect(combine([unread]).problems).toEqual([problem]);
  });

  it('of nobody are nothing', () => {
    expect(combine([], 2)).toMatchObject({
      ...{ entries: [], asked: undefined, wholeSinceMs: null, problems: ['2 of the workers did not answer'] },
    });
  });

  it.each<[string, readonly RolloutState[], number, readonly string[]]>([
    ['one did not answer', [state], 1, ['1 of the workers did not answer']],
    [
      'something was left out, since the first time',
      [{ ...state, leftOutSinceMs: nowMs }, { ...state, leftOutSinceMs: nowMs - hourMs }, state],
      0,
      ['incomplete since 2024-10-04 11:00 UTC'],
    ],
    [
      'two have other rules',
      [state, { ...state, rules: 'two' }],
      0,
      ['the replicas do not observe by the same list and settings'],
    ],
    [
      'another replica has other rules',
      [{ ...stored, shared: { ...shared, rules: ['one', 'two'] } }],
      0,
      ['the replicas do not observe by the same list and settings'],
    ],
  ])('have a problem where %s', (_, states, silent, problems) => {
    expect(combine(states, silent).problems).toEqual(problems);
  });
});
