import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { judgeJwksUrl } from '../../src/protection/jwks-fetch.ts';
import { createJwksKeySource, type JwksKeySourceOptions } from '../../src/protection/jwks-key-source.ts';
import { createTokenVerifier } from '../../src/protection/token-verifier.ts';
import { serveJson, startJwksServer } from './jwks-server.ts';
import { makeSigner, makeToken, publicJwk, type Signer } from './signing.ts';

const first = makeSigner('ES256', 'first');
const second = makeSigner('ES256', 'second');
const nameless = makeSigner('ES256');
const otherNameless = makeSigner('ES256');
const cooldownMs = 30_000;

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** A source on a clock and a timer that only move when the test says so. */
async function setUp(signers: readonly Signer[], options: Partial<JwksKeySourceOptions> = {}) {
  const server = await startJwksServer(...signers);
  const clock = { nowMs: 1_700_000_000_000 };
  const timer = { run: () => {}, delayMs: 0 };
  const source = createJwksKeySource({
    url: server.url,
    algorithms: ['ES256'],
    now: () => clock.nowMs,
    schedule(run, delayMs) {
      Object.assign(timer, { run, delayMs });
      return () => Object.assign(timer, { run: () => {}, delayMs: 0 });
    },
    ...options,
  });
  const verifier = createTokenVerifier({
    algorithms: ['ES256'],
    keySource: source,
    clockToleranceMs: 0,
    subject: 'sub',
    now: () => clock.nowMs,
  });
  cleanUps.push(
    () => server.close(),
    () => source.close(),
  );
  let serial = 0;
  /** A good token, never the same twice, so that none is remembered. */
  const verify = (signer: Signer, kid = signer.kid) =>
    verifier.verify(makeToken(signer, { sub: `${serial++}`, exp: 2_000_000_000 }, { kid }));
  return { server, clock, timer, source, verifier, verify };
}

const passed = expect.objectContaining({ subject: expect.any(String) });
const unknownKey = { rejection: 'access-token-invalid', reason: 'unknown-key' };
const signature = { rejection: 'access-token-invalid', reason: 'signature' };
function unavailable(retryAfterSeconds: number) {
  return { rejection: 'keys-unavailable', reason: 'keys', retryAfterSeconds };
}
function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

