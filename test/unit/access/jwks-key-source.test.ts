import { describe, expect, it } from 'vitest';
import { first, passed, second, setUpJwks, times, unavailable } from './jwks-setup.ts';
import { makeSigner, type Signer } from './signing.ts';

const nameless = makeSigner('ES256');
const otherNameless = makeSigner('ES256');
const outsider = makeSigner('ES256', 'outsider');
const unknownKey = { rejection: 'access-token-invalid', reason: 'unknown-key' };
const signature = { rejection: 'access-token-invalid', reason: 'signature' };

describe('first keys', () => {
  it('are fetched once, at start', async () => {
    const { server, source, timer, verify } = await setUpJwks([first]);
    await source.refresh();
    expect(await verify(first)).toEqual(passed);
    expect([server.hits, timer.delayMs]).toEqual([1, 300_000]);
    expect(source.status()).toMatchObject({
      kind: 'jwks',
      keys: 1,
      loads: 1,
      failures: 0,
      lastError: undefined,
    });
  });

  it('are missing: keys-unavailable at once, with attempts that back off', async () => {
    const { server, clock, timer, source, verify } = await setUpJwks([first]);
    server.goDown();
    await source.refresh();
    const delays: number[] = [];
    for (let attempt = 1; attempt <= 7; attempt++) {
      delays.push(timer.delayMs);
      const verdicts = await Promise.all(times(100, () => verify(first)));
      expect(verdicts).toEqual(times(100, () => unavailable(timer.delayMs / 1000)));
      expect(server.hits).toBe(attempt);
      clock.nowMs += timer.delayMs;
      expect(await verify(first)).toHaveProperty('rejection', 'keys-unavailable');
    }
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(source.status()).toMatchObject({ keys: 0, failures: 8, lastError: 'unreachable ECONNRESET' });
    expect(source.status().lastSuccessMs).toBeUndefined();
    server.serve(first);
    timer.run();
    await source.refresh();
    expect(await verify(first)).toEqual(passed);
  });
});

describe('unknown kid', () => {
  it('is invalid after a fetch without the key; unavailable until the next fetch is allowed', async () => {
    const { server, clock, source, verify } = await setUpJwks([first], { fetchIntervalMs: 5_000 });
    await source.refresh();
    const ask = async () => {
      const verdicts = await Promise.all(times(200, (index) => verify(second, `invented-${index}`)));
      expect(verdicts).toEqual(times(200, () => unknownKey));
    };
    await ask();
    expect(server.hits).toBe(2);
    // Without a newer fetch the source cannot know whether the key exists.
    expect(await Promise.all(times(500, () => verify(second)))).toEqual(times(500, () => unavailable(5)));
    clock.nowMs += 3_000;
    expect(await verify(second)).toEqual(unavailable(2));
    expect(server.hits).toBe(2);
    clock.nowMs += 2_000;
    await ask();
    expect(server.hits).toBe(3);
    expect(await verify(first)).toEqual(passed);
  });

  it('four rotations, each after an invented kid: tokens of the new key pass at once', async () => {
    const third = makeSigner('ES256', 'third');
    const { server, clock, source, verify } = await setUpJwks([first]);
    await source.refresh();
    for (const signer of [second, third, first, second]) {
      clock.nowMs += 10_000;
      expect(await verify(signer, 'invented')).toEqual(unknownKey);
      server.serve(signer);
      expect(await Promise.all(times(60, () => verify(signer)))).toEqual(times(60, () => passed));
    }
  });

  it.each([
    ['named', [first, second, makeSigner('ES256', 'third')]],
    ['nameless', [nameless, otherNameless, makeSigner('ES256')]],
  ])(
    'under a flood, a good token of a new key (%s) passes or is unavailable, never invalid',
    async (_, signers) => {
      const { server, clock, source, verify } = await setUpJwks([signers[0] as Signer], {
        fetchIntervalMs: 20,
      });
      await source.refresh();
      const flood = () => times(30, (index) => verify(outsider, `invented-${index}`));
      const seen = new Set<unknown>();
      for (const signer of [...signers.slice(1), ...signers]) {
        server.serve(signer);
        for (let step = 0; step < 12; step++) {
          const flooded = flood();
          const verdict = await verify(signer);
          seen.add('rejection' in verdict ? verdict.rejection : 'passed');
          await Promise.all(flooded);
          clock.nowMs += 500;
        }
        expect(await verify(signer)).toEqual(passed);
      }
      expect([...seen].filter((word) => word !== 'keys-unavailable')).toEqual(['passed']);
    },
  );

  it.each([
    ['has the new key', passed],
    ['has no new key', unknownKey],
    ['fails', unavailable(30)],
  ])('that arrives during a fetch waits for a second fetch, which decides: it %s', async (how, verdict) => {
    const { server, source, verify } = await setUpJwks([first]);
    await source.refresh();
    const hit = server.nextHit();
    const release = server.delay(first);
    const background = source.refresh();
    await hit;
    const asked = verify(second);
    release();
    if (how === 'fails') server.goDown();
    else server.serve(...(how === 'has the new key' ? [first, second] : [first]));
    await background;
    expect(await asked).toEqual(verdict);
    expect(server.hits).toBe(3);
  });

  it('while the server hangs: 256 requests wait, the next ones are unavailable', async () => {
    const most = 256;
    const { server, source, verify } = await setUpJwks([first]);
    await source.refresh();
    const release = server.delay(first, second);
    const hit = server.nextHit();
    const verdicts = times(most + 15, () => verify(second));
    await hit;
    expect(await Promise.all(verdicts.slice(most))).toEqual(times(15, () => unavailable(1)));
    expect(await verify(first)).toEqual(passed);
    release();
    expect(await Promise.all(verdicts.slice(0, most))).toEqual(times(most, () => passed));
    expect(await verify(outsider)).toEqual(unknownKey);
  });
});

