import { createServer, type RequestListener } from 'node:http';
import { describe, expect, it, type TestContext } from 'vitest';
import { ClockCheck } from '../../src/app/clock.ts';
import { closingAtEnd } from '../harness/closing-at-end.ts';
import { eventually } from '../harness/eventually.ts';
import { listen } from '../harness/listen.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { startShiftedRedis } from '../resilience/faults/shifted-redis.ts';
import { serveKeys } from '../unit/access/jwks-server.ts';
import { makeSigner, makeToken } from '../unit/access/signing.ts';

/** A server whose `Date` is off by that many seconds. */
async function startServer(
  open: ReturnType<typeof closingAtEnd>,
  offSeconds: () => number,
  listener: RequestListener,
) {
  const server = createServer((request, response) => {
    response.setHeader('Date', new Date(Date.now() + 1000 * offSeconds()).toUTCString());
    listener(request, response);
  });
  return open(await listen(server)).url;
}

/** A proxy whose three sources of time may be off. */
async function start(context: TestContext, off: { shop: number; keys: number; redis: number }) {
  const open = closingAtEnd(context);
  const redis = await startShiftedRedis();
  if (redis === undefined) return undefined;
  open(redis);
  redis.setClock(off.redis);
  const shop = await startServer(
    open,
    () => off.shop,
    (_, response) => response.end('[]'),
  );
  const signer = makeSigner('ES256');
  const keys = await startServer(
    open,
    () => off.keys,
    (_, response) => serveKeys([signer])(response),
  );
  const shopward = await startShopwardHere({
    upstream: shop,
    rows: ['GET /secret'],
    config: { store: { url: redis.url }, auth: { algorithms: ['ES256'], keys: { jwks: keys } } },
  });
  open({ close: () => shopward.stop() });
  const reasons = async () => {
    await fetch(`${shopward.url}/open`);
    return (await (await fetch(`${shopward.adminUrl}/readyz`)).text()) ?? '';
  };
  return { off, redis, shopward, reasons, signer };
}

describe.concurrent('a clock that differs is on /readyz, in the log and in the metrics', () => {
  it.for([
    [
      'shop',
      3600,
      /clock: the shop is 3[56]\d\d s ahead of this machine, and this machine agrees with Redis and the key source/,
      'the shop',
    ],
    ['shop', -3600, /clock: this machine is 3[56]\d\d s ahead of the shop/, 'the shop'],
    [
      'redis',
      90,
      /clock: Redis is [89]\d s ahead of this machine, and this machine agrees with the shop/,
      'Redis',
    ],
    ['redis', -90, /clock: this machine is [89]\d s ahead of Redis/, 'Redis'],
    ['keys', 600, /clock: the key source is [56]\d\d s ahead of this machine/, 'the key source'],
  ] as const)('%s by %i s', async ([source, seconds, reason, name], context) => {
    const one = await start(context, { shop: 0, keys: 0, redis: 0, [source]: seconds });
    if (one === undefined) return;
    const { shopward, reasons } = one;
    const text = await eventually('a reason', async () => {
      const said = await reasons();
      return reason.test(said) ? said : undefined;
    });
    expect(text).toContain('auth.clockTolerance is 5s');
    expect(text.match(/clock: /g)).toHaveLength(1);
    expect(shopward.log().filter(({ event }) => event === 'clock')).toHaveLength(1);
    const metrics = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
    const [, value] =
      new RegExp(`shopward_clock_difference_seconds\\{source="${name}"\\} (\\S+)`).exec(metrics) ?? [];
    expect(Math.abs(Number(value) - Math.abs(seconds))).toBeLessThan(10);
  });
});

describe.concurrent('a token refused for `exp`, `nbf` or `iat` has the reason `clock` if a differing clock explains it', () => {
  const hour = 3600;
  it.for([
    ['shop', hour, { iat: hour / 2 }, 'clock'],
    ['shop', hour, { nbf: hour / 2 }, 'clock'],
    ['shop', -hour, { exp: -hour / 2 }, 'clock'],
    ['redis', -hour, { exp: -hour / 2 }, 'clock'],
    ['keys', hour, { nbf: hour / 2 }, 'clock'],
    ['shop', hour, { exp: -hour / 2 }, 'expired'],
    ['shop', -hour, { nbf: hour / 2 }, 'not-before'],
    ['shop', -hour, { exp: undefined }, 'no-expiry'],
    ['shop', 0, { exp: -hour / 2 }, 'expired'],
  ] as const)('%s by %i s, %o: %s', async ([source, seconds, offsets, reason], context) => {
    const one = await start(context, { shop: 0, keys: 0, redis: 0, [source]: seconds });
    if (one === undefined) return;
    const { shopward, reasons, signer } = one;
    await eventually(
      'the clocks',
      async () => (await reasons()).includes('clock: ') === (seconds !== 0) || undefined,
    );
    const now = Math.floor(Date.now() / 1000);
    const times = { exp: now + 2 * hour, ...mapValues(offsets, (offset) => offset && now + offset) };
    const Authorization = `Bearer ${makeToken(signer, { sub: 'DE--21', ...times })}`;
    expect((await fetch(`${shopward.url}/secret`, { headers: { Authorization } })).status).toBe(401);
    const line = await shopward.waitForLog(({ event, status }) => event === 'request' && status === 401);
    expect(line).toMatchObject({ rejection: 'access-token-invalid', reason });
  });
});

