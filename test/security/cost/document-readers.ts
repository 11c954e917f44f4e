import { createHmac, generateKeyPairSync } from 'node:crypto';
import { buildChallenge } from '../../../src/access/authenticate.ts';
import { readBearerCredentials } from '../../../src/access/bearer-credentials.ts';
import { readKeyDocument } from '../../../src/access/key-document.ts';
import { KeptKeys, mergeKeys } from '../../../src/access/key-source.ts';
import { createSigningKeys } from '../../../src/access/signing-keys.ts';
import { TokenVerifier } from '../../../src/access/token-verifier.ts';
import { parseOpenApi } from '../../../src/cli/protected/openapi-document.ts';
import { basePathsOf, readOperations } from '../../../src/cli/protected/openapi-operations.ts';
import { buildRequestRules } from '../../../src/http/canonicalise-request.ts';
import { isNoneMatchMet } from '../../../src/http/entity-tag-list.ts';
import { readNominations } from '../../../src/http/field-list.ts';
import { mayOverrideMethod } from '../../../src/http/form-encoding.ts';
import { createPeer, readOrigin } from '../../../src/http/peer.ts';
import { canonicaliseHost } from '../../../src/http/request-target.ts';
import { readRegister } from '../../../src/redis/membership.ts';
import { readServerFacts } from '../../../src/redis/watch.ts';
import { findCandidate, readType } from '../../../src/refresh-tokens/token-request.ts';
import { createLocaleNegotiation } from '../../../src/url-resolver/partition.ts';
import { lineKinds, type Reader, readersOf, type TextKind, targetKinds, textKinds } from './texts.ts';

const field = 60_000;
/** Bytes of the largest key document that shopward fetches. */
const keySet = 262_144;
/** Bytes of JSON that fit into a token of 16 KiB, encoded in base64url, beside its other parts. */
const tokenJson = 11_000;
const file = 65_536;

const secret = 's'.repeat(32);
const silent = { info() {}, warn() {}, error() {}, debug() {} };
const verifier = new TokenVerifier({
  algorithms: ['HS256'],
  keySource: createSigningKeys({ keys: { secret }, algorithms: ['HS256'] }, () => 0, silent).source,
  subject: 'sub.customer_reference',
  issuer: ['shop', 'other'],
  audience: ['api', 'app'],
  clockToleranceMs: 0,
  maxRememberedTokens: 0,
  now: () => 0,
});
const encode = (text: string) => Buffer.from(text).toString('base64url');

