import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { closingAtEnd } from '../harness/closing-at-end.ts';
import { eventually } from '../harness/eventually.ts';
import { listen } from '../harness/listen.ts';
import { exchangeRaw, type RawResponse } from '../harness/raw-client.ts';
import { answer, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { type HereOptions, startShopwardHere } from '../harness/shopward-here.ts';
import { makeSigner, makeToken, publicJwk } from '../unit/access/signing.ts';

/**
 * Sets each setting to an unusual value and checks one effect in the running proxy, which shows a setting that is read
 * but not used.
 */

let redis: RedisProcess;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-wiring-'));
  redis = await startRedisProcess();
});
afterAll(async () => {
  await redis?.close();
  await rm(folder, { recursive: true });
});

/** A shop and proxies for each test, because tests run concurrently. */
async function stage(context: TestContext) {
  const open = closingAtEnd(context);
  /** Answers of the shop, by the beginning of the request line. */
  const shop = new Map<string, string | (() => string | undefined)>();
  let head = '';
  const upstream = open(
    await startRecordingUpstream(
      (received) => {
        head = received.head;
        for (const [start, what] of shop) {
          if (head.startsWith(start)) return typeof what === 'string' ? what : what();
        }
        return answer('{"data":{"type":"carts","id":"1"}}', 'Content-Type: application/json\r\n');
      },
      { answersWhole: true },
    ),
  );
  const common = {
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: ['GET /secret', 'PATCH /carts/{id}'],
  };
  const start = async (config: object, more: Partial<HereOptions> = {}): Promise<RunningShopward> => {
    const one = await startShopwardHere({ ...common, config, ...more });
    open({ close: () => one.stop() });
    return one;
  };
  return {
    open,
    common,
    shop,
    start,
    /** The head of the last request that the shop got. */
    lastHead: () => head,
    timesAsked: (line: string) => upstream.requestLines.filter((one) => one.startsWith(line)).length,
  };
}

/** Sends a request over a new connection; `fields` are whole lines. */
function send(
  { port }: RunningShopward,
  line: string,
  fields: readonly string[] = [],
  body = '',
  host = 'shop.example',
): Promise<RawResponse> {
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const lines = [`${line} HTTP/1.1`, `Host: ${host}`, 'Connection: close', ...length, ...fields, '', body];
  return exchangeRaw(port, lines.join('\r\n'));
}

const json = 'Content-Type: application/json';
const codeOf = ({ body }: RawResponse) =>
  (JSON.parse(body.toString()) as { errors: { code: string }[] }).errors[0]?.code;

describe.concurrent('auth.subject and auth.scopes', () => {
  it('lists of exact claim names are read; the algorithm Ed25519 does not accept EdDSA', async (context) => {
    const { start } = await stage(context);
    const signer = makeSigner('EdDSA', 'odd');
    const keyFile = path.join(folder, 'odd-key.json');
    await writeFile(keyFile, JSON.stringify(publicJwk(signer)));
    const one = await start(
      {
        auth: {
          algorithms: ['Ed25519'],
          keys: { files: [keyFile] },
          subject: [['https://odd.example/id'], 'who'],
          scopes: ['realm_access.roles', 'cognito:groups', ['https://odd.example/roles']],
        },
      },
      { rows: [{ match: 'GET /secret', scopes: ['odd:scope'] }] },
    );
    const seconds = Math.floor(Date.now() / 1000);
    const ask = async (claims: object, alg = 'Ed25519') => {
      const token = makeToken(signer, { iat: seconds, exp: seconds + 60, ...claims }, { alg });
      return (await send(one, 'GET /secret', [`Authorization: Bearer ${token}`])).status;
    };
    const roles = { 'https://odd.example/roles': ['odd:scope'] };
    expect(await ask({ who: 'a', ...roles })).toBe(200);
    expect(await ask({ 'https://odd.example/id': 'a', ...roles })).toBe(200);
    expect(await ask({ sub: 'a', ...roles })).toBe(401);
    expect(await ask({ who: 'a', realm_access: { roles: ['odd:scope'] } })).toBe(200);
    expect(await ask({ who: 'a', 'cognito:groups': ['odd:scope'] })).toBe(200);
    expect(await ask({ who: 'a', scopes: ['odd:scope'] })).toBe(403);
    expect(await ask({ who: 'a', ...roles }, 'EdDSA')).toBe(401);
  });
});

