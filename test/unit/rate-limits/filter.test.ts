import { describe, expect, it } from 'vitest';
import type { Taken } from '../../../src/rate-limits/buckets.ts';
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
              return { isAllowed: true, remaining: 0, waitUs: 1 };
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
  const passed: Taken = { isAllowed: true, remaining: 1, waitUs: 500_000 };
  const refused = (waitUs: number): Taken => ({ isAllowed: false, remaining: 0, waitUs });
  const away = () => Promise.reject(new Error('away'));
  type Said = readonly [RateLimit, Taken | (() => Promise<Taken>)];

  async function run(said: readonly Said[], isObserved = false) {
    const events: RateLimitEvent[] = [];
    const queue = said.map(([, taken]) => taken);
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

  const fieldsOf = (policy: string, left: string) => ['RateLimit-Policy', policy, 'RateLimit', left];
  const a = limitOf('/a');
  const b = limitOf('/{b}', { requests: 9, perMs: 1001 });
  const soft = limitOf('/**', { observe: true });
  const bothFields = fieldsOf('"GET /a";q=2;w=1, "GET /{b}";q=9;w=2', '"GET /a";r=1;t=1, "GET /{b}";r=0;t=2');

  it.each<[string, readonly Said[], boolean, readonly RateLimitEvent[], unknown]>([
    [
      'one that lets it pass says what is left',
      ...([[[a, passed]], false, ['passed']] as const),
      { responseFields: fieldsOf('"GET /a";q=2;w=1', '"GET /a";r=1;t=1') },
    ],
    [
      'of two the one that refuses counts, and both are named',
      [
        [a, passed],
        [b, refused(1_000_001)],
      ],
      ...([false, ['passed', 'refused']] as const),
      { rejection: 'rate-limited', reason: 'GET /{b}', retryAfterSeconds: 2, fields: bothFields },
    ],
    [
      'of two that refuse the one counts that refuses longer',
      [
        [a, refused(2_000_000)],
        [b, refused(1_999_999)],
      ],
      ...([false, ['refused', 'refused']] as const),
      { rejection: 'rate-limited', reason: 'GET /a', retryAfterSeconds: 2 },
    ],
    [
      'of two that refuse for as long the first one counts',
      [
        [a, refused(0)],
        [b, refused(0)],
      ],
      ...([false, ['refused', 'refused']] as const),
      { rejection: 'rate-limited', reason: 'GET /a', retryAfterSeconds: 1 },
    ],
    [
      'one that only counts tells the client nothing',
      ...([[[soft, passed]], false, ['passed']] as const),
      undefined,
    ],
    [
      'what it would refuse goes on, and is noted',
      [
        [a, passed],
        [soft, refused(1)],
      ],
      ...([false, ['passed', 'observed']] as const),
      {
        responseFields: fieldsOf('"GET /a";q=2;w=1', '"GET /a";r=1;t=1'),
        observed: { rejection: 'rate-limited', reason: 'GET /**', retryAfterSeconds: 1 },
      },
    ],
    [
      'where all is only observed, nothing is refused',
      ...([[[a, refused(3_000_000)]], true, ['observed']] as const),
      { observed: { rejection: 'rate-limited', reason: 'GET /a', retryAfterSeconds: 3 } },
    ],
    ['a store that is away refuses nothing', [[a, away]], false, ['unavailable'], undefined],
    [
      'a store that is away for one does not speak for the other',
      [
        [a, away],
        [b, async () => refused(5_000_000)],
      ],
      ...([false, ['unavailable', 'refused']] as const),
      { reason: 'GET /{b}', fields: fieldsOf('"GET /{b}";q=9;w=2', '"GET /{b}";r=0;t=5') },
    ],
  ])('%s', async (_, said, isObserved, events, expected) => {
    const seen = await run(said, isObserved);
    expect(seen.events).toEqual(events);
    if (expected === undefined) expect(seen.outcome).toBeUndefined();
    else expect(seen.outcome).toMatchObject(expected as object);
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
