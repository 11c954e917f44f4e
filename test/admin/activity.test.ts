import { describe, expect, it } from 'vitest';
import { createActivity, createTimeline } from '../../src/admin/activity.ts';
import type { ExchangeRecord } from '../../src/telemetry/exchange-record.ts';
import { exchangeRecord } from './exchange-records.ts';

const refused = (record: Partial<ExchangeRecord>) =>
  exchangeRecord({ decision: 'refused', status: 401, rejection: 'access-token-missing', ...record });

describe('counts of rows', () => {
  const rows = [
    { method: 'GET', template: '/carts' },
    { method: 'ANY', template: '/orders/**' },
    { method: 'PATCH', template: '/carts/{id}' },
    { method: 'DELETE', template: '/carts/{id}' },
    { method: 'ANY', template: '/mixed' },
    { method: 'GET', template: '/mixed' },
  ] as const;
  const requestsOf = (records: readonly Partial<ExchangeRecord>[]) => {
    const activity = createActivity();
    for (const record of records) activity.note(exchangeRecord(record), 1_000);
    return activity.countRows(rows).map((count) => count?.requests ?? 0);
  };

  it.each([
    ['nothing', [], [0, 0, 0, 0, 0, 0]],
    ['an open route', [{ route: '*', path: '/carts' }], [0, 0, 0, 0, 0, 0]],
    ['an own endpoint', [{ route: '/url-resolver' }], [0, 0, 0, 0, 0, 0]],
    [
      'GET and HEAD of one row',
      [{ route: '/carts' }, { route: '/carts', method: 'HEAD' }],
      [2, 0, 0, 0, 0, 0],
    ],
    ['any method', [{ route: '/orders/**' }, { route: '/orders/**', method: 'POST' }], [0, 2, 0, 0, 0, 0]],
    ['the method of a row', [{ route: '/carts/{id}', method: 'DELETE' }], [0, 0, 0, 1, 0, 0]],
    [
      'a form POST, which the first row decides',
      [{ route: '/carts/{id}', method: 'POST' }],
      [0, 0, 1, 0, 0, 0],
    ],
    [
      'rows of one path with and without a method',
      [{ route: '/mixed' }, { route: '/mixed', method: 'PUT' }, { route: '/mixed', method: 'PUT' }],
      [0, 0, 0, 0, 2, 1],
    ],
  ] as const)('%s', (_, records, expected) => {
    expect(requestsOf(records)).toEqual(expected);
  });

  it('rows of one route are met by the same requests', () => {
    const twins = [
      { method: 'GET', template: '/customers/{reference}' },
      { method: 'GET', template: '/Customers/{id}' },
      { method: 'PATCH', template: '/customers/{id}' },
    ] as const;
    const activity = createActivity();
    activity.note(exchangeRecord({ route: '/customers/{reference}' }), 1);
    expect(activity.countRows(twins).map((count) => count?.requests)).toEqual([1, 1, undefined]);
  });

  it('holds refusals by name, observed ones apart, and when a row was last met', () => {
    const activity = createActivity();
    activity.note(refused({ route: '/carts' }), 1_000);
    activity.note(refused({ route: '/carts', rejection: 'access-token-invalid' }), 2_000);
    activity.note(exchangeRecord({ route: '/carts', observed: 'access-token-missing' }), 3_000);
    const [count, never] = activity.countRows(rows);
    expect(count).toEqual({
      requests: 3,
      refusals: new Map([
        ['access-token-missing', 1],
        ['access-token-invalid', 1],
      ]),
      observed: new Map([['access-token-missing', 1]]),
      lastSeenMs: 3_000,
    });
    expect(never).toBeUndefined();
    expect(activity.total.requests).toBe(3);
    expect(activity.open.requests).toBe(0);
  });

  it('outlives a reload, and counts no more routes than it promises', () => {
    const activity = createActivity();
    activity.note(exchangeRecord({ route: '/carts' }), 1);
    for (let i = 0; i < 20_100; i++) activity.note(exchangeRecord({ route: `/other/${i}` }), 1);
    expect(activity.countRows(rows)[0]?.requests).toBe(1);
    expect(activity.countRows([{ method: 'GET', template: '/other/20099' }])).toEqual([undefined]);
    expect(activity.total.requests).toBe(20_101);
  });
});

it('knows how the upstream does from exchanges alone', () => {
  const { note, upstream } = createActivity();
  note(exchangeRecord(), 1_000);
  note(refused({ route: '/carts' }), 2_000);
  note(exchangeRecord({ decision: 'answered' }), 3_000);
  expect(upstream).toEqual({
    answers: 1,
    lastAnswerMs: 1_000,
    failures: 0,
    lastFailureMs: 0,
    lastFailure: undefined,
  });
  note(refused({ status: 504, rejection: 'upstream-timeout' }), 4_000);
  expect(upstream).toMatchObject({ failures: 1, lastFailureMs: 4_000, lastFailure: 'upstream-timeout' });
});

describe('the timeline', () => {
  it.each([
    ['passed', exchangeRecord()],
    ['passed', exchangeRecord({ status: 404 })],
    ['passed', exchangeRecord({ decision: 'answered' })],
    ['passed', exchangeRecord({ decision: 'aborted', status: 0 })],
    ['refused', refused({})],
    ['observed', exchangeRecord({ observed: 'access-token-missing' })],
    ['failed', exchangeRecord({ status: 500 })],
    ['failed', refused({ status: 502 })],
    ['failed', exchangeRecord({ decision: 'aborted', status: 200 })],
  ] as const)('has one place for each exchange: %s', (outcome, record) => {
    const timeline = createTimeline();
    timeline.note(record, 1_000_000);
    const reading = timeline.read(1_000_000);
    for (const one of ['passed', 'refused', 'observed', 'failed'] as const) {
      expect(
        reading[one].reduce((a, b) => a + b, 0),
        one,
      ).toBe(one === outcome ? 1 : 0);
    }
  });

  it('moves on, and forgets what is older than five minutes', () => {
    const timeline = createTimeline();
    const at = (seconds: number) => 1_000_000_000 + seconds * 1_000;
    timeline.note(exchangeRecord(), at(0));
    timeline.note(exchangeRecord(), at(4));
    timeline.note(exchangeRecord(), at(5));
    expect(timeline.read(at(9)).passed.slice(-3)).toEqual([0, 2, 1]);
    expect(timeline.read(at(9)).endMs).toBe(at(10));
    expect(timeline.read(at(298)).passed.slice(0, 2)).toEqual([2, 1]);
    expect(timeline.read(at(301)).passed.slice(0, 2)).toEqual([1, 0]);
    expect(timeline.read(at(3_600)).passed).toEqual(new Array(60).fill(0));
    timeline.note(exchangeRecord(), at(3_600));
    expect(timeline.read(at(3_600)).passed.at(-1)).toBe(1);
  });
});