describe.concurrent('auth.introspection', () => {
  it('each setting takes effect, and a changed secret is used', async (context) => {
    const { start } = await stage(context);
    const file = path.join(folder, 'client-secret');
    await writeFile(file, 'odd secret');
    const asked: string[] = [];
    let answer: object | undefined = { active: true, sub: 'a', exp: 4e9 };
    const endpoint = createServer((request, response) => {
      asked.push(`${request.url} ${request.headers.authorization}`);
      request.resume();
      if (answer !== undefined) response.end(JSON.stringify(answer));
    });
    const { url, close } = await listen(endpoint);
    const one = await start({
      auth: {
        keys: undefined,
        introspection: {
          url: `${url}/odd/path`,
          ...{ clientId: 'odd:id', clientSecret: `\${file:${file}}`, requireTokenType: false },
          ...{ timeout: '2500ms', ttl: '1h', connections: 2 },
        },
      },
    });
    const ask = async (token: string) =>
      (await send(one, 'GET /secret', [`Authorization: Bearer ${token}`])).status;
    const basic = (secret: string) => `Basic ${Buffer.from(`odd%3Aid:${secret}`).toString('base64')}`;
    expect([await ask('t1'), await ask('t1')]).toEqual([200, 200]);
    expect(asked).toEqual([`/odd/path ${basic('odd+secret')}`]);
    answer = { active: false };
    expect([await ask('t3'), asked.length]).toEqual([401, 2]);
    answer = undefined;
    expect(await ask('t4')).toBe(503);
    await writeFile(file, 'next');
    answer = { active: true, sub: 'a', exp: 4e9 };
    await eventually('the next secret', async () => {
      await ask(`t${asked.length + 10}`);
      return asked.at(-1)?.endsWith(basic('next')) || undefined;
    });
    await close();
  });
});

describe.concurrent('mode', () => {
  it('observe: 503 for a token while keys cannot be fetched', async (context) => {
    const { start } = await stage(context);
    const one = await start({ mode: 'observe', auth: { keys: { jwks: 'http://127.0.0.1:1/keys' } } });
    const { status } = await send(one, 'GET /secret', [`Authorization: Bearer ${one.issueToken()}`]);
    expect(status).toBe(503);
    expect((await send(one, 'GET /secret')).status).toBe(200);
  });
});

describe.concurrent('request', () => {
  const settings = { ignoredPrefixes: ['/odd'] };

  it('ignoredPrefixes apply to the list, for tags and for token endpoints', async (context) => {
    const { shop, start } = await stage(context);
    const one = await start({ request: settings });
    expect((await send(one, 'GET /odd/secret')).status).toBe(401);
    const token = `Authorization: Bearer ${one.issueToken()}`;
    // The path is a tracked resource only after the prefix is removed.
    expect(codeOf(await send(one, 'PATCH /oddcarts/1', [token, json], '{}'))).toBe('lenient-spelling');
    // A used refresh token is sent again to a path with the prefix.
    const issued = JSON.stringify({
      data: {
        type: 'refresh-tokens',
        attributes: { accessToken: 'a', refreshToken: 'next-token', expiresIn: 60 },
      },
    });
    shop.set('POST /refresh-tokens', answer(issued, `${json}\r\n`, '201 Created'));
    shop.set('POST /odd/refresh-tokens', answer(issued, `${json}\r\n`, '201 Created'));
    const body = '{"data":{"type":"refresh-tokens","attributes":{"refreshToken":"first-token"}}}';
    expect((await send(one, 'POST /refresh-tokens', [json], body)).status).toBe(201);
    expect((await send(one, 'POST /odd/refresh-tokens', [json], body)).status).toBe(401);
  });

  it('ignoredPrefixes apply to the resolver', async (context) => {
    const { start, timesAsked } = await stage(context);
    const one = await start({ request: settings });
    // The proxy asks the shop itself, without the prefix.
    await send(one, 'GET /odd/url-resolver?url=/en/p');
    expect(timesAsked('GET /url-resolver?url=%2Fen%2Fp ')).toBe(1);
  });
});

describe.concurrent('upstream', () => {
  it('via adds a field, and forwardHost keeps the host of the client', async (context) => {
    const { start, lastHead } = await stage(context);
    const plain = await start({});
    const one = await start({ upstream: { via: true, forwardHost: true } });
    await send(one, 'GET /via', [], '', 'odd.example');
    expect(lastHead()).toMatch(/\r\nVia: 1\.1 shopward\r\n/i);
    expect(lastHead()).toMatch(/\r\nHost: odd\.example\r\n/i);
    await send(plain, 'GET /plain', [], '', 'odd.example');
    expect(lastHead()).not.toMatch(/\r\nVia:/i);
    expect(lastHead()).not.toMatch(/\r\nHost: odd\.example/i);
    // The profile `spryker` forwards the host, from which such a shop builds links.
    await send(await start({ request: { profile: 'spryker' } }), 'GET /links', [], '', 'odd.example');
    expect(lastHead()).toMatch(/\r\nHost: odd\.example\r\n/i);
  });
});

