import { describe, expect, it, onTestFinished } from 'vitest';
import { createIssuers } from '../../../src/app/issuers.ts';
import { validateConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';
import { isRejection } from '../../../src/http/rejection.ts';
import { startJwksServer } from './jwks-server.ts';
import {
  encode,
  makeHmacToken,
  makeSigner,
  makeToken,
  publicPem,
  type Signer,
  signSegments,
} from './signing.ts';

const a = makeSigner('RS256', 'a');
const b = makeSigner('RS256', 'b');
/** The key of B, with the key id of A. */
const bAsA = { ...b, kid: 'a' };
const [issA, issB] = ['https://a.example/', 'https://b.example/realms/ü'];
const noLog = { info() {}, warn() {}, error() {}, debug() {} };

/** Two issuers made from a configuration, each with its own key server. */
async function setUp(more: { a?: object; b?: object; auth?: object } = {}, keysOfB: readonly Signer[] = [b]) {
  const [serverA, serverB] = [await startJwksServer(a), await startJwksServer(...keysOfB)];
  const { config, problems } = validateConfig({
    limits: { inFlight: 100 },
    auth: {
      issuers: [
        { issuer: issA, name: 'alpha', keys: { jwks: serverA.url }, audience: 'shop-a', ...more.a },
        { issuer: issB, name: 'beta', keys: { jwks: serverB.url }, audience: 'shop-b', ...more.b },
      ],
      ...more.auth,
    },
  });
  expect(problems.filter(({ severity }) => severity !== 'warning')).toEqual([]);
  const created = createIssuers(config as Config, noLog);
  for (const component of created.components) await component.start?.();
  onTestFinished(async () => {
    for (const component of created.components) await component.close?.();
    await Promise.all([serverA.close(), serverB.close()]);
  });
  const { verifier } = created.issuers;
  return { serverA, serverB, ...created, say: async (token: string) => word(await verifier.verify(token)) };
}

/** The subject, or the rejection and its reason. */
function word(verdict: object & { subject?: string }): string {
  return isRejection(verdict) ? `${verdict.rejection} ${verdict.reason}` : String(verdict.subject);
}

let serial = 0;
const seconds = () => Math.floor(Date.now() / 1000);
const ofA = () => {
  const times = { exp: seconds() + 60, iat: seconds() };
  return { iss: issA, aud: 'shop-a', sub: 'DE--21', ...times, jti: serial++ };
};
const ofB = () => ({ ...ofA(), iss: issB, aud: 'shop-b' });

describe('several issuers', () => {
  it('the same sub from two issuers: two subjects', async () => {
    const { say, issuers } = await setUp();
    expect(await say(makeToken(a, ofA()))).toBe('alpha DE--21');
    expect(await say(makeToken(b, ofB()))).toBe('beta DE--21');
    expect(await issuers.verify(makeToken(a, ofA()))).toMatchObject({ claimedSubject: 'DE--21' });
  });

  const header = encode({ alg: 'RS256' });
  it.each<[string, () => string, string]>([
    ['a key of B for the issuer A', () => makeToken(b, ofA()), 'unknown-key'],
    ['a key of B with the key id of A', () => makeToken(bAsA, ofA()), 'signature'],
    ['a key of B without a key id', () => makeToken(b, ofA(), { kid: undefined }), 'signature'],
    ['a token of A with the audience of B', () => makeToken(a, { ...ofA(), aud: 'shop-b' }), 'audience'],
    ['iss in other Unicode', () => makeToken(b, { ...ofB(), iss: issB.normalize('NFD') }), 'issuer'],
    ['iss in the header alone', () => makeToken(a, { ...ofA(), iss: undefined }, { iss: issA }), 'issuer'],
    ['a payload that is no JSON', () => signSegments(a, header, encode('{"iss"')), 'malformed'],
    ['a payload that is a list', () => signSegments(a, header, encode(`["${issA}"]`)), 'malformed'],
    ['HS256 with the public key of A', () => makeHmacToken(publicPem(a), ofA()), 'algorithm'],
    ['crit', () => makeToken(a, ofA(), { crit: ['exp'] }), 'critical'],
    ['alg none', () => makeToken(a, ofA(), { alg: 'none' }), 'algorithm'],
    ...[undefined, null, [issA], { toString: issA }, 0, '', 'https://a.example', issA.toUpperCase()]
      .concat([`${issA} `, 'x'.repeat(9000), '__proto__', 'alpha'])
      .map((iss): [string, () => string, string] => [
        `iss ${JSON.stringify(iss)?.slice(0, 40)}`,
        () => makeToken(a, { ...ofA(), iss }),
        'issuer',
      ]),
  ])('%s: refused', async (_, make, reason) => {
    const { say } = await setUp();
    expect(await say(make())).toBe(`access-token-invalid ${reason}`);
  });

  it('two iss members: the last one selects the keys and is checked', async () => {
    const { say } = await setUp();
    const twice = (signer: Signer, first: string, second: string, aud: string) => {
      const rest = JSON.stringify({ sub: 'DE--21', aud, exp: seconds() + 60, iat: seconds() }).slice(1);
      const payload = `{"iss":${JSON.stringify(first)},"iss":${JSON.stringify(second)},${rest}`;
      return signSegments(signer, header, encode(payload));
    };
    expect(await say(twice(b, issB, issA, 'shop-a'))).toBe('access-token-invalid signature');
    expect(await say(twice(b, issA, issB, 'shop-a'))).toBe('access-token-invalid audience');
    expect(await say(twice(b, issA, issB, 'shop-b'))).toBe('beta DE--21');
  });

  it('one key id at both issuers: each key verifies only the tokens of its issuer', async () => {
    const { say } = await setUp({}, [bAsA]);
    expect(await say(makeToken(a, ofA()))).toBe('alpha DE--21');
    expect(await say(makeToken(bAsA, ofB()))).toBe('beta DE--21');
    expect(await say(makeToken(bAsA, ofA()))).toBe('access-token-invalid signature');
    expect(await say(makeToken(a, ofB()))).toBe('access-token-invalid signature');
  });

  it('each has its own algorithms, maximum age and claims', async () => {
    const secret = 'a secret of B, long enough to be one';
    const { say } = await setUp({
      auth: { maxTokenAge: '10m' },
      b: { keys: { secret }, algorithms: ['HS256'], maxTokenAge: 'none', subject: 'who', scopes: ['scp'] },
    });
    const old = { iat: seconds() - 3600, who: 'B1' };
    expect(await say(makeHmacToken(secret, { ...ofB(), ...old }))).toBe('beta B1');
    expect(await say(makeHmacToken(secret, { ...ofA(), ...old }))).toBe('access-token-invalid algorithm');
    expect(await say(makeToken(a, { ...ofA(), ...old }))).toBe('access-token-invalid too-old');
    expect(await say(makeToken(a, ofB()))).toBe('access-token-invalid algorithm');
  });

  it('40 tokens of unknown keys of A: 25 wait, 15 are refused, a token of B passes', async () => {
    const { serverA, say, issuers } = await setUp();
    const release = serverA.delay(a);
    const waiting = Array.from({ length: 40 }, (_, i) => say(makeToken({ ...a, kid: `k${i}` }, ofA())));
    await serverA.nextHit().catch(() => {});
    expect(issuers.all[0]?.signed?.status().verifying).toBe(25);
    expect(await say(makeToken(b, ofB()))).toBe('beta DE--21');
    release();
    const words = await Promise.all(waiting);
    expect(words.filter((one) => one === 'overloaded verifications')).toHaveLength(15);
  });

  it('an issuer without a key is down, but does not make the process unready', async () => {
    const { components } = await setUp({}, []);
    const healths = components.map(({ name, health }) => ({ name, ...health?.() }));
    expect(healths).toMatchObject([
      { name: 'keys-alpha', status: 'ok', isUnready: false },
      { name: 'keys-beta', status: 'down', isUnready: false },
    ]);
  });
});