/** Signs the token, so that the checks after the signature run too. */
function verify(header: string, claims: string): unknown {
  const input = `${encode(header)}.${encode(claims)}`;
  const token = `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
  readBearerCredentials(['Authorization', `Bearer ${token}`]);
  return verifier.verify(token);
}
const withHeader = (more: object) => verify(JSON.stringify({ alg: 'HS256', ...more }), '{}');
const withClaims = (more: object) =>
  verify(
    '{"alg":"HS256"}',
    JSON.stringify({ exp: 9e9, iss: 'shop', aud: 'api', sub: '{"customer_reference":"DE--1"}', ...more }),
  );

/** Complete documents of about the given length: one unit, repeated. */
function documents(
  name: string,
  start: string,
  unit: string | ((i: number) => string),
  end: string,
): TextKind {
  return {
    name,
    make: (length) => {
      const units: string[] = [];
      let octets = start.length + end.length;
      for (let i = 0; octets < length; i += 1) {
        const next = typeof unit === 'string' ? unit : unit(i);
        units.push(next);
        octets += next.length + 1;
      }
      return start + units.join(',') + end;
    },
  };
}

const ecKey = JSON.stringify(
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }),
);
const rsaKey = JSON.stringify(
  generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' }),
);
const named = (key: string, i: number) => key.replace('{', `{"kid":"${i % 7}","x5c":["${i}"],`);
const keyDocuments: readonly TextKind[] = [
  documents('keys without a name', '{"keys":[', ecKey, ']}'),
  documents('RSA keys', '{"keys":[', rsaKey, ']}'),
  documents('keys of seven names', '{"keys":[', (i) => named(ecKey, i), ']}'),
  documents('no keys', '{"keys":[', '{}', ']}'),
  documents('keys that cannot be read', '{"keys":[', '{"kty":"RSA","n":"a","e":"AQAB"}', ']}'),
  {
    name: 'a long modulus',
    make: (length) => `{"keys":[{"kty":"RSA","e":"AQAB","n":"${'x'.repeat(length)}"}]}`,
  },
  documents('key_ops', '{"keys":[{"kty":"RSA","n":"a","e":"AQAB","key_ops":[', '"sign"', ']}]}'),
  documents('members', '{"keys":[{"kty":"RSA",', (i) => `"a${i}":1`, '}]}'),
  { name: 'lists in lists', make: (length) => `{"keys":${'['.repeat(length)}` },
];

function readKeys(text: string): unknown {
  const { keys } = readKeyDocument(text, ['RS256', 'ES256']);
  const kept = new KeptKeys('jwks');
  for (let i = 0; i < 2; i++) kept.loaded(mergeKeys(keys).keys);
  return kept.find({ alg: 'ES256', kid: '1' });
}

const operation = { get: { security: [{ bearer: [] }], tags: ['a'] } };
const schemes = { components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } } };
function readApi(text: string): unknown {
  const parsed = parseOpenApi(Buffer.from(text));
  return 'fault' in parsed ? parsed.fault : readOperations(parsed.document);
}
const readApiOf = (more: object, path = '/a') =>
  readApi(JSON.stringify({ openapi: '3.1.0', ...schemes, paths: { [path]: operation }, ...more }));
const apiPaths: readonly TextKind[] = [
  { name: 'one parameter many times', make: (length) => '/{a}'.repeat(length / 4) },
  { name: 'no names', make: (length) => '/{}'.repeat(length / 3) },
  { name: 'segments that become parameters', make: (length) => '/a.'.repeat(length / 3) },
  ...textKinds,
];

const rules = buildRequestRules({
  upstreamHost: 'shop',
  trustedProxies: ['127.0.0.1', '10.0.0.0/8'],
  requestBodyBytes: 1,
});
const peer = createPeer('127.0.0.1', false, rules.isTrusted);
const noFacts = {
  forwardedFor: undefined,
  forwardedHost: undefined,
  forwardedProto: undefined,
  requestId: undefined,
};
const origin = (more: object) => readOrigin({ ...noFacts, ...more } as never, peer, 'shop', rules);
const addresses: readonly TextKind[] = [
  documents('addresses of trusted proxies', '', '10.0.0.1', ''),
  documents('IPv6 addresses', '', '[::1]:80', ''),
  ...lineKinds,
];

const negotiate = createLocaleNegotiation(['de_DE', 'en_US', 'fr_FR']);
const infoLines: readonly TextKind[] = [
  documents('replicas', '\n', (i) => `\nslave${i % 9}:ip=1,state=online,offset=1,lag=1`, ''),
  documents('replicas of commas', '\n', () => `\nslave0:${',state=online'.repeat(20)}`, ''),
  ...textKinds,
];

/** Readers of tokens, keys, OpenAPI documents and single fields. */
export const documentReaders: readonly Reader[] = [
  ...readersOf(tokenJson, textKinds, {
    'a header of a token': (text) => verify(text, '{}'),
    'a kid': (text) => withHeader({ kid: text }),
    'a crit': (text) => withHeader({ crit: [text] }),
    'an x5c': (text) => withHeader({ x5c: [text], jku: text }),
    claims: (text) => verify('{"alg":"HS256"}', text),
    'a subject': (text) => [withClaims({ sub: text }), withClaims({ sub: { customer_reference: text } })],
    'scopes of a token': (text) => [
      withClaims({ scope: text }),
      withClaims({ scopes: [...text.slice(0, 2700)] }),
    ],
    'an audience': (text) => [withClaims({ aud: text }), withClaims({ aud: [...text.slice(0, 2700)] })],
    'an issuer': (text) => withClaims({ iss: text }),
  }),
  ...readersOf(field, textKinds, {
    'an Authorization': (text) => [
      readBearerCredentials(['Authorization', text]),
      readBearerCredentials(['Authorization', `Bearer ${text}`]),
      buildChallenge({ scopes: [text] }),
    ],
    'an If-None-Match': (text) => [isNoneMatchMet([text], '"a"'), isNoneMatchMet([`"b"${text}`], 'W/"a"')],
    'the fields of a token request': (text) => {
      const endpoints = [{ fields: { refreshToken: 'token' } }] as never;
      const read = (type: string, body: string) =>
        findCandidate({ fields: ['Content-Type', type], query: '' }, Buffer.from(body), endpoints);
      return [
        read('application/x-www-form-urlencoded', `${text}=${text}`),
        read('application/json', JSON.stringify({ [text]: text })),
        read('application/json', text),
      ];
    },
    'the members of a store': (text) => readRegister(['0', text, [JSON.stringify({ owner: text })], 6]),
  }),
  ...readersOf(16_000, textKinds, {
    'a signature': (text) => verifier.verify(`${encode('{"alg":"HS256"}')}.e30.${text}`),
  }),
  ...readersOf(keySet, keyDocuments, { 'a key set': readKeys }),
  ...readersOf(field, addresses, {
    'X-Forwarded-For of a trusted proxy': (text) => origin({ forwardedFor: text }),
  }),
  ...readersOf(field, lineKinds, {
    'X-Forwarded-Host, X-Forwarded-Proto and X-Request-Id of a trusted proxy': (text) =>
      origin({ forwardedHost: text, forwardedProto: text, requestId: text }),
    'a Host': canonicaliseHost,
    'a Connection': readNominations,
    'an Accept-Language': (text) => [negotiate(text), negotiate(text.slice(0, 512))],
    'the type of a token request': (text) => [
      readType(['Content-Type', text], []),
      readType(['Content-Type', `application/json;${text}`], []),
    ],
  }),
  ...readersOf(field, targetKinds, {
    'a query that overrides the method': (text) => [
      mayOverrideMethod(`?${text}`),
      mayOverrideMethod(`?_m${text}`),
      mayOverrideMethod(`?${text}&method`),
    ],
  }),
  ...readersOf(field, infoLines, {
    'INFO of Redis': (text) => readServerFacts([text, `\nmaxmemory_policy:${text}`, `\nslave0:${text}`], 0),
  }),
  // Read at start, by the command line or in a thread, so only the growth of their cost is checked.
  ...readersOf(file, apiPaths, { 'OpenAPI path': (text) => readApiOf({}, `/${text}`) }, { isBeside: true }),
  ...readersOf(
    file,
    textKinds,
    {
      'OpenAPI server': (text) => basePathsOf([{ url: text }]),
      'OpenAPI server with variables': (text) =>
        readApiOf({ servers: [{ url: '/{a}', variables: { a: { default: text } } }] }),
      'OpenAPI reference': (text) => readApiOf({ paths: { '/a': { $ref: `#/${text}` } } }),
      'OpenAPI tag': (text) => readApiOf({ paths: { '/a': { get: { ...operation.get, tags: [text] } } } }),
      'OpenAPI scope': (text) => readApiOf({ security: [{ bearer: [text, ...text.slice(0, 400)] }] }),
      'OpenAPI in JSON': readApi,
      'OpenAPI in YAML': (text) => readApi(`openapi: 3.1.0\npaths:\n  /a:\n    ${text}\n`),
      'OpenAPI components in YAML': (text) =>
        readApi(`openapi: 3.1.0\npaths: {}\ncomponents:\n  schemas:\n    ${text}`),
    },
    { isBeside: true },
  ),
];