describe.concurrent('request.methods', () => {
  const extensions = ['SEARCH', 'QUERY', 'PROPFIND', 'REPORT'];

  it('are forwarded if configured, need the token of any row of the path, and change no tag', async (context) => {
    const { start, lastHead } = await stage(context);
    const one = await start({ request: { methods: extensions } });
    const usual = await start({});
    const token = `Authorization: Bearer ${one.issueToken()}`;
    for (const method of extensions) {
      expect((await send(usual, `${method} /open`)).status).toBe(405);
      for (const body of ['', '<a/>']) {
        expect((await send(one, `${method} /open?a=1`, [], body)).status).toBe(200);
        expect(lastHead()).toMatch(new RegExp(`^${method} /open\\?a=1 HTTP/1\\.1\\r\\n`));
      }
      // The rows are GET /secret and PATCH /carts/{id}.
      expect((await send(one, `${method} /secret`)).status).toBe(401);
      expect((await send(one, `${method} /SECRET/`)).status).toBe(401);
      expect((await send(one, `${method} /carts/1`)).status).toBe(401);
      expect((await send(one, `${method} /secret`, [token])).status).toBe(200);
      // These methods are safe, so the earlier tag is still current.
      const etag = (await send(one, 'GET /carts/1')).field('etag');
      for (const path of ['/carts/1', '/carts'])
        expect((await send(one, `${method} ${path}`, [token, json], '{}')).status).toBe(200);
      const write = await send(one, 'PATCH /carts/1', [token, json, `If-Match: ${etag}`], '{}');
      expect(write.status).toBe(200);
    }
    for (const method of ['LOCK', 'MOVE', 'COPY', 'TRACE', 'NONSENSE', 'Search'])
      expect((await send(one, `${method} /open`)).status).toBe(405);
    const refresh = '{"data":{"attributes":{"refreshToken":"kH0n2Q7xVb9sYt4LmPz1Rg"}}}';
    expect((await send(one, 'SEARCH /refresh-tokens', [json], refresh)).status).toBe(400);
  });
});

describe.concurrent('limits.routes', () => {
  it('a body may be longer or shorter, and the shop slower or faster, for single routes', async (context) => {
    const { shop, start } = await stage(context);
    const one = await start({
      upstream: { responseTimeout: '60s' },
      entityTags: { lease: '70s', sendBy: '5s' },
      limits: {
        requestBody: '1KiB',
        routes: [
          { method: 'POST', path: '/large/**', requestBody: '200KiB' },
          { path: '/small', requestBody: 10 },
          { path: '/large/{id}/small', requestBody: 10 },
          { method: 'GET', path: '/hasty', responseTimeout: '600ms' },
          { method: 'PATCH', path: '/carts/{id}', responseTimeout: '600ms', requestBody: 10 },
        ],
      },
    });
    const long = 'x'.repeat(150_000);
    const chunked = async (path: string, body: string) => {
      const head = `POST ${path} HTTP/1.1\r\nHost: s\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`;
      const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
      return (await exchangeRaw(one.port, head + chunk)).status;
    };
    const whole = async (path: string, body: string) =>
      (await send(one, `POST ${path}`, [json], body)).status;
    for (const ask of [whole, chunked]) {
      expect([await ask('/large/a', long), await ask('/usual', 'x'.repeat(1000))]).toEqual([200, 200]);
      // No other spelling gets a looser limit by accident.
      for (const path of ['/usual', '/LARGE/a', '/x/large/a', '/v1/large/a', '/large;x/a'])
        expect([path, await ask(path, long)]).toEqual([path, 413]);
      for (const path of ['/small', '/large/a/small'])
        expect([await ask(path, 'x'.repeat(10)), await ask(path, 'x'.repeat(11))]).toEqual([200, 413]);
    }
    expect(await whole('/large/a', 'x'.repeat(210_000))).toBe(413);
    for (const method of ['GET', 'HEAD']) shop.set(`${method} /hasty`, () => undefined);
    shop.set('PATCH /carts/1', () => undefined);
    expect((await send(one, 'GET /hasty')).status).toBe(504);
    expect((await exchangeRaw(one.port, 'HEAD /hasty HTTP/1.1\r\nHost: s\r\n\r\n', 'HEAD')).status).toBe(504);
    const token = `Authorization: Bearer ${one.issueToken()}`;
    const etag = (await send(one, 'GET /carts/1', [token])).field('etag');
    const write = (body: string) => send(one, 'PATCH /carts/1', [token, json, `If-Match: ${etag}`], body);
    expect((await write('{"a":"too long"}')).status).toBe(413);
    // The route's shorter time-out applies to tracked writes, too.
    expect((await write('{}')).status).toBe(504);
  });
});

