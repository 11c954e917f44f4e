import { createSecretKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readBearerCredentials } from '../../../src/access/bearer-credentials.ts';
import { readKeyDocument, signatureAlgorithms } from '../../../src/access/key-document.ts';
import type { VerificationKey } from '../../../src/access/key-source.ts';
import { TokenVerifier } from '../../../src/access/token-verifier.ts';
import { isRejection } from '../../../src/http/rejection.ts';
import { StubKeySource } from '../../unit/access/stub-key-source.ts';

interface Group {
  readonly name: string;
  readonly key: { readonly kty?: string; readonly alg?: string; readonly k?: string; readonly kid?: string };
  readonly cases: Vector[];
}
type Vector = readonly [tcId: number, comment: string, result: string, jws: string | object];

function read(name: string): Group[] {
  const text = readFileSync(path.join(import.meta.dirname, 'wycheproof', name), 'utf8');
  const groups: Group[] = [];
  for (const line of text.trimEnd().split('\n')) {
    const value = JSON.parse(line) as Omit<Group, 'cases'> | Vector;
    if ('key' in value) groups.push({ ...value, cases: [] });
    else groups.at(-1)?.cases.push(value);
  }
  return groups;
}
const secretAlgorithms = ['HS256', 'HS384', 'HS512'];

/** Cases with another result than the suite's, and why. */
const signatureExceptions = new Map([
  ...[259, 264, 268, 272, 320, 325].map((tcId) => [tcId, 'an empty payload has no claims'] as const),
  [346, "the key is PS256's, the token PS384's"],
  [347, 'ES521 is not an algorithm'],
  [350, "the key is PS256's, the token PS384's"],
  [351, 'ES521 is not an algorithm'],
  [372, 'a question mark is not base64url'],
  [373, 'a question mark is not base64url'],
  [367, 'equal to the valid 357: the padding under test was lost'],
  [370, 'equal to the valid 357: the padding under test was lost'],
]);
/** A symmetric key is accepted from `auth.keys.secret` only, not from a key set. */
const keyExceptions = new Map([2, 13, 14, 15].map((tcId) => [tcId, 'a symmetric key']));

/** The keys that shopward accepts from the group's document. */
function keysOf({ key }: Group): readonly VerificationKey[] {
  const { kty, alg = '', k = '', kid } = key;
  if (kty !== 'oct') return readKeyDocument(JSON.stringify(key), signatureAlgorithms).keys;
  if (!secretAlgorithms.includes(alg)) return [];
  const material = createSecretKey(Buffer.from(k, 'base64url'));
  return [{ kid, algorithms: [alg], material, fingerprint: 'secret' }];
}

/** The payloads are no claims sets, so a signature counts as good when the token is refused for its payload. */
async function hasGoodSignature(keys: readonly VerificationKey[], jws: string): Promise<boolean> {
  const credentials = readBearerCredentials(['Authorization', `Bearer ${jws}`]);
  if (isRejection(credentials)) return false;
  const verifier = new TokenVerifier({
    algorithms: [...signatureAlgorithms, ...secretAlgorithms],
    keySource: new StubKeySource(keys),
    clockToleranceMs: 0,
    subject: 'sub',
    maxRememberedTokens: 0,
    now: Date.now,
  });
  const pending = verifier.verify(credentials.token);
  // A synchronous refusal is due to the header.
  if (!(pending instanceof Promise)) return false;
  const verdict = await pending;
  return !isRejection(verdict) || !['signature', 'unknown-key'].includes(verdict.reason ?? '');
}

/** Public test vectors. The library alone wrongly accepts four spellings of a token, a ROCA key and an exponent of 1. */
describe.each([
  ['json_web_signature_test.jsonl', 401, signatureExceptions],
  ['json_web_key_test.jsonl', 26, keyExceptions],
])('Wycheproof, %s', (name, count, exceptions) => {
  const groups = read(name);

  it('has all its cases', () => {
    expect(groups.flatMap(({ cases }) => cases)).toHaveLength(count);
  });

  for (const group of groups) {
    const keys = keysOf(group);
    it.each(group.cases)(`${group.name} %i %s is %s`, async (tcId, _comment, result, jws) => {
      const isGood = typeof jws === 'string' && (await hasGoodSignature(keys, jws));
      expect(isGood, exceptions.get(tcId)).toBe((result === 'valid') !== exceptions.has(tcId));
    });
  }

  it('each exception is a case of the suite', () => {
    const ids = new Set(groups.flatMap(({ cases }) => cases.map(([tcId]) => tcId)));
    expect([...exceptions.keys()].filter((tcId) => !ids.has(tcId))).toEqual([]);
  });
});

it('the accepted cases 367 and 370, invalid by the suite, equal its valid case 357', () => {
  const vectors = read('json_web_signature_test.jsonl').flatMap(({ cases }) => cases);
  const jws = (wanted: number) => vectors.find(([tcId]) => tcId === wanted)?.[3];
  expect([jws(367), jws(370)]).toEqual([jws(357), jws(357)]);
});