describe('first keys', () => {
  it('are fetched once, at start', async () => {
    const { server, source, timer, verify } = await setUp([first]);
    await source.start();
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

  it('are fetched once by the first requests where nobody started the source', async () => {
    const { server, verify } = await setUp([first]);
    expect(await Promise.all(times(50, () => verify(first)))).toEqual(times(50, () => passed));
    expect(server.hits).toBe(1);
  });

  it('cannot be had: 503 at once, with attempts that back off', async () => {
    const { server, clock, timer, source, verify } = await setUp([first]);
    server.goDown();
    await source.start();
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
    expect(source.status()).toMatchObject({
      keys: 0,
      failures: 8,
      lastError: 'unreachable',
      lastSuccessMs: undefined,
    });
    server.serve(first);
    timer.run();
    await source.refresh();
    expect(await verify(first)).toEqual(passed);
  });
});

describe('unknown kid', () => {
  it('has keys fetched once per cooldown, however many ask', async () => {
    const { server, clock, source, verify } = await setUp([first]);
    await source.start();
    for (let round = 1; round <= 3; round++) {
      const verdicts = await Promise.all(times(500, (index) => verify(second, `unknown-${index % 100}`)));
      const refused = verdicts.filter((verdict) => 'reason' in verdict && verdict.reason === 'unknown-key');
      expect(refused.length).toBeGreaterThan(0);
      expect(verdicts.every((verdict) => 'rejection' in verdict)).toBe(true);
      expect(server.hits).toBe(1 + round);
      clock.nowMs += cooldownMs - 1;
      expect(await verify(second, 'unknown')).toEqual(unknownKey);
      expect(server.hits).toBe(1 + round);
      clock.nowMs += 1;
    }
  });

  it('counts failures as cooldown, and is not called invalid while nobody can know', async () => {
    const { server, clock, source, verify } = await setUp([first]);
    await source.start();
    server.goDown();
    for (let round = 1; round <= 3; round++) {
      const verdicts = await Promise.all(times(500, () => verify(second)));
      expect(new Set(verdicts.map((verdict) => ('rejection' in verdict ? verdict.rejection : '')))).toEqual(
        new Set(['keys-unavailable']),
      );
      expect(server.hits).toBe(1 + round);
      expect(await verify(second)).toEqual(unavailable(30));
      expect(await verify(first)).toEqual(passed);
      clock.nowMs += cooldownMs;
    }
  });

  it('finds a new key within the same request', async () => {
    const { server, source, verify } = await setUp([first]);
    await source.start();
    server.serve(first, second);
    expect(await Promise.all(times(100, () => verify(second)))).toEqual(times(100, () => passed));
    expect(server.hits).toBe(2);
  });

  it('asks again where the fetch under way may have seen the old keys', async () => {
    const { server, source, verify } = await setUp([first]);
    await source.start();
    const hit = server.nextHit();
    const release = server.hold(first);
    const background = source.refresh();
    await hit;
    const verdict = verify(second);
    release();
    server.serve(first, second);
    await background;
    expect(await verdict).toEqual(passed);
    expect(server.hits).toBe(3);
  });

  it('lets a bounded number wait for a source that hangs', async () => {
    const { server, source, verify } = await setUp([first], { maxWaiting: 5 });
    await source.start();
    const release = server.hold(first, second);
    const hit = server.nextHit();
    const verdicts = times(20, () => verify(second));
    await hit;
    expect(await Promise.all(verdicts.slice(5))).toEqual(times(15, () => unavailable(1)));
    expect(await verify(first)).toEqual(passed);
    release();
    expect(await Promise.all(verdicts.slice(0, 5))).toEqual(times(5, () => passed));
  });
});

describe('rotation', () => {
  it('under load refuses no good token', async () => {
    const { server, source, verify } = await setUp([first]);
    await source.start();
    const verdicts: unknown[] = [];
    const load = async (signer: Signer) => {
      for (let i = 0; i < 20; i++) verdicts.push(await verify(signer));
    };
    const before = times(10, () => load(first));
    server.serve(first, second);
    const after = times(10, () => load(second));
    await Promise.all([...before, ...after]);
    expect(verdicts).toEqual(times(400, () => passed));
    expect(server.hits).toBe(2);
  });

  it('is seen by the signature where tokens and keys have no kid', async () => {
    const { server, clock, source, verify } = await setUp([nameless]);
    await source.start();
    server.serve(otherNameless);
    expect(await Promise.all(times(50, () => verify(otherNameless)))).toEqual(times(50, () => passed));
    expect(server.hits).toBe(2);
    expect(await verify(nameless)).toEqual(signature);
    expect(server.hits).toBe(2);
    clock.nowMs += cooldownMs;
    expect(await verify(nameless)).toEqual(signature);
    expect(server.hits).toBe(3);
  });

  it('is not looked for where the token names a known key', async () => {
    const { server, source, verify } = await setUp([first]);
    await source.start();
    expect(await verify(second, 'first')).toEqual(signature);
    expect(server.hits).toBe(1);
  });

  it('ends tokens of a removed key with the next background fetch, remembered ones too', async () => {
    const { server, source, verifier, timer } = await setUp([first, second]);
    await source.start();
    const token = makeToken(first, { sub: 'a', exp: 2_000_000_000 });
    expect(await verifier.verify(token)).toEqual(passed);
    timer.run();
    await source.refresh();
    expect(verifier.status().remembered).toBe(1);
    server.serve(second);
    timer.run();
    await source.refresh();
    expect(verifier.status().remembered).toBe(0);
    expect(await verifier.verify(token)).toEqual(unknownKey);
  });
});

describe('a source that fails', () => {
  const flood = (response: ServerResponse) => {
    response.setHeader('Content-Type', 'application/json');
    response.write(`{"keys":[],"x":"`);
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
      response.once('drain', more);
    };
    more();
  };
  const redirect = (status: number) => (response: ServerResponse) =>
    response.writeHead(status, { Location: '/jwks.json' }).end();
  const weak = { ...publicJwk(makeSigner('RS256')), e: 'AQ' };
  const twins = { keys: [publicJwk(first), publicJwk(second, { kid: 'first' })] };
  const tooLarge = { keys: [publicJwk(second)], x: 'x'.repeat(262_144) };
  const bomb = gzipSync(JSON.stringify({ keys: [], x: 'x'.repeat(10_000_000) }));

  it.each<[string, (response: ServerResponse) => void, string]>([
    ['is down', (response) => response.destroy(), 'unreachable'],
    [
      'breaks off',
      (response) =>
        void response.writeHead(200, { 'Content-Length': 99 }).write('{', () => response.destroy()),
      'unreachable',
    ],
    ['answers 500', (response) => response.writeHead(500).end('{"keys":[]}'), 'status'],
    ['answers 404', (response) => response.writeHead(404).end(), 'status'],
    ['answers 204', (response) => response.writeHead(204).end(), 'status'],
    ['redirects', redirect(302), 'redirect'],
    ['redirects for good', redirect(308), 'redirect'],
    ['sends too much', serveJson(tooLarge), 'too-large'],
    ['sends without end', flood, 'too-large'],
    [
      'sends a gzip bomb',
      (response) => response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(bomb),
      'too-large',
    ],
    ['sends HTML', serveJson('<html>'), 'malformed'],
    ['sends half', serveJson('{"keys":[{"kty":'), 'malformed'],
    ['sends nothing', serveJson(''), 'malformed'],
    ['sends another document', serveJson({ issuer: 'x' }), 'malformed'],
    ['sends null', serveJson('null'), 'malformed'],
    ['sends an empty set', serveJson({ keys: [] }), 'empty'],
    [
      'sends only what cannot be used',
      serveJson({ keys: [weak, null, 7, { kty: 'oct', k: 'AAAA' }] }),
      'empty',
    ],
    ['sends private keys', serveJson({ keys: [second.privateKey.export({ format: 'jwk' })] }), 'empty'],
    ['sends two keys of one kid', serveJson(twins), 'ambiguous'],
    [
      'sends members that no parser likes',
      serveJson('{"keys":[{"kty":"EC","alg":{"toString":1},"kid":{"a":[]}}]}'),
      'empty',
    ],
  ])('%s: the old keys stay', async (_, respond, word) => {
    const { server, clock, source, timer, verify } = await setUp([first], { algorithms: ['ES256', 'RS256'] });
    await source.start();
    server.answer(respond);
    clock.nowMs += 300_000;
    timer.run();
    await source.refresh();
    expect(source.status()).toMatchObject({ keys: 1, failures: 1, lastError: word });
    expect([server.hits, timer.delayMs]).toEqual([2, 1_000]);
    expect(await verify(first)).toEqual(passed);
    server.serve(second);
    timer.run();
    await source.refresh();
    expect(source.status()).toMatchObject({ keys: 1, failures: 1, lastError: undefined });
    expect([await verify(second), timer.delayMs]).toEqual([passed, 300_000]);
  });

  it('hangs: the fetch is given up', async () => {
    const { server, source, verify } = await setUp([first], { timeoutMs: 50 });
    const release = server.hold();
    await source.start();
    expect(source.status()).toMatchObject({ keys: 0, lastError: 'timeout' });
    expect(await verify(first)).toEqual(unavailable(1));
    release();
  });

  it('hangs in the middle of the document: the same', async () => {
    const { server, source } = await setUp([first], { timeoutMs: 50 });
    server.answer((response) => void response.writeHead(200).write('{"keys":['));
    await source.start();
    expect(source.status()).toMatchObject({ keys: 0, lastError: 'timeout' });
  });

  it('uses the good keys of a set that holds bad ones, and says how many those are', async () => {
    const { server, source, verify } = await setUp([first]);
    server.answer(
      serveJson({
        keys: [weak, publicJwk(second, { use: 'enc', kid: 'first' }), publicJwk(first), { kty: 'oct' }],
      }),
    );
    await source.start();
    expect(source.status()).toMatchObject({ keys: 1, unusableKeys: 3, lastError: undefined });
    expect(await verify(first)).toEqual(passed);
  });
});

it('stops at close: no fetch, no timer, and what hangs is let go', async () => {
  const { server, source, timer, verify } = await setUp([first]);
  const hit = server.nextHit();
  let wasLetGo: Promise<unknown> = Promise.resolve();
  server.answer((response) => {
    wasLetGo = once(response, 'close');
  });
  const starting = source.start();
  await hit;
  source.close();
  await Promise.all([starting, wasLetGo]);
  expect(timer.delayMs).toBe(0);
  expect(await verify(first)).toHaveProperty('rejection', 'keys-unavailable');
  await source.refresh();
  expect(server.hits).toBe(1);
});

it.each([
  ['https://shop.example/jwks.json', undefined],
  ['http://127.0.0.1:9000/jwks', undefined],
  ['file:///etc/passwd', 'is neither https nor http'],
  ['data:application/json,{}', 'is neither https nor http'],
  ['shop.example/jwks', 'is not a URL'],
  ['https://a:b@shop.example/', 'holds credentials'],
])('judgeJwksUrl(%j): %j', (url, problem) => {
  expect(judgeJwksUrl(url)).toBe(problem);
});