// Concurrent, because these requests wait for the next fetch in real time.
describe.concurrent('unknown kid, the next fetch', () => {
  it('is asked for at most once per interval, under 1200 requests with invented kids', async (test) => {
    const { server, clock, source, verify } = await setUpJwks([first], { fetchIntervalMs: 5_000 }, test);
    await source.refresh();
    // A minute by the test's clock. Four ticks are 20 ms shorter than the interval, so every fourth one waits for the next fetch.
    for (let tick = 0; tick < 48; tick++) {
      await Promise.all(times(25, (index) => verify(second, `invented-${tick}-${index}`)));
      clock.nowMs += 1_245;
    }
    expect(server.hits).toBeGreaterThanOrEqual(1 + 10);
    expect(server.hits).toBeLessThanOrEqual(1 + 12 + 1);
  });

  it('makes requests wait for a next fetch that is near; unavailable if it is a second away', async (test) => {
    const { server, clock, source, verify } = await setUpJwks([first], {}, test);
    await source.refresh();
    // The clock of the test does not move, so each fetch delays the next one by 250 ms.
    for (let fetch = 1; fetch <= 4; fetch++) {
      expect(await Promise.all(times(50, () => verify(second)))).toEqual(times(50, () => unknownKey));
      expect(server.hits).toBe(1 + fetch);
    }
    expect(await verify(second)).toEqual(unavailable(1));
    clock.nowMs += 10_000;
    expect(await verify(second)).toEqual(unknownKey);
    expect(server.hits).toBe(1 + 4 + 1);
  });
});

describe('keys without a kid', () => {
  it('of 20 keys, 16 are tried', async () => {
    const signers = times(20, () => makeSigner('ES256'));
    const { source, verify } = await setUpJwks(signers);
    await source.refresh();
    const verdicts = await Promise.all(signers.map((signer) => verify(signer)));
    expect(verdicts.slice(0, 16)).toEqual(times(16, () => passed));
    expect(verdicts.slice(16)).toEqual(times(4, () => signature));
  });
});

describe('rotation', () => {
  it('is detected by a signature that fits no key, if tokens and keys have no kid', async () => {
    const { server, source, verify } = await setUpJwks([nameless]);
    await source.refresh();
    server.serve(otherNameless);
    expect(await Promise.all(times(50, () => verify(otherNameless)))).toEqual(times(50, () => passed));
    expect(server.hits).toBe(2);
    expect(await verify(nameless)).toEqual(signature);
    expect(server.hits).toBe(3);
  });

  it('causes no fetch for a token that names a known key', async () => {
    const { server, source, verify } = await setUpJwks([first]);
    await source.refresh();
    expect(await verify(second, 'first')).toEqual(signature);
    expect(server.hits).toBe(1);
  });
});
