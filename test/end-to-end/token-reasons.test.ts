import { readFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runToken } from '../../src/cli/token.ts';
import { buildRejections, type RejectionName } from '../../src/http/rejection.ts';
import { freePort } from '../harness/free-port.ts';
import { listen } from '../harness/listen.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import {
  encode,
  makeSigner,
  makeToken,
  publicJwk,
  type Signer,
  signSegments,
} from '../unit/access/signing.ts';
import { runCommand } from '../unit/cli/command-run.ts';

/**
 * "What is wrong with a token" of docs/reasons.md, over real sockets: each reason is provoked and found in the log,
 * and `shopward token` gives the same one, with a link to its row. The same request with a good token passes.
 */
const page = readFileSync(path.join(import.meta.dirname, '../../docs/reasons.md'), 'utf8');
const [, section = ''] = /### What is wrong with a token([\s\S]*?)\n##/.exec(page) ?? [];
const listed = [...section.matchAll(/^\|<a id="([^"]+)"><\/a>`\1`\|/gm)].map(([, reason]) => reason);

const signer: Signer = makeSigner('RS256', 'k1');
const issuer = 'https://id.example';
const now = Math.floor(Date.now() / 1000);
const good = { sub: 'anna', iss: issuer, aud: 'shop', iat: now - 10, exp: now + 3600 };
const sign = (claims: object = {}, header: object = {}) => makeToken(signer, { ...good, ...claims }, header);
const active = { active: true, token_type: 'Bearer', ...good };

/** The answer of the introspection endpoint to each token; 500 for any other. */
const introspected = new Map<string, object>([
  ['known', { ...active, team: 'a' }],
  ['revoked', { active: false }],
  ['refresh', { ...active, token_type: 'refresh_token' }],
]);

/** Key source, introspection endpoint, and the shop. */
let provider: Awaited<ReturnType<typeof listen>>;
let shopward: RunningShopward;
let withoutKeys: RunningShopward;
const serve: http.RequestListener = (request, response) => {
  if (request.url === '/keys') response.end(JSON.stringify({ keys: [publicJwk(signer)] }));
  else if (request.url !== '/introspect') response.end('{}');
  else {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const answer = introspected.get(new URLSearchParams(body).get('token') ?? '');
      response.statusCode = answer === undefined ? 500 : 200;
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify(answer ?? {}));
    });
  }
};

beforeAll(async () => {
  provider = await listen(http.createServer(serve));
  const { url } = provider;
  const rows = [
    'GET /me',
    { match: 'GET /reports', scopes: ['analyst'] },
    { match: 'GET /teams/{team}', require: { team: 'team' } },
    { match: 'GET /strict', proof: 'required' },
    { match: 'GET /basket', tokenIn: ['header', 'cookie:sid'] },
  ];
  const introspection = {
    url: `${url}/introspect`,
    clientId: 'shopward',
    clientSecret: 'a-long-client-secret',
  };
  const rules = { issuer, audience: 'shop', maxTokenAge: '2h', forward: { subject: 'X-Auth-Subject' } };
  const start = (jwks: string) =>
    startShopwardHere({ upstream: url, rows, config: { auth: { ...rules, introspection, keys: { jwks } } } });
  shopward = await start(`${url}/keys`);
  withoutKeys = await start(`http://127.0.0.1:${await freePort()}/keys`);
});
afterAll(async () => {
  await shopward?.stop();
  await withoutKeys?.stop();
  await provider?.close();
});

interface Fault {
  /** Sent as `Authorization: Bearer`. */
  readonly token?: string;
  /** Sent instead of that field. */
  readonly fields?: readonly string[];
  readonly path?: string;
  readonly rejection?: RejectionName;
}

