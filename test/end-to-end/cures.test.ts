import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { runPurge } from '../../src/cli/admin-verbs.ts';
import { type RejectionName, rejectionTable } from '../../src/http/rejection.ts';
import { begun } from '../harness/begun.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { exchangeRaw, openRawConnection, type RawResponse } from '../harness/raw-client.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { issueToken, type RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { jktOf, makeProof, withProof } from '../unit/access/dpop.ts';
import { makeSigner, publicJwk } from '../unit/access/signing.ts';
import { runCommand } from '../unit/cli/command-run.ts';
import {
  explain,
  json,
  type RefusalStage,
  rejectionNames,
  requestText,
  startRefusalStage,
} from './refusal-stage.ts';

/**
 * Tries docs/reasons.md: provokes each refusal, does what its row says, and expects the request to pass. The test fails for
 * a new refusal without a cure here, and for a cure that the row does not name.
 */
const page = readFileSync(path.join(import.meta.dirname, '../../docs/reasons.md'), 'utf8');
const cellOf = (name: string) => {
  const row = page.split('\n').find((line) => line.startsWith(`|<a id="${name}">`)) ?? '';
  return row.split(' | ').at(-1) ?? '';
};

interface Cure {
  /** A quote from the row. */
  readonly says: string;
  /** Applies the cure and sends the request. The status must be below 400. */
  readonly attempt: () => Promise<RawResponse>;
}

let stage: RefusalStage;
/** Configured as the rows tell the operator. */
let eased: RunningShopward;
/** Allows one request at a time, and one second for its body. */
let tight: RunningShopward;
let redis: RedisProcess | undefined;
/** The port at which a front asks `tight` for authorization. */
let askPort: number;
const servers = new Map<string, Promise<http.Server>>();

beforeAll(async () => {
  stage = await startRefusalStage();
  const { config, ...common } = stage.settings;
  const { rows: limited } = (config as { rateLimits: { rows: object[] } }).rateLimits;
  eased = await startShopwardHere({
    ...common,
    rows: [
      ...['GET /secret', 'GET /reports'],
      { match: 'GET /basket', tokenIn: ['header'] },
      { match: 'GET /saved', tokenIn: ['cookie:sid'] },
      { match: 'POST /basket', tokenIn: ['header', 'cookie:sid'] },
    ],
    config: {
      ...config,
      limits: {
        ...{ requestBody: '1MiB', wholeBody: '512KiB', requestHeaders: '64KiB', bodyTimeout: '20s' },
        routes: [{ path: '/slow', responseTimeout: '20s' }],
      },
      rateLimits: { rows: limited.map((row) => ({ ...row, mode: 'observe' })) },
      auth: { cookieOrigins: ['https://pages.example'] },
      request: { methods: ['SEARCH'] },
      entityTags: { ...(config as { entityTags: object }).entityTags, lease: '40s' },
    },
  });
  askPort = await freePort();
  tight = await startShopwardHere({
    ...common,
    config: {
      ...config,
      trustedProxies: ['127.0.0.1'],
      authorize: { listen: { port: askPort } },
      limits: {
        ...{ inFlight: 1, clientShare: 100, bodyTimeout: '1s', requestBody: '1KiB' },
        routes: [{ path: '/a', requestBody: '4KiB' }],
      },
    },
  });
});
afterAll(async () => {
  for (const server of await Promise.all(servers.values())) server.close();
  await Promise.all([stage?.close(), eased?.stop(), tight?.stop(), redis?.close()]);
});

const main = () => stage.shopwardOf('');
const cutOff = () => stage.shopwardOf('keys-unavailable');
const token = (claims: object = {}) => issueToken(stage.signer, claims);
const bearer = (claims: object = {}) => `Authorization: Bearer ${token(claims)}`;
const send = (bytes: string, to: RunningShopward = main()) =>
  exchangeRaw(to.port, bytes, /^\S*/.exec(bytes)?.[0] ?? '');
const ask = (start: string, fields: readonly string[] = [], body = '') =>
  send(requestText(start, fields, body));
const askEased = (start: string, fields: readonly string[] = [], body = '') =>
  send(requestText(start, fields, body), eased);
const tagOf = async (target: string, fields: readonly string[] = []) =>
  (await ask(`GET ${target}`, fields)).field('etag') ?? '';
const change = async (target: string, tag?: string, fields: readonly string[] = []) =>
  ask(`PATCH ${target}`, [...fields, `If-Match: ${tag ?? (await tagOf(target))}`, ...json('{}')], '{}');
const refresh = (refreshToken: string) => {
  const body = JSON.stringify({ data: { type: 'refresh-tokens', attributes: { refreshToken } } });
  return ask('POST /refresh-tokens', json(body), body);
};

/** Repeats a request that gets 503 after `Retry-After`, but after 5 s at most; up to 20 times. */
async function patiently(attempt: () => Promise<RawResponse>): Promise<RawResponse> {
  for (let left = 20; ; left -= 1) {
    const response = await attempt();
    if (response.status !== 503 || left === 0) return response;
    const seconds = Number(response.field('retry-after'));
    expect(seconds, response.body.toString()).toBeGreaterThan(0);
    await sleep(Math.min(seconds, 5) * 1000);
  }
}

/** Starts the missing server on its port, once. */
async function startMissing(what: 'keys' | 'shop', text: string): Promise<void> {
  const start = async () => {
    const server = http.createServer((_, response) => response.end(text));
    server.listen(stage.missing[what], '127.0.0.1');
    await once(server, 'listening');
    return server;
  };
  const started = servers.get(what) ?? start();
  servers.set(what, started);
  await started;
}
const startShop = () => startMissing('shop', '{}');
const startKeys = () => startMissing('keys', JSON.stringify({ keys: [publicJwk(stage.signer)] }));
async function startStore(): Promise<void> {
  await startShop();
  redis ??= await startRedisProcess({ port: stage.missing.redis });
}

/** Reasons of `/readyz`. */
const whyNotReady = async (of: RunningShopward) => (await fetch(`${of.adminUrl}/readyz`)).text();

/** Sends half of a body, and the rest 2.5 s later, which is too late for `tight`. */
async function sendSlowly(to: RunningShopward): Promise<RawResponse> {
  const connection = await openRawConnection(to.port);
  try {
    await connection.write(requestText('POST /a', ['Content-Length: 2'], '{'));
    await Promise.race([sleep(2500), once(connection.socket, 'data')]);
    if (connection.pending().length === 0) await connection.write('}');
    return await connection.readResponse();
  } finally {
    connection.close();
  }
}

/** Sends a request while the shop still works on another one. */
async function sendBeside(to: RunningShopward): Promise<RawResponse> {
  const asked = () => stage.upstream.requestLines.filter((line) => line.startsWith('GET /delayed')).length;
  const before = asked();
  // A request that was refused amid its body still counts for a second.
  const first = patiently(() => send(requestText('GET /delayed'), to));
  await eventually('the first', () => asked() > before || undefined);
  const second = await send(requestText('GET /a'), to);
  stage.release();
  await first;
  return second;
}

/** Runs `shopward purge` against the running proxy. */
async function purge(url: string): Promise<void> {
  const { configFile, adminPort, folder } = main();
  const config = path.join(folder, 'purge.yaml');
  await writeFile(
    config,
    stringify({ ...parse(await readFile(configFile, 'utf8')), admin: { port: adminPort } }),
  );
  const { code, err } = await runCommand((io) => runPurge({ config, url }, io));
  expect([code, err]).toEqual([0, []]);
}

const cures: Readonly<Record<RejectionName, readonly Cure[]>> = {
  // The request itself
  'bad-request': [{ says: 'The log names the rule.', attempt: () => ask('GET /', ['field: yes']) }],
  'bad-request-target': [
    {
      says: '`shopward explain` names the refused part.',
      async attempt() {
        expect((await explain('GET /a/../b')).refusal?.reason).toBe('dot-segment');
        return ask('GET /b');
      },
    },
  ],
  'bad-request-fields': [
    { says: 'Send the field once', attempt: () => ask('GET /a', ['Content-Type: a/c']) },
  ],
  'bad-host': [{ says: 'Send one `Host`', attempt: () => ask('GET /a') }],
  'unexpected-body': [
    { says: 'Put the parameters into the query', attempt: () => ask('GET /a?one=1') },
    { says: 'use POST', attempt: () => ask('POST /a', json('{}'), '{}') },
  ],
  'method-override': [{ says: 'Send the method itself', attempt: () => ask('DELETE /a') }],
  'lenient-spelling': [{ says: 'Send the exact path', attempt: () => change('/carts/8') }],
  'peer-not-trusted': [
    {
      says: 'in `trustedProxies`',
      attempt: () => exchangeRaw(askPort, requestText('GET /authorize/a', ['X-Forwarded-Proto: https'])),
    },
  ],
  'method-not-allowed': [
    {
      says: '`Allow` lists the methods.',
      async attempt() {
        const allowed = (await stage.provoke('method-not-allowed')).field('allow') ?? '';
        expect(allowed).toContain('OPTIONS');
        return ask(`${allowed.split(', ').at(-1)} /a`);
      },
    },
    { says: '`request.methods` adds', attempt: () => askEased('SEARCH /a', json('{}'), '{}') },
  ],
  'request-timeout': [{ says: 'limits.bodyTimeout', attempt: () => sendSlowly(eased) }],
  'payload-too-large': [
    { says: 'Send less', attempt: () => ask('POST /a', json('{}'), '{}') },
    {
      says: 'raise the limit',
      attempt: () => askEased('POST /a', ['Content-Length: 2000'], 'x'.repeat(2000)),
    },
    {
      says: '`limits.routes` replaces `limits.requestBody`',
      attempt: () => send(requestText('POST /a', ['Content-Length: 2000'], 'x'.repeat(2000)), tight),
    },
    {
      says: 'raise the limit',
      async attempt() {
        const tag = (await askEased('GET /carts/large')).field('etag');
        const body = `"${'x'.repeat(200_000)}"`;
        return askEased('PATCH /carts/large', [`If-Match: ${tag}`, ...json(body)], body);
      },
    },
  ],
  'target-too-long': [
    {
      says: 'put long input into a body',
      attempt: () => ask('POST /a', ['Content-Length: 900'], 'x'.repeat(900)),
    },
  ],
  'expectation-failed': [{ says: 'Leave `Expect` out.', attempt: () => ask('GET /a') }],
  'fields-too-large': [
    { says: 'send fewer fields', attempt: () => ask('GET /a', ['X: x']) },
    {
      says: 'raise `limits.requestHeaders`',
      attempt: () => askEased('GET /a', [`X: ${'x'.repeat(20_000)}`]),
    },
  ],
  'transfer-encoding-unsupported': [
    {
      says: 'Send `chunked` alone.',
      attempt: () =>
        ask('POST /a', ['Content-Encoding: gzip', 'Transfer-Encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n'),
    },
  ],
  'http-version-unsupported': [{ says: 'Let the front speak HTTP/2', attempt: () => ask('GET /a') }],
  overloaded: [
    { says: 'Raise it', attempt: () => sendBeside(eased) },
    { says: 'stop that client', attempt: () => patiently(() => send(requestText('GET /a'), tight)) },
  ],
  // Only a fixed shopward helps; test/end-to-end/rare-refusals.test.ts provokes it.
  'internal-error': [],

  // Who asks
  'access-token-missing': [{ says: 'Sign in.', attempt: () => ask('GET /secret', [bearer()]) }],
  'access-token-invalid': [{ says: 'Refresh it.', attempt: () => ask('GET /secret', [bearer()]) }],
  'access-token-repeated': [
    { says: 'Send one.', attempt: () => ask('GET /basket', [bearer()]) },
    {
      says: "Remove a location that you do not need from the row's `tokenIn`",
      attempt: () => askEased('GET /basket', [bearer(), 'Cookie: sid=x']),
    },
    {
      says: '`Authorization` always counts',
      async attempt() {
        const fields = ['Authorization: Bearer x', `Cookie: sid=${token()}`];
        expect((await askEased('GET /saved', fields)).status).toBe(400);
        return askEased('GET /saved', fields.slice(1));
      },
    },
  ],
  'cross-site-request': [
    {
      says: '`auth.cookieOrigins`',
      attempt: () =>
        askEased(
          'POST /basket',
          [`Cookie: sid=${token()}`, 'Origin: https://pages.example', ...json('{}')],
          '{}',
        ),
    },
    {
      says: 'set `trustedProxies`',
      attempt: () => {
        const fields = [`Cookie: sid=${token()}`, 'Origin: https://shop.example', 'X-Forwarded-Proto: https'];
        return send(requestText('POST /basket', [...fields, ...json('{}')], '{}'), tight);
      },
    },
    {
      says: 'should send `Authorization`',
      attempt: () => ask('POST /basket', [bearer(), ...json('{}')], '{}'),
    },
  ],
  'insufficient-scope': [
    {
      says: '`WWW-Authenticate` names the scopes',
      async attempt() {
        const challenge = (await stage.provoke('insufficient-scope')).field('www-authenticate') ?? '';
        return ask('GET /reports', [bearer({ scope: /scope="([^"]+)"/.exec(challenge)?.[1] })]);
      },
    },
    { says: 'change the row', attempt: () => askEased('GET /reports', [bearer()]) },
  ],
  'proof-invalid': [
    {
      says: 'Send `Authorization: DPoP` with a new proof in each request, or',
      async attempt() {
        const key = makeSigner('ES256');
        const own = token({ cnf: await jktOf(key) });
        return ask('GET /bound', withProof(own, makeProof(key, own)));
      },
    },
  ],
  'not-permitted': [
    { says: 'asks for what its user may have', attempt: () => ask('GET /teams/7', [bearer({ team: '7' })]) },
  ],
  'keys-unavailable': [
    {
      says: 'Look at `/readyz`, at the key source',
      async attempt() {
        expect(await whyNotReady(cutOff())).toContain('keys');
        await startShop();
        await startKeys();
        return patiently(() => send(requestText('GET /secret', [bearer()]), cutOff()));
      },
    },
  ],

  // Changes of tracked resources
  'if-match-missing': [{ says: 'GET the resource, and send its `ETag`', attempt: () => change('/carts/1') }],
  'if-match-invalid': [
    {
      says: 'GET the resource again',
      async attempt() {
        const tag = await tagOf('/carts/2');
        await change('/carts/2', tag);
        expect((await change('/carts/2', tag)).status).toBe(412);
        return change('/carts/2');
      },
    },
  ],
  'collection-write': [
    {
      says: 'Change its members one by one, or set',
      attempt: async () => change('/notes/1', await tagOf('/notes/1', [bearer()]), [bearer()]),
    },
  ],
  'tag-store-unavailable': [
    {
      says: 'Clients repeat the request after `Retry-After`.',
      async attempt() {
        expect(await whyNotReady(cutOff())).toContain('Redis is away');
        await startStore();
        await eventually('the store', async () =>
          (await whyNotReady(cutOff())).includes('Redis is away') ? undefined : true,
        );
        return patiently(() => send(requestText('POST /carts/1/items', json('{}'), '{}'), cutOff()));
      },
    },
  ],
  'resource-busy': [
    {
      says: 'Repeat the request after `Retry-After`.',
      attempt: () => patiently(() => change('/carts/busy')),
    },
  ],

  // The URL resolver
  'url-missing': [
    { says: 'Send the path of the page as `url`.', attempt: () => ask('GET /url-resolver?url=/en/found') },
  ],
  'url-not-found': [
    {
      says: '`shopward purge --url URL`',
      async attempt() {
        expect((await ask('GET /url-resolver?url=/en/x')).status).toBe(404);
        await purge('/en/x');
        return ask('GET /url-resolver?url=/en/x');
      },
    },
  ],

  // Refresh tokens
  'refresh-token-invalid': [
    {
      says: 'Sign in.',
      async attempt() {
        const login = await ask('POST /access-tokens', json('{}'), '{}');
        return refresh(JSON.parse(login.body.toString()).data.attributes.refreshToken);
      },
    },
  ],
  'token-request-type': [{ says: 'Send one `Content-Type`', attempt: () => refresh('typed') }],
  'token-request-not-plain': [{ says: 'Send the token once', attempt: () => refresh('plain') }],
  'token-answer-unreadable': [
    {
      says: 'Look at the content coding and the size of the answer',
      attempt: () => ask('POST /access-tokens?callback=show', json('{}'), '{}'),
    },
  ],
  'refresh-token-busy': [
    {
      says: 'use that one: this token is then used up',
      async attempt() {
        expect((await refresh('busy')).status).toBe(401);
        return refresh('of-the-new-pair');
      },
    },
  ],
  'refresh-token-unavailable': [
    { says: 'Repeat it after `Retry-After`.', attempt: () => patiently(() => refresh('cut')) },
  ],
  'token-store-unavailable': [
    {
      says: 'As for `tag-store-unavailable`.',
      async attempt() {
        await startStore();
        const body = JSON.stringify({ data: { attributes: { refreshToken: 'kept' } } });
        return patiently(() => send(requestText('POST /refresh-tokens', json(body), body), cutOff()));
      },
    },
  ],

  // The shop, and shopward
  'upstream-unreachable': [
    { says: 'Start the shop.', attempt: () => ask('GET /broken') },
    {
      says: 'Start the shop.',
      async attempt() {
        await startShop();
        return send(requestText('GET /open'), cutOff());
      },
    },
  ],
  'upstream-invalid': [
    {
      says: '`fault` says what was wrong',
      async attempt() {
        const [requestId] = (await stage.provoke('upstream-invalid')).fields('x-request-id');
        const line = await main().waitForLog((one) => one.requestId === requestId);
        expect(line.fault).toBe('not-the-head-of-a-response');
        return ask('GET /garbage');
      },
    },
  ],
  'upstream-timeout': [{ says: 'raise the time-out', attempt: () => askEased('GET /slow') }],
  'rate-limited': [
    {
      says: 'set its `mode: observe`',
      async attempt() {
        await askEased('GET /limited');
        return askEased('GET /limited');
      },
    },
  ],
};

/** Refusals by `tight`. `internal-error` needs a bug, which test/end-to-end/rare-refusals.test.ts makes. */
const ownProvocations: Readonly<Record<string, () => Promise<RawResponse>>> = {
  'request-timeout': () => sendSlowly(tight),
  overloaded: () => sendBeside(tight),
};
const provoke = (name: RejectionName) => (ownProvocations[name] ?? (() => stage.provoke(name)))();
const provocable = rejectionNames.filter((name) => name !== 'internal-error');

it('every refusal but internal-error has a cure, quoted from its row', () => {
  expect(Object.keys(cures)).toEqual(rejectionNames);
  expect(rejectionNames.filter((name) => cures[name].length === 0)).toEqual(['internal-error']);
  for (const name of rejectionNames)
    for (const { says } of cures[name]) expect(cellOf(name), name).toContain(says);
});

/** The first cure of each waits for a time-out or a restart. They are independent, so they run concurrently. */
const slowCures: readonly RejectionName[] = [
  'request-timeout',
  'keys-unavailable',
  'tag-store-unavailable',
  'refresh-token-unavailable',
  'upstream-timeout',
];

describe('a request passes after the cure in the row of its refusal', () => {
  const early = new Map<Cure['attempt'], Promise<RawResponse>>();
  beforeAll(async () => {
    for (const name of provocable)
      expect((await provoke(name)).status, name).toBe(rejectionTable[name].status);
    expect((await send(requestText('GET /open'), cutOff())).status).toBe(502);
    stage.mendShop();
    for (const name of slowCures) {
      const [cure] = cures[name];
      if (cure !== undefined) early.set(cure.attempt, begun(cure.attempt()));
    }
  });
  it.each(
    rejectionNames.flatMap((name) => cures[name].map((cure) => [name, cure.says, cure.attempt] as const)),
  )('%s: %s', async (_, __, attempt) => {
    const first = early.get(attempt);
    early.delete(attempt);
    const response = await (first ?? attempt());
    expect(response.status, response.body.toString()).toBeLessThan(400);
  });
});
