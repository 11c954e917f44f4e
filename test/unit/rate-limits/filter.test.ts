import { describe, expect, it } from 'vitest';
import {
  createRateLimitMatcher,
  createRateLimits,
  type RateLimit,
  type RateLimitEvent,
} from '../../../src/rate-limits/filter.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

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

describe('several limits of one request', () => {
  const limits: Readonly<Record<string, RateLimit>> = {
    a: limitOf('/a'),
    b: limitOf('/{b}', { requests: 9, perMs: 1001 }),
    soft: limitOf('/**', { observe: true }),
  };

  /** `said`: each limit with its answer: `passes`, `away`, or the microseconds to wait after a refusal. */
  async function run(said: string, isObserved: boolean) {
    const events: RateLimitEvent[] = [];
    const answers = said.split(', ').map((one) => one.split(' ') as [string, string]);
    const matched = answers.map(([limit]) => limits[limit] as RateLimit);
    const filter = createRateLimits(createRateLimitMatcher(matched, { ignoredPrefixes: [] }), {
      takeToken() {
        const [, taken] = answers.shift() ?? [];
        if (taken === undefined) throw new Error('asked too often');
        if (taken === 'away') return Promise.reject(new Error('away'));
        return taken === 'passes'
          ? { isAllowed: true, remaining: 1, waitUs: 500_000 }
          : { isAllowed: false, remaining: 0, waitUs: Number(taken) };
      },
      digestKey: '',
      onEvent: (event) => events.push(event),
    });
    const request = accepted(sampleHead({ url: '/a' }));
    const outcome = await filter.run(matched, { request, identity: undefined, body: undefined, isObserved });
    return { events: events.join(' '), outcome };
  }

  const refusal = (path: string, retryAfterSeconds: number) => ({
    ...{ rejection: 'rate-limited', reason: `GET ${path}`, retryAfterSeconds },
  });
  const fieldsOf = (policy: string, left: string) => ['RateLimit-Policy', policy, 'RateLimit', left];
  const ofA = { responseFields: fieldsOf('"GET /a";q=2;w=1', '"GET /a";r=1;t=1') };
  const ofB = { fields: fieldsOf('"GET /{b}";q=9;w=2', '"GET /{b}";r=0;t=5') };
  const both = {
    fields: fieldsOf('"GET /a";q=2;w=1, "GET /{b}";q=9;w=2', '"GET /a";r=1;t=1, "GET /{b}";r=0;t=2'),
  };

  it.each<[string, string, string, object | undefined]>([
    ['a request that passes is told its rest', 'a passes', 'passed', ofA],
    [
      'of two limits the one that refuses counts, and both are named',
      'a passes, b 1000001',
      'passed refused',
      { ...refusal('/{b}', 2), ...both },
    ],
    [
      'of two limits that refuse the longer wait counts',
      'a 2000000, b 1999999',
      'refused refused',
      refusal('/a', 2),
    ],
    ['of two equal refusals the first counts', 'a 0, b 0', 'refused refused', refusal('/a', 1)],
    ['a limit that only counts tells the client nothing', 'soft passes', 'passed', undefined],
    [
      'a request beyond a limit that only counts passes, and is noted',
      'a passes, soft 1',
      'passed observed',
      { ...ofA, observed: refusal('/**', 1) },
    ],
    ['in observe mode nothing is refused', 'a 3000000', 'observed', { observed: refusal('/a', 3) }],
    ['a store that is away refuses nothing', 'a away', 'unavailable', undefined],
    [
      'if the store is away for one limit, another limit still refuses',
      'a away, b 5000000',
      'unavailable refused',
      { ...refusal('/{b}', 5), ...ofB },
    ],
  ])('%s', async (title, said, events, expected) => {
    const seen = await run(said, title.startsWith('in observe mode'));
    expect(seen.events).toBe(events);
    if (expected === undefined) expect(seen.outcome).toBeUndefined();
    else expect(seen.outcome).toMatchObject(expected);
  });
});

describe('the description of limits', () => {
  it('is in words, and names each limit if there are several', () => {
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