describe.concurrent('refreshTokens', () => {
  it('ids in the paths of custom revocation endpoints stay out of the log', async (context) => {
    const { start } = await stage(context);
    const one = await start({
      refreshTokens: { endpoints: [{ kind: 'revoke', method: 'DELETE', path: '/odd-logout/{id}' }] },
    });
    await send(one, 'DELETE /odd-logout/a-secret-token-id');
    await eventually('the line', () => one.log().some(({ event }) => event === 'request') || undefined);
    expect(one.output()).toContain('/odd-logout');
    expect(one.output()).not.toContain('a-secret-token-id');
  });
});

describe.concurrent('urlResolver', () => {
  const resolved = (id: string) =>
    answer(
      JSON.stringify({
        data: [{ type: 'url-resolver', id: null, attributes: { entityType: 'cms-pages', entityId: id } }],
      }),
      'Content-Type: application/vnd.api+json\r\n',
    );
  const entityId = ({ body }: RawResponse) =>
    (JSON.parse(body.toString()) as { data: { attributes: { entityId: string } }[] }).data[0]?.attributes
      .entityId;

  it.for([
    ['spryker', {}, 2, true],
    ['spryker', { forwardHost: false }, 1, false],
    ['plain', {}, 1, false],
    ['plain', { forwardHost: true }, 2, true],
    [undefined, {}, 1, false],
  ] as const)(
    'profile %s, upstream %j: the shop is asked %i times for two hosts',
    async ([profile, upstream, times, isForwarded], context) => {
      const { shop, start, lastHead, timesAsked } = await stage(context);
      const one = await start({
        ...(profile && { request: { profile } }),
        upstream,
        urlResolver: { path: '/odd-resolver', locales: ['fr', 'en'], stores: ['DE'] },
      });
      const seen = () => /\r\nHost: (\S+)/i.exec(lastHead())?.[1] ?? '';
      shop.set('GET /odd-resolver', () => resolved(seen()));
      const ask = (host: string) => send(one, 'GET /odd-resolver?url=/en/a', [], '', host);
      for (let round = 0; round < 3; round += 1)
        for (const host of ['de.example', 'at.example']) {
          const id = entityId(await ask(host));
          if (isForwarded) expect(id).toBe(host);
          else expect(id).toMatch(/^127/);
        }
      expect(timesAsked('GET /odd-resolver')).toBe(times);
      expect(lastHead()).toMatch(/\r\nAccept-Language: fr\r\n/i);
      await send(one, 'GET /stores', [], '', 'de.example');
      expect(seen() === 'de.example').toBe(isForwarded);
    },
  );

  it("entityTypes: a mapping to one of them is cached; any other answer is the shop's own", async (context) => {
    const { shop, start, lastHead, timesAsked } = await stage(context);
    const one = await start({ urlResolver: { path: '/resolve', entityTypes: ['page'] } });
    const leadsTo = (entityType: string) =>
      JSON.stringify({ data: [{ type: 'url-resolver', attributes: { entityType, entityId: '7' } }] });
    const plainJson = 'Content-Type: application/json\r\nX-Shop: itself\r\n';
    const target = 'GET /resolve?url=/en/a';
    shop.set('GET /resolve', () => answer(leadsTo('page'), plainJson));
    for (let i = 0; i < 2; i += 1)
      expect(JSON.parse(String((await send(one, target)).body)).data[0].attributes.entityType).toBe('page');
    expect(timesAsked('GET /resolve')).toBe(1);

    // Another type, another form, too large, not found, and moved: the client's request is forwarded and gets the shop's answer.
    const large = `{"a":"${'x'.repeat(100_000)}"}`;
    for (const [status, body] of [
      ['200 OK', leadsTo('draft')],
      ['200 OK', '{"type":"page","id":"7"}'],
      ['200 OK', large],
      ['404 Not Found', '{"error":"no such page"}'],
      ['301 Moved Permanently', ''],
    ] as const) {
      shop.set('GET /resolve', () => answer(body, plainJson, status));
      const response = await send(one, 'GET /resolve?url=/en/b&x=1', ['X-Client: own']);
      expect([response.status, response.field('x-shop'), String(response.body)]).toEqual([
        Number.parseInt(status, 10),
        'itself',
        body,
      ]);
      expect(lastHead()).toMatch(/^GET \/resolve\?url=\/en\/b&x=1 /);
      expect(lastHead()).toMatch(/\r\nX-Client: own\r\n/i);
    }
    const metrics = await (await fetch(`${one.adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/^shopward_url_passed_on_total 5$/m);
  });

  it('ttl, staleWhileRevalidate and staleIfError are not confused', async (context) => {
    const { shop, start } = await stage(context);
    let isDown = false;
    const down = () => answer('', '', '500 Internal Server Error');
    shop.set('GET /url-resolver', () => (isDown ? down() : resolved('1')));
    const ask = async (one: RunningShopward) => {
      const response = await send(one, 'GET /url-resolver?url=/en/stale');
      return `${response.status} ${response.field('cache-status') ?? ''}`;
    };
    const forError = await start({
      urlResolver: { ttl: '1s', staleWhileRevalidate: '0s', staleIfError: '1h' },
    });
    const forRevalidation = await start({
      urlResolver: { ttl: '1s', staleWhileRevalidate: '1h', staleIfError: '0s' },
    });
    expect(await ask(forError)).toMatch(/^200/);
    expect(await ask(forRevalidation)).toMatch(/^200/);
    isDown = true;
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(await ask(forError)).toMatch(/^200 .*detail=error/);
    expect(await ask(forRevalidation)).toMatch(/^200 .*hit/);
  });
});

describe.concurrent('limits', () => {
  it('inFlight: at most half of it may be verifications', async (context) => {
    const { start } = await stage(context);
    const delayed = Promise.withResolvers<void>();
    let fetches = 0;
    const keys = { keys: [publicJwk(makeSigner('RS256', 'known'))] };
    const server = createServer(async (_incoming, response) => {
      fetches += 1;
      // The first fetch is at start; the next is for an unknown key.
      if (fetches > 1) await delayed.promise;
      response.end(JSON.stringify(keys));
    });
    const { url: jwks, close } = await listen(server);
    const one = await start({
      limits: { inFlight: 4, clientShare: 100 },
      auth: { algorithms: ['RS256'], keys: { files: undefined, jwks } },
    });
    const asked = ['a', 'b', 'c'].map((kid) =>
      send(one, 'GET /secret', [`Authorization: Bearer ${one.issueToken({}, { kid })}`]),
    );
    await Promise.race(asked);
    delayed.resolve();
    const answers = await Promise.all(asked);
    await close();
    expect(answers.map((each) => `${each.status} ${codeOf(each)}`).sort()).toEqual([
      '401 001',
      '401 001',
      '503 overloaded',
    ]);
  });
});

describe.concurrent('cors, rejections and protectedResourcesPath', () => {
  it('change the answers to clients', async (context) => {
    const { start } = await stage(context);
    const one = await start({
      cors: { origins: ['https://odd.example'] },
      rejections: { 'access-token-missing': { status: 403, code: 'odd', detail: 'Odd.' } },
      protectedResourcesPath: '/odd-list',
    });
    const refused = await send(one, 'GET /secret', ['Origin: https://odd.example']);
    expect([refused.status, codeOf(refused)]).toEqual([403, 'odd']);
    expect(refused.field('access-control-allow-origin')).toBe('https://odd.example');
    const list = JSON.parse((await send(one, 'GET /odd-list')).body.toString()) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).toContain('GET /secret');
  });
});

describe.concurrent('rollout', () => {
  it('keep sets the lifetime of the counts, which name the application', async (context) => {
    const { open, start } = await stage(context);
    const { Redis } = await import('ioredis');
    const client = new Redis(redis.port, '127.0.0.1', { db: 5 });
    open({ close: () => client.disconnect() });
    // Removes counts of an earlier run.
    await client.flushdb();
    const one = await start(
      { store: { url: `redis://127.0.0.1:${redis.port}/5`, prefix: 'odd' }, rollout: { keep: '9d' } },
      { rows: [{ match: 'GET /secret', scopes: ['odd'], observe: true }] },
    );
    const token = `Authorization: Bearer ${one.issueToken({ azp: 'mobile-app' })}`;
    expect((await send(one, 'GET /secret', [token])).status).toBe(200);
    const day = 86_400_000;
    for (const each of ['odd:{roll-out}', 'odd:{roll-out}:refusals', 'odd:{roll-out}:rows']) {
      // The keys are written one after another.
      const leftMs = await eventually(`${each} in the store`, async () => {
        const ms = await client.pttl(each);
        return ms === -2 ? undefined : ms;
      });
      expect([each, leftMs > 8.9 * day, leftMs <= 9 * day]).toEqual([each, true, true]);
    }
    expect((await client.hvals('odd:{roll-out}:refusals')).join()).toContain('mobile-app');
  });
});
