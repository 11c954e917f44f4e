import { describe, expect, it } from 'vitest';
import { finish } from '../../../src/lib/slices.ts';
import type { Counting, MetRow, RolloutEntry } from '../../../src/rollout/counts.ts';
import { makeReport, type RowReport } from '../../../src/rollout/report.ts';
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
  ...{ requests: 2, sinceMs: weekAgoMs, lastSeenMs: nowMs, reason: undefined },
  ...{ days: {}, clients: {}, beyond: 0 },
};
const met = (more: Partial<MetRow> = {}): Pick<Counting, 'rows'> => ({
  rows: { [name]: { rule: 'r', sinceMs: weekAgoMs, lastSeenMs: nowMs, requests: 2, ...more } },
});
const long: Counting = {
  ...{ entries: [], ...met(), wholeSinceMs: weekAgoMs, why: 'the process started then', problems: [] },
};

const reportRollout = (...asked: Parameters<typeof makeReport>) => finish(makeReport(...asked));

function report(counting: Partial<Counting>, isObserving = false) {
  return reportRollout({ ...long, ...counting }, [carts, enforced], isObserving, nowMs);
}
/** The verdict on the observed row and its text. */
function verdictOn(counting: Partial<Counting>): string {
  const { verdict, text } = report(counting).rows.find(({ row }) => row === name) as RowReport;
  return `${verdict} | ${text}`;
}

describe('an observed row', () => {
  const weekAgo = '2024-09-27 12:00 UTC';
  const safe = (met: string) =>
    `safe | safe: 0 would-be refusals for seven days, counted without a gap; ${met}`;
  const gap = (seen: string, since: string, end: string) =>
    `not-known | not known: ${seen}, but the counts are complete only since ${since}; the seven days end ${end} UTC`;
  const none = 'none of 2 requests would have been refused';
  const [started, changed] = ['(the process started then)', '(the first request of the row as it is now)'];
  const rows: Readonly<Record<string, readonly [Partial<Counting>, string]>> = {
    'refuses when requests would have been refused': [
      { entries: [entry, { ...entry, method: 'PUT', requests: 1, lastSeenMs: nowMs - hourMs }] },
      'refuses | not safe: 3 requests would have been refused, the last 2024-10-04 12:00 UTC',
    ],
    'refuses when the last would-be refusal was seven days ago': [
      { entries: [{ ...entry, requests: 1, lastSeenMs: weekAgoMs }] },
      `refuses | not safe: 1 request would have been refused, the last ${weekAgo}`,
    ],
    'is safe when the last would-be refusal was earlier': [
      { entries: [{ ...entry, lastSeenMs: weekAgoMs - 1 }] },
      safe(`2 requests met it since ${weekAgo}`),
    ],
    'is safe when requests were really refused': [
      { entries: [{ ...entry, kind: 'refused' }] },
      safe(`2 requests met it since ${weekAgo}`),
    ],
    'is not known while the counts have a problem': [
      { problems: ['the store is away', 'more'] },
      'not-known | not known: the store is away',
    ],
    'is not known before anything was counted': [
      { wholeSinceMs: null },
      'not-known | not known: nothing is counted yet',
    ],
    'is not known before seven days are whole': [
      { wholeSinceMs: weekAgoMs + 1 },
      gap(none, `${weekAgo} ${started}`, '2024-10-04 12:00'),
    ],
    'is not known before seven days when no request met it': [
      { wholeSinceMs: nowMs - dayMs, rows: {} },
      gap('no request met it', `2024-10-03 12:00 UTC ${started}`, '2024-10-10 12:00'),
    ],
    'is not known for seven days after it changed': [
      met({ sinceMs: weekAgoMs + 60_001 }),
      gap(none, `2024-09-27 12:01 UTC ${changed}`, '2024-10-04 12:01'),
    ],
    'is as old as the counts when it was met within a minute of the start': [
      met({ sinceMs: weekAgoMs + 60_000 }),
      gap(none, `2024-09-27 12:01 UTC ${started}`, '2024-10-04 12:01'),
    ],
    'is not known when it changed after the last refusal': [
      { entries: [{ ...entry, lastSeenMs: nowMs - 2 }], ...met({ sinceMs: nowMs - 1 }) },
      gap(none, `2024-10-04 11:59 UTC ${changed}`, '2024-10-11 11:59'),
    ],
    'proves nothing when no request met it': [
      { entries: [entry], rows: {} },
      `not-asked | not known: no request met it since ${weekAgo}`,
    ],
    'proves nothing when requests met it before the seven days': [
      met({ sinceMs: 0, lastSeenMs: weekAgoMs - 1 }),
      'not-asked | not known: no request met it since 2024-09-27 11:59 UTC',
    ],
    'is safe when a request met it seven days ago': [
      met({ sinceMs: 0, lastSeenMs: weekAgoMs, requests: 1 }),
      safe('1 request met it since 1970-01-01 00:00 UTC'),
    ],
  };
  it.each(Object.entries(rows))('%s', (_, [counting, expected]) => {
    expect(verdictOn(counting)).toBe(expected);
  });

  it('is reported with its counts', () => {
    const entries: RolloutEntry[] = [entry, { ...entry, kind: 'refused', requests: 5 }];
    const counts = { row: name, wouldBeRefused: 2, refused: 5, asked: 2 };
    expect(report({ entries }).rows[0]).toMatchObject(counts);
  });
});

