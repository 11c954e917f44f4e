import { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CanonicalRequest } from '../../../src/http/canonical-request.ts';
import { type Rejection, reject } from '../../../src/http/rejection.ts';
import { OpenWebSockets } from '../../../src/server/upgrade.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

const dayMs = 86_400_000;
const expired = reject('access-token-invalid', { reason: 'expired' });

describe('the checks of an open WebSocket', () => {
  beforeEach(
    () =>
      void vi.useFakeTimers({
        now: 1_000 * dayMs,
        toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'],
      }),
  );
  afterEach(() => void vi.useRealTimers());

  type Verdict = Rejection | 'admitted' | 'free';

  /** `verdict`: result of a list and key source that ignore the time. */
  function join(
    expiresInMs: number | undefined,
    verdict?: () => Verdict | Promise<Verdict>,
    isDraining = false,
  ) {
    const expiresAtMs = expiresInMs === undefined ? undefined : Date.now() + expiresInMs;
    const usual = () =>
      expiresAtMs !== undefined && expiresAtMs + 1_000 <= Date.now() ? expired : 'admitted';
    const checks: CanonicalRequest[] = [];
    const admits = (request: CanonicalRequest) => {
      checks.push(request);
      return (verdict ?? usual)();
    };
    const sockets = new OpenWebSockets({ clockToleranceMs: 1_000, admits });
    if (isDraining) sockets.close();
    const [client, upstream] = [new PassThrough(), new PassThrough()].map((one) =>
      Object.assign(one, { destroySoon: () => one.end() }),
    ) as unknown as [Socket, Socket];
    const identity = expiresAtMs === undefined ? undefined : { expiresAtMs };
    sockets.join(client, upstream, accepted(sampleHead()), identity);
    return { sockets, checks, client, isEnded: () => client.writableEnded };
  }

  it('it ends when its token and the tolerance have expired, to the millisecond', () => {
    const { isEnded } = join(45_000);
    vi.advanceTimersByTime(45_999);
    expect(isEnded()).toBe(false);
    vi.advanceTimersByTime(1);
    expect(isEnded()).toBe(true);
  });

  it.each([
    ['back', -dayMs, 60_999],
    ['forward', dayMs, 29_999],
  ])('it ends if the clock is set %s by a day', (_, jumpMs, stillOpenMs) => {
    const { isEnded } = join(60_000);
    vi.setSystemTime(Date.now() + jumpMs);
    vi.advanceTimersByTime(stillOpenMs);
    expect(isEnded()).toBe(false);
    vi.advanceTimersByTime(1);
    expect(isEnded()).toBe(true);
  });

  it.each<[string, () => Verdict | Promise<Verdict>, boolean]>([
    ['no longer needs a token: it stays open', () => 'free', false],
    ['is refused: it ends', () => reject('insufficient-scope'), true],
    ['is refused later: it ends', () => Promise.resolve(reject('access-token-missing')), true],
    ['cannot be checked, and its token has expired: it ends', () => reject('keys-unavailable'), true],
    [
      'throws: it ends',
      () => {
        throw new Error('a bug');
      },
      true,
    ],
    ['rejects: it ends', () => Promise.reject(new Error('a bug')), true],
  ])('the check after 30 s %s', async (_, verdict, isEnded) => {
    const one = join(20_000, verdict);
    await vi.advanceTimersByTimeAsync(31_000);
    expect(one.isEnded()).toBe(isEnded);
  });

  it.each(['keys-unavailable', 'overloaded', 'internal-error'] as const)(
    '%s does not end it before its token expires',
    (name) => {
      const one = join(90_000, () => reject(name));
      one.sockets.recheck();
      vi.advanceTimersByTime(90_999);
      expect(one.isEnded()).toBe(false);
      vi.advanceTimersByTime(1);
      expect(one.isEnded()).toBe(true);
    },
  );

  it.each([
    ['the list has changed', 'refused'],
    ['a drain has begun', 'drained'],
  ])('it ends at once if %s since its handshake was accepted', (_, how) => {
    const one = join(undefined, () => (how === 'refused' ? expired : 'free'), how === 'drained');
    expect([one.isEnded(), one.sockets.drained]).toEqual([true, how === 'drained' ? 1 : 0]);
  });

  it('an edit of the list checks it at once', () => {
    let verdict: Verdict = 'admitted';
    const { sockets, isEnded } = join(undefined, () => verdict);
    sockets.recheck();
    expect(isEnded()).toBe(false);
    verdict = expired;
    sockets.recheck();
    expect(isEnded()).toBe(true);
  });

  it('without a token it is checked every 30 s; no timer remains after its end', () => {
    const { sockets, checks, client } = join(undefined);
    vi.advanceTimersByTime(90_000);
    sockets.close();
    expect([checks.length, sockets.drained]).toEqual([4, 1]);
    client.emit('close');
    sockets.close();
    expect(sockets.drained).toBe(1);
    vi.advanceTimersByTime(1_000);
    expect(vi.getTimerCount()).toBe(0);
  });
});

it('an edit of the list checks at most 64 of 200 open WebSockets in a tick', async () => {
  let [checked, inTick, most] = [0, 0, 0];
  const admits = () => {
    checked += 1;
    inTick += 1;
    most = Math.max(most, inTick);
    return 'admitted' as const;
  };
  const webSockets = new OpenWebSockets({ admits, clockToleranceMs: 0 });
  const clients = Array.from({ length: 200 }, () => new Socket());
  for (const client of clients) webSockets.join(client, new Socket(), {} as CanonicalRequest, undefined);
  const all = Promise.withResolvers<void>();
  const nextTick = () => {
    inTick = 0;
    if (checked < 200) setImmediate(nextTick);
    else all.resolve();
  };
  // The tick of the first checks is over.
  for (let i = 0; i < 2; i += 1) await new Promise((resolve) => setImmediate(resolve));
  [checked, most] = [0, 0];
  nextTick();
  webSockets.recheck();
  await all.promise;
  for (const client of clients) client.destroy();
  expect([checked, most]).toEqual([200, 64]);
});
