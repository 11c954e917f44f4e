import { describe, expect, it } from 'vitest';
import {
  createRateLimitMatcher,
  createRateLimits,
  type RateLimit,
  type RateLimitEvent,
} from '../../../src/rate-limits/filter.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

describe('the filter', () => {
  it('names buckets by digests alone, which differ by limit, client, kind and key', async () => {
    const names = new Set<string>();
    for (const digestKey of ['', 'a key of sixteen'])
      for (const path of ['/a', '/b'])
        for (const identity of [undefined, { subject: '192.0.2.1', scopes: [], expiresAtMs: 1 }]) {
          const limits = [{ method: 'GET' as const, path, requests: 1, perMs: 1000, observe: false }];
          const filter = createRateLimits(createRateLimitMatcher(limits, { ignoredPrefixes: [] }), {
            takeToken(bucket) {
              names.add(bucket);
              return 0;
            },
            networkOf: (address) => address,
            digestKey,
            onEvent: () => {},
          });
          const request = accepted(sampleHead({ url: path }));
          await filter.run(limits, { request, identity, body: undefined, isObserved: false });
        }
    expect(names.size).toBe(8);
    for (const name of names) expect(name).toMatch(/^[\w-]{32}$/);
  });
});

const limitOf = (path: string, more: Partial<RateLimit> = {}): RateLimit => ({
  ...{ method: 'GET', path, requests: 2, perMs: 1000, observe: false },
  ...more,
});

it.each<[RateLimit, boolean]>([
  [limitOf('/a', { method: 'POST', isEndpoint: true }), true],
  [limitOf('/a', { method: 'GET', isEndpoint: true }), false],
  [limitOf('/a', { method: 'ANY', isEndpoint: true }), false],
  [limitOf('/a', { method: 'GET' }), false],
])('%j alone: plain reads are skipped: %s', (limit, expected) => {
  const { skipsPlainReads, match } = createRateLimitMatcher([limit], { ignoredPrefixes: [] });
  expect(skipsPlainReads).toBe(expected);
  expect(match(accepted(sampleHead({ url: '/a' }))) === undefined).toBe(expected);
});

describe('what limits say of a request together', () => {
  const away = () => Promise.reject(new Error('away'));
  type Said = readonly [RateLimit, number | (() => Promise<number>)];

  async function run(said: readonly Said[], isObserved = false) {
    const events: RateLimitEvent[] = [];
    const queue = said.map(([, waitUs]) => waitUs);
    const limits = said.map(([limit]) => limit);
    const filter = createRateLimits(createRateLimitMatcher(limits, { ignoredPrefixes: [] }), {
      takeToken() {
        const next = queue.shift();
        if (next === undefined) throw new Error('asked too often');
        return typeof next === 'function' ? next() : next;
      },
      networkOf: (address) => address,
      digestKey: '',
      onEvent: (event) => events.push(event),
    });
    const request = accepted(sampleHead({ url: '/a' }));
    const outcome = await filter.run(limits, { request, identity: undefined, body: undefined, isObserved });
    return { events, outcome };
  }

  const a = limitOf('/a');
  const b = limitOf('/{b}', { requests: 9, perMs: 1001 });
  const soft = limitOf('/**', { observe: true });

  const refusal = (reason: string, retryAfterSeconds: number) => ({
    ...{ rejection: 'rate-limited', reason, retryAfterSeconds },
  });
  it.each<[string, readonly Said[], boolean, readonly RateLimitEvent[], unknown]>([
    ['a limit that is not reached: it passes', [[a, 0]], false, ['passed'], undefined],
    [
      'one of two limits is reached: that one is named',
      ...([
        [
          [a, 0],
          [b, 1_000_001],
        ],
        false,
        ['passed', 'refused'],
        refusal('GET /{b}', 2),
      ] as const),
    ],
    [
      'two limits are reached: the one with the longer wait is named',
      ...([
        [
          [a, 2_000_000],
          [b, 1_999_999],
        ],
        false,
        ['refused', 'refused'],
        refusal('GET /a', 2),
      ] as const),
    ],
    [
      'a limit in observe mode is reached: it passes, and the refusal is noted',
      ...([
        [
          [a, 0],
          [soft, 1],
        ],
        false,
        ['passed', 'observed'],
        { observed: refusal('GET /**', 1) },
      ] as const),
    ],
    [
      'a limit is reached on a row that observes: it passes, and the refusal is noted',
      ...([[[a, 3_000_000]], true, ['observed'], { observed: refusal('GET /a', 3) }] as const),
    ],
    ['the store is away: it passes', [[a, away]], false, ['unavailable'], undefined],
    [
      'the store is away for one of two limits: the other one counts',
      ...([
        [
          [a, away],
          [b, async () => 5_000_000],
        ],
        false,
        ['unavailable', 'refused'],
        refusal('GET /{b}', 5),
      ] as const),
    ],
  ])('%s', async (_, said, isObserved, events, expected) => {
    const seen = await run(said, isObserved);
    expect(seen.events).toEqual(events);
    expect(seen.outcome).toEqual(expected);
  });
});

describe('which requests a limit is about', () => {
  it('says it in words, and names limits where there are several', () => {
    const matcher = createRateLimitMatcher([], { ignoredPrefixes: [] });
    const text = (...limits: RateLimit[]) =>
      matcher.describe(limits, accepted(sampleHead()), (refusal) => `<${refusal}>`)?.text;
    expect(text(limitOf('/a', { perMs: 1500 }))).toBe(
      '2 requests in 1.5 s for each client; more are <rate-limited>',
    );
    expect(text(limitOf('/a'), limitOf('/b', { observe: true }))).toBe(
      'GET /a: 2 requests in 1 s for each client; more are <rate-limited>; ' +
        'GET /b: 2 requests in 1 s for each client; more are only counted',
    );
  });
});