describe('a row that is enforced', () => {
  const past: RolloutEntry = { ...entry, route: '/enforced', kind: 'refused', requests: 1 };
  it.each<[string, readonly RolloutEntry[], string | undefined]>([
    ['and has refused no client is left out', [], undefined],
    ['says how many it refused', [past], 'enforced: 1 request refused'],
    [
      'says what it would have refused before',
      [past, { ...past, kind: 'observed', requests: 3 }],
      'enforced now: 1 request refused, 3 would have been refused before',
    ],
    [
      'counts requests with another method of the template',
      [{ ...past, method: 'PUT', requests: 4 }],
      'enforced: 4 requests refused',
    ],
  ])('%s', (_, entries, text) => {
    const row = report({ entries }).rows.find((one) => one.row === 'GET /enforced');
    expect(row?.text).toBe(text);
    if (row !== undefined) expect(row).toMatchObject({ verdict: 'enforced', asked: null });
  });

  it('and was removed from the list is reported under its own name', () => {
    const entries = [{ ...entry, route: '/gone' }];
    const { rows } = report({ entries });
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

  it('have the verdict of the worst row; the worst come first, with the most would-be refusals in front', () => {
    const row = (sinceMs: number): MetRow => ({ rule: 'r', sinceMs, lastSeenMs: nowMs, requests: 1 });
    const since = { '/safe': weekAgoMs, '/few': 0, '/many': 0, '/young': nowMs };
    const met = Object.entries(since).map(([route, sinceMs]) => [`GET ${route}`, row(sinceMs)]);
    const refused = { ...refusing('/enforced', 9), kind: 'refused' } as const;
    const entries = [refusing('/few', 1), refusing('/many', 7), refused];
    const list = [...listOf('/safe', '/silent', '/young', '/few', '/many'), enforced];
    const counting = { ...long, rows: Object.fromEntries(met), entries };
    const { verdict, text, rows } = reportRollout(counting, list, false, nowMs);
    expect(rows.map(({ row }) => row.slice('GET /'.length))).toEqual([
      ...['many', 'few', 'young', 'silent', 'safe', 'enforced'],
    ]);
    expect([verdict, text]).toEqual([
      'refuses',
      'of the observed rows: 2 would refuse requests, 1 not known yet, 1 without requests, 1 safe to enforce',
    ]);
  });

  it.each([
    ['safe', 'of the observed rows: 1 safe to enforce', listOf('/carts/{id}')],
    ['not-asked', 'of the observed rows: 1 without requests', listOf('/other')],
    ['enforced', 'everything is enforced', [enforced]],
  ])('%s: %s', (verdict, text, rows) => {
    expect(reportRollout(long, rows, false, nowMs)).toMatchObject({ verdict, text });
  });

  it('are all observed in observe mode, with requests that no row names', () => {
    const all = { rows: { '*': { rule: 'r', sinceMs: 0, lastSeenMs: nowMs, requests: 2 } } };
    const { rows } = report({ entries: [{ ...entry, route: '*' }], ...all }, true);
    expect(rows.map(({ row, verdict }) => [row, verdict])).toEqual([
      ['*', 'refuses'],
      [name, 'not-asked'],
      ['GET /enforced', 'not-asked'],
    ]);
  });
});

describe('a reason', () => {
  it('is reported with its days, its first clients, and what to do', () => {
    const clients = Object.fromEntries(Array.from({ length: 7 }, (_, i) => [`app ${i}\nshop/${i}`, 7 - i]));
    const named = [0, 1, 2, 3, 4].map((i) => ({
      ...{ application: `app ${i}`, userAgent: `shop/${i}`, requests: 7 - i },
    }));
    const days = { [today - 7]: 9, [today - 6]: 1, [today]: 2 };
    const [reason] = report({ entries: [{ ...entry, clients, days, beyond: 1 }] }).rows[0]?.reasons ?? [];
    expect(reason).toEqual({
      ...{ kind: 'observed', method: 'GET', rejection: 'access-token-missing', requests: 2 },
      ...{ sinceMs: weekAgoMs, lastSeenMs: nowMs },
      clients: { count: 7, areMore: true, named },
      days: [1, 0, 0, 0, 0, 0, 2],
      cause: 'either',
      next: expect.stringMatching(/^Sign in\. If the resource should be open/),
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

  it('has the advice of docs/reasons.md; a bad token has that of its reason', () => {
    const advice = (rejection: RolloutEntry['rejection'], reason?: string) =>
      report({ entries: [{ ...entry, rejection, reason }] }).rows[0]?.reasons[0]?.next;
    expect(advice('access-token-invalid', 'audience')).toMatch(/^Its `aud` contains none of/);
    expect(advice('access-token-invalid', 'unheard-of')).toMatch(/^Refresh it\./);
    expect(advice('bad-request-target', 'malformed')).toMatch(/^Send the plain path\./);
  });
});