function mapValues<T, U>(map: Readonly<Record<string, T>>, change: (value: T) => U) {
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, change(value)]));
}

describe('the number of reported differences', () => {
  const open = (toleranceMs = 5_000) => {
    const at = { wall: 1_800_000_000_000, monotonic: 0 };
    const lines: string[] = [];
    const write = (_: object, text: string) => void lines.push(text);
    const log = { info: write, warn: write, error: write, debug: write };
    const check = new ClockCheck({ toleranceMs, log, now: () => at.wall, monotonic: () => at.monotonic });
    const pass = (ms: number) => {
      at.wall += ms;
      at.monotonic += ms;
    };
    return { at, check, lines, pass };
  };
  const dateOf = (ms: number) => ['Date', new Date(ms).toUTCString()];

  it.each<[string, (one: ReturnType<typeof open>) => void, number]>([
    ['one answer is not enough', ({ check, at }) => check.hear('redis', at.wall + 6_000, at.wall), 0],
    [
      'within the tolerance',
      ({ check, at }) => {
        for (let i = 0; i < 9; i++) check.hear('redis', at.wall + 5_000, at.wall);
      },
      0,
    ],
    [
      'a slow answer that shows a time after its request',
      ({ check, at, pass }) => {
        for (let i = 0; i < 9; i++) {
          const askedMs = at.wall;
          pass(20_000);
          check.hear('redis', askedMs + 10_000, askedMs);
        }
      },
      0,
    ],
    [
      'a cached answer with Age',
      ({ check, at }) => {
        for (let i = 0; i < 9; i++)
          check.hearDate('shop', [...dateOf(at.wall - 60_000), 'Age', '60'], at.wall);
      },
      0,
    ],
    [
      'no Date, or nonsense',
      ({ check, at }) => {
        const odd = ['', 'x', '2', '-1', '99999', '1e300', '2001-01-01', 'Thu, 01 Jan 1970 00:00:00 +0100'];
        for (const date of [...odd, ...odd]) check.hearDate('shop', ['Date', date], at.wall);
        for (let i = 0; i < 2; i++) check.hearDate('shop', [], at.wall);
        for (let i = 0; i < 2; i++) check.hearDate('shop', [...dateOf(0), ...dateOf(0)], at.wall);
      },
      0,
    ],
    [
      'answers that are ahead and behind in turn',
      ({ check, at }) => {
        for (let i = 0; i < 9; i++) check.hear('redis', at.wall + (i % 2 ? 60_000 : -60_000), at.wall);
      },
      0,
    ],
    [
      'two differing answers in a row',
      ({ check, at }) => {
        for (let i = 0; i < 2; i++) check.hearDate('shop', dateOf(at.wall - 60_000), at.wall);
      },
      1,
    ],
    [
      'our clock is set after two differing answers',
      ({ check, at }) => {
        for (let i = 0; i < 2; i++) check.hear('redis', at.wall + 60_000, at.wall);
        at.wall += 60_000;
        check.hear('shop', at.wall, at.wall);
      },
      0,
    ],
  ])('%s', (_, play, count) => {
    const one = open();
    play(one);
    expect(one.check.health().reasons).toHaveLength(count);
  });

  it('clocks agree again after a minute without a differing answer, and one line says so', () => {
    const { at, check, lines, pass } = open();
    const hear = (offMs: number, seconds: number) => {
      for (let i = 0; i < seconds; i++) {
        pass(1_000);
        check.hearDate('shop', dateOf(at.wall + offMs), at.wall);
      }
    };
    for (let i = 0; i < 20; i++) {
      hear(60_000, 2);
      hear(i % 2 === 0 ? 0 : -60_000, 50);
      expect(check.health().reasons).toHaveLength(1);
    }
    hear(0, 70);
    expect(check.health().reasons).toEqual([]);
    expect(lines).toEqual([expect.stringContaining('ahead of this machine'), 'the clocks agree again']);
  });
});