const other = makeSigner('RS256', 'k1');
const faults: Readonly<Record<string, Fault>> = {
  'too-long': { token: sign({ more: 'x'.repeat(20_000) }) },
  scheme: { fields: [`Authorization: ${sign()}`] },
  'other-scheme': { fields: ['Authorization: Basic YTpi'] },
  repeated: { fields: [`Cookie: sid=${sign()}; sid=x`], path: '/basket' },
  malformed: { token: signSegments(signer, encode({ alg: 'RS256', kid: 'k1' }), encode('text')) },
  inactive: { token: 'revoked' },
  introspection: { token: 'unheard-of', rejection: 'keys-unavailable' },
  algorithm: { token: sign({}, { alg: 'none' }) },
  critical: { token: sign({}, { crit: ['x'] }) },
  'unknown-key': { token: sign({}, { kid: 'gone' }) },
  keys: { token: sign(), rejection: 'keys-unavailable' },
  signature: { token: makeToken(other, good) },
  'other-kind': { token: sign({}, { typ: 'logout+jwt' }) },
  'sender-constrained': { token: sign({ cnf: { jkt: 'x' } }) },
  'no-expiry': { token: sign({ exp: undefined }) },
  claims: { token: sign({ nbf: 'soon' }) },
  expired: { token: sign({ exp: now - 60 }) },
  'not-before': { token: sign({ nbf: now + 600 }) },
  'issued-in-future': { token: sign({ iat: now + 600 }) },
  'no-issue-time': { token: sign({ iat: undefined }) },
  'too-old': { token: sign({ iat: now - 3 * 3600 }) },
  issuer: { token: sign({ iss: `${issuer}/` }) },
  audience: { token: sign({ aud: 'other' }) },
  subject: { token: sign({ sub: '' }) },
  unbound: { token: sign(), path: '/strict', rejection: 'proof-invalid' },
  scope: { token: sign({ scope: 'customer' }), path: '/reports', rejection: 'insufficient-scope' },
  'identity-too-long': { token: sign({ sub: 'x'.repeat(3000) }) },
};

const ask = (of: RunningShopward, target: string, fields: readonly string[]) =>
  exchangeRaw(of.port, [`GET ${target} HTTP/1.1`, 'Host: shop.example', ...fields, '', ''].join('\r\n'));

it('the page lists the same reasons as this test', () => {
  // `clock` replaces another reason: test/end-to-end/clock.test.ts covers it.
  expect(Object.keys(faults)).toEqual(listed.filter((reason) => reason !== 'clock'));
});

describe('the proxy logs the reason, and `shopward token` says the same', () => {
  it.each(Object.entries(faults))('%s', async (reason, fault) => {
    const { token, path: target = '/me', rejection = 'access-token-invalid' } = fault;
    const of = reason === 'keys' ? withoutKeys : shopward;
    const refused = await ask(of, target, fault.fields ?? [`Authorization: Bearer ${token}`]);
    const [requestId] = refused.fields('x-request-id');
    const line = await of.waitForLog((one) => one.requestId === requestId);
    expect(line).toMatchObject({ decision: 'refused', rejection, reason, status: refused.status });
    // The answer to the client does not contain the reason.
    expect(JSON.parse(refused.body.toString())).toEqual({ errors: [buildRejections()[rejection]] });
    if (token === undefined) return;
    const { out } = await runCommand((io) =>
      runToken(token, { config: of.configFile, json: true, path: `GET ${target}` }, io),
    );
    const said = JSON.parse(out.join('\n'));
    expect(said).toMatchObject({ accepted: false, rejection, reason, see: `docs/reasons.md#${reason}` });
  });
});

it.each([
  ['signed', sign({ scope: 'analyst' }), '/reports'],
  ['in a cookie', sign(), '/basket'],
  ['opaque', 'known', '/me'],
  ['with the claim of a condition', sign({ team: 'a' }), '/teams/a'],
  ['opaque, with the claim of a condition', 'known', '/teams/a'],
])('200 for a good token: %s', async (how, token, target) => {
  const field = how === 'in a cookie' ? `Cookie: sid=${token}` : `Authorization: Bearer ${token}`;
  expect((await ask(shopward, target, [field])).status).toBe(200);
});

it.each([
  ['signed', sign({ team: 'b' })],
  ['opaque', 'known'],
])('`shopward token` and the proxy name the unmet condition: %s', async (_, token) => {
  const refused = await ask(shopward, '/teams/c', [`Authorization: Bearer ${token}`]);
  expect([refused.status, refused.fields('www-authenticate')]).toEqual([403, []]);
  const config = { config: shopward.configFile, json: true, path: 'GET /teams/c' };
  const { out } = await runCommand((io) => runToken(token, config, io));
  const said = JSON.parse(out.join('\n'));
  expect(said).toMatchObject({
    ...{ accepted: false, rejection: 'not-permitted', reason: 'require.team' },
    facts: { require: 'a claim team that is {team}' },
  });
});
