import assert from 'node:assert/strict';
import fc from 'fast-check';
import { readBearerCredentials } from '../../../src/access/bearer-credentials.ts';
import { parseEntityTags } from '../../../src/http/entity-tag-list.ts';
import { isRejection } from '../../../src/http/rejection.ts';
import { findCandidate } from '../../../src/refresh-tokens/token-request.ts';
import { anyText } from '../../harness/any-text.ts';
import { makeToken } from '../../unit/access/signing.ts';
import { claims, createVerifier, rsa } from '../../unit/access/verifier-setup.ts';
import { mutate, mutations } from './arbitraries.ts';
import { type FuzzTarget, fuzzTarget } from './fuzz-target.ts';

const { verifier } = createVerifier();
const token = makeToken(rsa, claims);

const base64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=.';

const tagParts = [
  ...'"a" "b,c" W/"a" w/"a" * ,'.split(' '),
  ' ',
  '\t',
  '"',
  '\\',
  'x',
  '""',
  '"\xe9"',
  '"\x7f"',
  'W/',
];
/** RFC 9110 sections 5.6.1 and 8.8.3, as an expression. */
const tagList = /^[ \t,]*(?:(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"[ \t]*(?:,[ \t,]*|$))+$/;

const endpoint = { fields: { refreshToken: 'refreshToken' }, format: 'json-api' } as never;
const names = ['refreshToken', 'refresh_token', 'RefreshToken', 'data', 'attributes', 'x', '__proto__'];
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    anyText({ maxLength: 6 }),
    fc.integer(),
    fc.dictionary(fc.constantFrom(...names), tie('tree'), { maxKeys: 3 }),
    fc.array(tie('tree'), { maxLength: 3 }),
  ),
}));

/** Tokens, entity tags and refresh tokens that a client sends. */
export const credentials: readonly FuzzTarget[] = [
  fuzzTarget(
    'token-mutations',
    fc.oneof(
      mutations.map((steps) => mutate(token, steps)),
      // Another last letter, or one more: some of these decode to the same octets.
      fc.tuple(fc.constantFrom(0, -1), fc.constantFrom(...base64)).map(([end, last]) => {
        return (end === 0 ? token : token.slice(0, end)) + last;
      }),
    ),
    async (sent) => {
      const read = readBearerCredentials(['Authorization', `Bearer ${sent}`]);
      if (isRejection(read)) return;
      const verdict = await verifier.verify(read.token);
      if (!isRejection(verdict)) assert.equal(sent.trimStart(), token);
    },
    { runs: 400 },
  ),
  fuzzTarget(
    'entity-tag-lists',
    fc.array(fc.constantFrom(...tagParts), { maxLength: 10 }).map((parts) => parts.join('')),
    (line) => {
      const parsed = parseEntityTags([line], 'strict');
      const isList = tagList.test(line);
      const isStar = /^[ \t]*\*[ \t]*$/.test(line);
      assert.equal(parsed !== undefined, isList || isStar, JSON.stringify(line));
      const lenient = parseEntityTags([line], 'lenient');
      if (isList) assert.equal(lenient?.length, parsed?.length);
    },
    { runs: 1000 },
  ),
  fuzzTarget(
    'refresh-token-bodies',
    tree,
    (body) => {
      const fields = ['Content-Type', 'application/json'];
      const found = findCandidate({ fields, query: '' }, Buffer.from(JSON.stringify(body)), [endpoint]);
      if ('notPlain' in found) return;
      for (const value of valuesBehind(JSON.parse(JSON.stringify(body)))) {
        assert.equal(value, found.token);
      }
    },
    { runs: 800 },
  ),
];

/** Values of `refreshToken` at any depth, as JSON.parse reads them. */
function valuesBehind(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const own = name === 'refreshToken' && typeof inner === 'string' && inner.trim() !== '' ? [inner] : [];
    return [...own, ...valuesBehind(inner)];
  });
}
