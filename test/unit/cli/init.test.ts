import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { runCheck } from '../../../src/cli/check.ts';
import { fileValidators } from '../../../src/cli/file-validators.ts';
import { probeShop } from '../../../src/cli/init/probe-shop.ts';
import { type InitOptions, runInit } from '../../../src/cli/init.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { listen } from '../../harness/listen.ts';
import { startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { makeSigner, publicJwk, publicPem } from '../access/signing.ts';
import { makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';
import { oddAnswers } from './odd-answers.ts';
import { document, secured } from './openapi-sample.ts';

const publicKey = publicPem(makeSigner('RS256'));

async function initIn(options: InitOptions, cwd = makeFolder(), env = {}) {
  const done = await runCommand((io) => runInit(options, io), { cwd, env });
  const read = (name: string) => readFileSync(path.join(cwd, 'config', name), 'utf8');
  return { ...done, cwd, read };
}

/** Output of `check` for the files, with a key file beside them. */
async function checkIn(cwd: string, env = {}) {
  writeFileSync(path.join(cwd, 'config', 'public.pem'), publicKey);
  const { code, out, err } = await runCommand((io) => runCheck({ offline: true }, io), { cwd, env });
  const [last = ''] = out.slice(-1);
  // Notes report intentions: observe mode, a route that is left open.
  const words = out.slice(0, -1).filter((line) => !/: note: |^warning: auth\.audience /.test(line));
  return { code, words: [...words, ...err.filter((line) => line !== '')], last: last.replace(/.*: /, '') };
}
const noWord = { code: 0, words: [], last: '1 warning' };

/** Nothing listens at this port. */
const known = { upstream: 'http://127.0.0.1:9', keys: 'public.pem' };

async function withShop<T>(answer: RequestListener, use: (url: string) => Promise<T>): Promise<T> {
  const { url, close } = await listen(createServer(answer));
  return use(url).finally(close);
}

const jwkOf = (type: 'rsa' | 'ec') => publicJwk(makeSigner(type === 'rsa' ? 'RS256' : 'ES256'));

// Concurrent, because each request waits for a deadline of 2 s.
describe.concurrent('init of a slow or broken shop', () => {
  it('reports a shop whose answer does not end, and still finds its keys', async (test) => {
    const endless = ['/', '/.well-known/openid-configuration'];
    const { out, read } = await withShop(
      ({ url = '' }, response) => {
        if (endless.includes(url)) response.writeHead(200).write('{"for":"ever"}');
        else if (url === '/.well-known/jwks.json') response.end(JSON.stringify({ keys: [jwkOf('ec')] }));
        else response.writeHead(404).end();
      },
      (upstream) => initIn({ blank: true, upstream }, makeFolder({}, test)),
    );
    expect(out.join('\n')).toContain('the shop answers at');
    expect(read('shopward.yaml')).toContain('/.well-known/jwks.json');
  });

  it.for<[string, RequestListener]>([
    ['hangs', () => {}],
    ['floods', (_, response) => void response.writeHead(200).end(Buffer.alloc(512 * 1024, 'x'))],
    ['redirects', (_, response) => void response.writeHead(302, { Location: 'http://127.0.0.1:9/' }).end()],
    ['speaks no HTTP', ({ socket }) => void socket.end('no HTTP\r\n\r\n')],
    ['sends terminal escapes', (_, response) => void response.writeHead(200).end('\u001b[31m{')],
  ])('writes its files if the shop %s', async ([, answer], test) => {
    const cwd = makeFolder({}, test);
    const done = await withShop(answer, (upstream) => initIn({ blank: true, upstream }, cwd));
    expect(done.code).toBe(0);
    expect(done.read('shopward.yaml')).toContain('${JWKS_URL}');
  });
});

describe('init', () => {
  it('writes files for a Spryker shop, which pass the check without a message', async () => {
    const { code, out, cwd, read } = await initIn({ spryker: true, ...known });
    expect(code).toBe(0);
    expect(out.join('\n')).toContain('  shopward serve');
    const config = parse(read('shopward.yaml'));
    expect(config).toMatchObject({
      mode: 'observe',
      upstream: { url: known.upstream },
      auth: { keys: { files: ['public.pem'] }, subject: 'sub.customer_reference' },
    });
    expect(config.urlResolver).toEqual({ locales: ['en', 'de'] });
    expect(config).not.toHaveProperty('entityTags');
    expect(read('protected-resources.yaml')).toContain('/booked-services');
    expect(await checkIn(cwd)).toEqual(noWord);
  });

  it('writes rows from the OpenAPI document of another shop, without Spryker settings', async () => {
    const paths = { '/baskets': { get: secured, post: {} }, '/baskets/{id}': { put: secured } };
    const cwd = makeFolder({ 'openapi.json': JSON.stringify(document(paths)) });
    const { code, read } = await initIn({ openapi: 'openapi.json', ...known }, cwd);
    expect(code).toBe(0);
    const { groups } = parse(read('protected-resources.yaml'));
    expect(groups.baskets).toEqual(['GET /baskets', 'PUT /baskets/{id}']);
    const config = parse(read('shopward.yaml'));
    expect(config).toMatchObject({ mode: 'observe', entityTags: false, refreshTokens: false });
    expect(config).not.toHaveProperty('urlResolver');
    expect(read('shopward.yaml')).not.toMatch(/carts|access-tokens|url-resolver|sub\.customer/);
    expect(await checkIn(cwd)).toEqual(noWord);
  });

  it.each([
    ['application/vnd.api+json', 'jsonapi'],
    ['application/problem+json; charset=utf-8', 'problem'],
    ['application/json', 'json'],
    ['text/html', 'json'],
  ])('sets errors.format to the format of the shop: %s', async (type, format) => {
    const answer: RequestListener = (_, response) =>
      void response.writeHead(404, { 'Content-Type': type }).end('{}');
    const done = await withShop(answer, (upstream) => initIn({ blank: true, upstream, keys: 'public.pem' }));
    expect(parse(done.read('shopward.yaml')).errors).toEqual({ format });
    expect(await checkIn(done.cwd)).toEqual(noWord);
    const given = await initIn({ blank: true, ...known, errors: 'problem' });
    expect(parse(given.read('shopward.yaml')).errors).toEqual({ format: 'problem' });
  });

  it.each(oddAnswers)('warns of answers that the proxy refuses: %s', async (cause, octets) => {
    const shop = await startRecordingUpstream(() => octets);
    onTestFinished(() => shop.close());
    const upstream = `http://127.0.0.1:${shop.port}`;
    const { out } = await initIn({ blank: true, upstream, keys: 'public.pem' });
    const warnings = out.filter((line) => line.startsWith('warning: '));
    expect(warnings).toHaveLength(cause === 'none' ? 0 : 2);
    if (cause !== 'none') expect(warnings[0]).toContain(cause);
  });

  it('protects everything until rows are written', async () => {
    const { cwd, out, read } = await initIn({ blank: true, keys: 'https://shop.example/jwks.json' });
    expect(parse(read('protected-resources.yaml')).groups).toEqual({ Everything: ['ANY /**'] });
    expect(parse(read('shopward.yaml')).auth.keys).toEqual({ jwks: 'https://shop.example/jwks.json' });
    expect(out.join('\n')).toContain('UPSTREAM_URL=');
    expect(await checkIn(cwd)).toEqual(noWord);
  });

  it('writes addresses as they are given', async () => {
    const { read } = await initIn({ blank: true, upstream: known.upstream, keys: "it's $1 own.pem" });
    const { upstream: filled, auth } = parse(read('shopward.yaml'));
    expect([filled.url, auth.keys.files]).toEqual([known.upstream, ["it's $1 own.pem"]]);
  });

  it('writes the path of a key file relative to the configuration', async () => {
    const cwd = makeFolder({ 'own.pem': publicKey });
    const { read } = await initIn({ blank: true, keys: 'own.pem' }, cwd);
    expect(parse(read('shopward.yaml')).auth.keys.files).toEqual(['../own.pem']);
    expect((await checkIn(cwd)).code).toBe(0);
  });

  it('writes a reference to a shared secret, not the secret', async () => {
    const { read, out, cwd } = await initIn({ blank: true, upstream: known.upstream, secret: 'MY_SECRET' });
    const auth = { algorithms: ['HS256'], keys: { secret: '${MY_SECRET}' } };
    expect(parse(read('shopward.yaml')).auth).toEqual(auth);
    expect(out.join('\n')).toContain('MY_SECRET=the-secret-of-your-shop shopward check');
    const env = { MY_SECRET: 'a secret of 32 octets, or of more.' };
    expect(await checkIn(cwd, env)).toEqual(noWord);
    const again = await initIn({ blank: true, secret: 'MY_SECRET', force: true }, cwd, env);
    expect(again.out.join('\n')).not.toContain('MY_SECRET=');
  });

  it.each<[string, string, (url: string) => Record<string, unknown>, object]>([
    [
      'a discovery document',
      '/api/v2',
      (url) => ({
        '/.well-known/openid-configuration': { issuer: 'https://shop.example', jwks_uri: `${url}/keys` },
        '/keys': { keys: [jwkOf('ec'), jwkOf('rsa')] },
      }),
      { algorithms: ['ES256', 'RS256'], keys: { jwks: '/keys' }, issuer: 'https://shop.example' },
    ],
    [
      'the usual path below its prefix',
      '/api/v2/',
      () => ({ '/api/v2/.well-known/jwks.json': { keys: [jwkOf('rsa')] } }),
      { algorithms: ['RS256'], keys: { jwks: '/api/v2/.well-known/jwks.json' } },
    ],
    [
      'the usual path',
      '',
      () => ({
        '/.well-known/openid-configuration': { jwks_uri: 'file:///etc/passwd' },
        '/.well-known/oauth-authorization-server': { jwks_uri: 7 },
        '/.well-known/jwks.json': { keys: [null, { kty: 'oct', k: 'AAAA' }, jwkOf('ec')] },
      }),
      { algorithms: ['ES256'], keys: { jwks: '/.well-known/jwks.json' } },
    ],
  ])('finds the keys of the shop by %s', async (_, prefix, pagesOf, auth) => {
    let pages: Record<string, unknown> = {};
    const asked: string[] = [];
    await withShop(
      ({ method, url = '' }, response) => {
        asked.push(`${method} ${url}`);
        response.writeHead(url in pages ? 200 : 404).end(JSON.stringify(pages[url] ?? {}));
      },
      async (url) => {
        pages = pagesOf(url);
        const { read, out, cwd } = await initIn({ blank: true, upstream: url + prefix });
        const config = parse(read('shopward.yaml').replaceAll(`${url}/`, '/'));
        expect(config.auth).toEqual(auth);
        expect(config.upstream.url).toBe(url);
        expect(out.join('\n')).toContain(`found: the shop answers at ${url} (404)`);
        expect(out.join('\n')).not.toMatch(/JWKS_URL|UPSTREAM_URL/);
        expect(await checkIn(cwd)).toEqual(noWord);
      },
    );
    expect(asked.length).toBeLessThanOrEqual(10);
    expect(asked.every((line) => line.startsWith('GET '))).toBe(true);
  });

  it('escapes references in addresses from the shop: no variable or file is inserted', async () => {
    const stolen = (at: string) => `${at}/keys/${'${'}MY_SECRET}/${'${'}file:public.pem}/$${'${'}MY_SECRET}`;
    await withShop(
      ({ url = '', headers }, response) => {
        const at = `http://${headers.host}`;
        const page = url.startsWith('/keys/')
          ? { keys: [jwkOf('ec')] }
          : { jwks_uri: stolen(at), issuer: stolen(at) };
        response.end(JSON.stringify(page));
      },
      async (upstream) => {
        const { cwd, out } = await initIn({ blank: true, upstream });
        expect(out.join('\n')).toContain(stolen(upstream));
        const given = { env: { MY_SECRET: 'a-secret-of-ours' }, validators: fileValidators };
        const loaded = await loadConfig({ file: 'config/shopward.yaml', cwd, ...given });
        if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems));
        const { keys, issuer } = loaded.config.auth;
        expect({ keys, issuer }).toEqual({ keys: { jwks: stolen(upstream) }, issuer: stolen(upstream) });
      },
    );
  });

  it('writes the prefix of the shop into rows and examples', async () => {
    const cwd = makeFolder({ 'o.json': JSON.stringify(document({ '/baskets': { get: secured } })) });
    const upstream = `${known.upstream}/api/v2`;
    const { read, out } = await initIn({ openapi: 'o.json', ...known, upstream }, cwd);
    expect(parse(read('protected-resources.yaml')).groups).toEqual({ baskets: ['GET /api/v2/baskets'] });
    expect(out.join('\n')).toContain(`found: no answer from ${upstream} (`);
    expect((await initIn({ blank: true, upstream })).read('protected-resources.yaml')).toContain(
      'GET /api/v2/orders',
    );
  });

  it('accepts no keys of another host, and sends no request there', async () => {
    let asked = 0;
    await withShop(
      (_, response) => {
        asked += 1;
        response.end(JSON.stringify({ keys: [jwkOf('ec')] }));
      },
      async (elsewhere) => {
        const jwks = elsewhere.replace('127.0.0.1', 'localhost');
        const done = await withShop(
          (_, response) => void response.end(JSON.stringify({ jwks_uri: `${jwks}/keys` })),
          (upstream) => initIn({ blank: true, upstream }),
        );
        expect(asked).toBe(0);
        expect(done.read('shopward.yaml')).toContain('${JWKS_URL}');
        expect(done.out.join('\n')).toContain('not found: its keys.');
      },
    );
  });

  it.each<InitOptions>([
    { blank: true, upstream: 'shop:9000' },
    { blank: true, upstream: 'ftp://shop' },
    { blank: true, upstream: 'http://user:password@shop' },
    { blank: true, upstream: 'http://shop/?a=b' },
    { blank: true, upstream: 'http://shop/{id}' },
    { blank: true, upstream: 'http://shop/$&"\'' },
    { blank: true, secret: 'a-secret-itself' },
    { blank: true, secret: 'A', keys: 'b.pem' },
  ])('writes nothing for %j', async (options) => {
    const cwd = makeFolder();
    const done = await runCommand((io) => runInit(options, io), { cwd });
    expect([done.code, done.err.length, readdirSync(cwd)]).toEqual([2, 1, []]);
  });

  it('takes issuer and audience from a sample token, and check then warns of neither', async () => {
    const claims = { iss: 'https://id.example', aud: ['shop', 'account'], exp: 1 };
    const token = ['{"alg":"RS256"}', JSON.stringify(claims), 'x'].map((part) =>
      Buffer.from(part).toString('base64url'),
    );
    const cwd = makeFolder({ sample: `Authorization: Bearer ${token.join('.')}\n`, empty: '' });
    const { code, out, read } = await initIn(
      { blank: true, token: 'sample', keys: 'config/public.pem' },
      cwd,
    );
    expect(code).toBe(0);
    expect(out).not.toContainEqual(expect.stringContaining('not found: the audience'));
    expect(parse(read('shopward.yaml')).auth).toMatchObject({ issuer: claims.iss, audience: claims.aud });
    const check = (config: string) => runCommand((io) => runCheck({ config, offline: true }, io), { cwd });
    writeFileSync(path.join(cwd, 'config/public.pem'), publicKey);
    writeFileSync(path.join(cwd, 'config/loose.yaml'), 'auth: { keys: { files: [public.pem] } }\n');
    const loose =
      /^warning: auth\.audience is not set: a token that the same keys signed for another API is accepted; /;
    expect((await check('config/shopward.yaml')).out).not.toContainEqual(expect.stringMatching(loose));
    expect((await check('config/loose.yaml')).out).toContainEqual(expect.stringMatching(loose));
    for (const none of ['empty', 'missing']) {
      const refused = await initIn({ blank: true, token: none, force: true }, cwd);
      expect([refused.code, refused.err]).toEqual([2, [`--token: ${none} contains no JSON Web Token`]]);
    }
  });

  it('replaces links with files, and only with --force', async () => {
    const cwd = makeFolder({ 'config/keep': '', target: 'mine' });
    for (const [name, target] of [
      ['shopward.yaml', 'target'],
      ['protected-resources.yaml', 'missing'],
    ] as const)
      symlinkSync(path.join(cwd, target), path.join(cwd, 'config', name));
    const { code, err } = await initIn({ blank: true }, cwd);
    expect([code, err[0]]).toEqual([2, expect.stringMatching(/exists already.*--force/)]);
    expect((await initIn({ blank: true, force: true }, cwd)).code).toBe(0);
    expect(readFileSync(path.join(cwd, 'target'), 'utf8')).toBe('mine');
    expect(existsSync(path.join(cwd, 'missing'))).toBe(false);
  });

  it('writes nothing for a document that cannot be read, or has no row', async () => {
    for (const [text, code] of [
      ['{', 2],
      [JSON.stringify(document({ '/a': { get: {} } })), 1],
    ] as const) {
      const cwd = makeFolder({ 'openapi.json': text });
      const done = await runCommand((io) => runInit({ openapi: 'openapi.json' }, io), { cwd });
      expect(done.code).toBe(code);
      expect(done.err.some((line) => line.includes('shopward init --blank'))).toBe(code === 1);
      expect(existsSync(path.join(cwd, 'config')) ? readdirSync(path.join(cwd, 'config')) : []).toEqual([]);
    }
  });

  it.each<InitOptions>([{}, { blank: true, spryker: true }, { openapi: 'x', blank: true }])(
    'asks which kind of shop it is: %j',
    async (options) => {
      const done = await runCommand((io) => runInit(options, io), { cwd: makeFolder() });
      expect([done.code, done.err.join()]).toEqual([2, expect.stringContaining('--spryker')]);
    },
  );
});

it('a shop that answers with unusable keys gives a status and no other fact', async () => {
  const facts = await withShop(
    (_, response) => void response.end('{"keys":[{"kty":"EC","crv":"P-256"}],"jwks_uri":"http://["}'),
    (url) => probeShop(new URL(url)),
  );
  expect(JSON.parse(JSON.stringify(facts))).toEqual({ status: 200, algorithms: [], refused: [] });
});
