import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runCheck } from '../../../src/cli/check.ts';
import { freePort } from '../../harness/free-port.ts';
import { makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';

const onlyKeys = 'auth: { keys: { jwks: "https://shop.example/jwks.json" }, audience: shop }';
/** Without refreshTokens: its endpoint that revokes tokens would need a row. */
const keys = `${onlyKeys}\nrefreshTokens: false`;
const list = 'groups:\n  Carts:\n    - GET /carts/**\ncomplete: true\n';

function check(
  files: Record<string, string>,
  options: { json?: boolean; config?: string; offline?: boolean } = {},
  env: Record<string, string> = {},
) {
  const cwd = makeFolder({ 'config/protected-resources.yaml': list, ...files });
  return runCommand((io) => runCheck({ offline: true, ...options }, io), { cwd, env });
}

describe('check', () => {
  it('names what it checked, and exits 0', async () => {
    expect(await check({ 'config/shopward.yaml': keys })).toEqual({
      code: 0,
      out: ['checked config/shopward.yaml, config/protected-resources.yaml: ok'],
      err: [],
    });
  });

  it('prints the problems of every file, and exits 1', async () => {
    const files = {
      'my.yaml': `mode: x\n${keys}\nprotectedResources: l.yaml\nurlResolver: { source: urls.csv }\n`,
      'l.yaml': 'groups:\n  Carts:\n    - GOT /carts\ncomplete: true\n',
      'urls.csv': 'url,entityType,entityId\n/en/a,robots,1\n',
    };
    const { code, out } = await check(files, { config: 'my.yaml' });
    expect(code).toBe(1);
    expect(out).toEqual([
      'my.yaml:1:7: error: mode must be one of enforce, observe',
      expect.stringMatching(/^l\.yaml:3:7: error: /),
      expect.stringMatching(/^urls\.csv:2:\d+: error: /),
      'checked my.yaml, l.yaml, urls.csv: 3 errors',
    ]);
  });

  it('exits 0 when there are only notes', async () => {
    const { code, out } = await check({ 'config/shopward.yaml': `${keys}\nmode: observe\n` });
    expect(code).toBe(0);
    expect(out.at(-1)).toBe('checked config/shopward.yaml, config/protected-resources.yaml: ok');
    expect(out[0]).toMatch(/: note: mode is observe: /);
  });

  it('without a profile, names rows and tracked resources that also match longer paths', async () => {
    const rows = ['GET /store/orders/{id}', 'GET /orders/{id}', 'ANY /store/me/**', 'GET /store/{a}/{b}/{c}'];
    const advice = async (request: string) => {
      const { code, out } = await check({
        'config/shopward.yaml': `${keys}\n${request}entityTags:\n  resources:\n    - { collection: /store/carts, member: "/store/carts/{id}" }\n    - { collection: /carts, member: "/carts/{id}" }\n`,
        'config/protected-resources.yaml': `groups:\n  A:\n${rows.map((row) => `    - ${row}\n`).join('')}complete: true\n`,
      });
      expect(code).toBe(0);
      return out.filter((line) => line.includes('request.profile'));
    };
    expect(await advice('')).toEqual([
      expect.stringMatching(
        /^config\/shopward\.yaml:5:43: warning: entityTags\.resources\[0\]\.member cannot have changes below it: \/store\/carts\/1\/x\/y /,
      ),
      expect.stringMatching(
        /^config\/protected-resources\.yaml:3:7: warning: GET \/store\/orders\/\{id\}: also applies to \/store\/orders\/1\/x\/y, /,
      ),
    ]);
    expect(await advice('request: { profile: plain }\n')).toEqual([]);
    expect(await advice('request: { profile: spryker }\n')).toEqual([]);
    expect(await advice('request: { lastPair: false }\n')).toEqual([]);
  });

  it('warns of a condition that compares a claim with a text that looks like a claim path', async () => {
    const rows = ['id: sub', 'customer: sub.name', 'kind: human'].map(
      (one) => `    - { match: "GET /${one[0]}/{id}", require: { ${one} } }\n`,
    );
    const { code, out } = await check({
      'config/shopward.yaml': keys,
      'config/protected-resources.yaml': `groups:\n  A:\n${rows.join('')}complete: true\n`,
    });
    expect([code, out.filter((line) => line.includes('parameter'))]).toEqual([
      0,
      [
        'config/protected-resources.yaml:4:7: warning: GET /c/{id} has no parameter {customer}: the claim customer must be the text "sub.name"',
      ],
    ]);
  });

  it('warns of rows that refuse every token', async () => {
    const list = 'groups:\n  A:\n    - { match: "GET /a", proof: required }\ncomplete: true\n';
    const advice = async (config: string) => {
      const files = { 'config/shopward.yaml': config, 'config/protected-resources.yaml': list };
      return (await check(files)).out.filter((line) => line.includes('auth.proof'));
    };
    expect(await advice(keys)).toEqual([
      'config/protected-resources.yaml:3:7: warning: GET /a refuses every token: proof: required needs auth.proof',
    ]);
    expect(await advice(keys.replace('auth: {', 'auth: { proof: dpop,'))).toEqual([]);
  });

  it('warns of a path condition that each of several issuers may satisfy', async () => {
    const rows = ['id: sub', 'id: sub, iss: [https://a.example]', 'kind: human'].map(
      (one, i) => `    - { match: "GET /${i}/{id}", require: { ${one} } }\n`,
    );
    const advice = async (...names: readonly string[]) => {
      const issuers = names.map((name) => ({
        issuer: name,
        keys: { jwks: 'https://shop.example/jwks.json' },
      }));
      const { code, out } = await check({
        'config/shopward.yaml': `auth: ${JSON.stringify({ issuers, audience: 'shop' })}\nrefreshTokens: false\n`,
        'config/protected-resources.yaml': `groups:\n  A:\n${rows.join('')}complete: true\n`,
      });
      expect(code).toBe(0);
      return out.filter((line) => line.includes('issuers'));
    };
    expect(await advice('https://a.example')).toEqual([]);
    expect(await advice('https://a.example', 'https://b.example')).toEqual([
      'config/protected-resources.yaml:3:7: warning: GET /0/{id} accepts the claim from each of auth.issuers: add iss: [ISSUER] to require',
    ]);
  });

  it('warns of a revocation that no row protects', async () => {
    const revocations = async (config: string, row: string) => {
      const { out } = await check({
        'config/shopward.yaml': `${onlyKeys}\n${config}`,
        'config/protected-resources.yaml': `groups:\n  A:\n    - ${row}\ncomplete: true\n`,
      });
      return out.filter((line) => line.includes('revokes nothing'));
    };
    expect(await revocations('', 'DELETE /carts')).toEqual([
      'config/protected-resources.yaml:1:1: warning: refreshTokens: DELETE /refresh-tokens/{refresh_token_id} revokes nothing, since no row protects it: add the row "DELETE /refresh-tokens/{refresh_token_id}"',
    ]);
    expect(await revocations('', 'DELETE /refresh-tokens/{id}')).toEqual([]);
    expect(await revocations('', 'ANY /refresh-tokens/**')).toEqual([]);
    expect(await revocations('refreshTokens: false', 'DELETE /carts')).toEqual([]);
  });

  it('warns of changes to a guarded collection that no row protects', async () => {
    const config = (batch: string) =>
      `${onlyKeys}\nentityTags: { resources: [{ collection: /carts, member: '/carts/{id}', batch: ${batch} }] }\n`;
    const advice = async (batch: string, row: string) => {
      const { out } = await check({
        'config/shopward.yaml': config(batch),
        'config/protected-resources.yaml': `groups:\n  A:\n    - ${row}\ncomplete: true\n`,
      });
      return out.filter((line) => line.includes('guarded'));
    };
    expect(await advice('guarded', 'POST /carts')).toEqual(
      ['PATCH /carts', 'DELETE /carts'].map(
        (row) =>
          `config/protected-resources.yaml:1:1: warning: entityTags.resources: ${row} is refused (batch: guarded), since no row protects it: add the row "${row}"`,
      ),
    );
    expect(await advice('guarded', 'ANY /carts/**')).toEqual([]);
    expect(await advice('refuse', 'GET /orders')).toEqual([]);
    expect(await advice('lenient', 'GET /orders')).toEqual([
      'config/shopward.yaml:2:79: error: entityTags.resources[0].batch must be one of refuse, guarded',
    ]);
  });

  it('warns of rows that protect nothing', async () => {
    const rows = ['GET /url-resolver', 'ANY /protected-resources', 'PATCH /url-resolver', 'ANY /**'];
    const list = `groups:\n  Own:\n${rows.map((row) => `    - ${row}\n`).join('')}complete: true\n`;
    const { code, out } = await check({
      'config/shopward.yaml': `${keys}\nurlResolver: {}\n`,
      'config/protected-resources.yaml': list,
    });
    expect(code).toBe(0);
    expect(out.slice(0, -1).filter((line) => line.includes('itself'))).toEqual([
      'config/protected-resources.yaml:3:7: warning: GET /url-resolver: shopward answers GET /url-resolver itself, and asks for no token',
      'config/protected-resources.yaml:4:7: warning: ANY /protected-resources: shopward answers GET /protected-resources itself, and asks for no token',
    ]);
  });

  it('exits 1 when there is nothing to check', async () => {
    const { code, out } = await check({}, { config: 'gone.yaml' });
    expect(code).toBe(1);
    expect(out.at(-1)).toBe('checked nothing: 1 error');
  });

  it('checks key files', async () => {
    const { publicKey: weak } = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const files = {
      'config/shopward.yaml': 'auth: { keys: { files: [weak.pem] } }\n',
      'config/weak.pem': weak.export({ type: 'spki', format: 'pem' }).toString(),
    };
    const { code, out } = await check(files);
    expect(code).toBe(1);
    expect(out[0]).toMatch(
      /^config\/shopward\.yaml:1:25: error: auth\.keys\.files\[0\] names config\/weak\.pem: /,
    );
  });

  it('names what does not apply to /authorize, and warns if it would refuse everything', async () => {
    const said = async (more: string) => (await check({ 'config/shopward.yaml': `${keys}\n${more}\n` })).out;
    const authorize = 'authorize: { listen: { port: 8082 } }';
    expect(await said(`trustedProxies: [10.0.0.1]\n${authorize}`)).toEqual([
      'note: authorize: entityTags, limits.requestBody, WebSockets do not apply to requests that another proxy forwards',
      expect.stringMatching(/: ok$/),
    ]);
    expect((await said(authorize))[0]).toBe(
      'config/shopward.yaml:3:12: warning: authorize answers each question with 403: trustedProxies is empty',
    );
    for (const port of ['listen: { port: 8082 }', 'admin: { port: 8082 }'])
      expect((await said(`trustedProxies: [10.0.0.1]\n${authorize}\n${port}`))[0]).toMatch(
        /: error: authorize\.listen\.port must not be the port of another listener$/,
      );
    expect((await said('authorize: { listen: { port: 0 } }'))[0]).toMatch(/: error: authorize\.listen\.port/);
    expect((await said('authorize: true'))[0]).toMatch(/: error: authorize /);
  });

  it('loads keys and warns if there are none; --offline does neither', async () => {
    const key = {
      ...generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' }),
    };
    const server = createServer((_, response) => response.end(JSON.stringify({ keys: [key] })));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const said = async (at: number, offline: boolean) => {
      const text = `auth: { keys: { jwks: "http://127.0.0.1:${at}/jwks.json" }, audience: a }\nrefreshTokens: false\n`;
      const { code, out } = await check({ 'config/shopward.yaml': text }, { offline });
      expect(code).toBe(0);
      return out.slice(0, -1);
    };
    expect(await said(await freePort(), false)).toEqual([
      expect.stringMatching(/^warning: auth\.keys: no key could be loaded \(unreachable\)/),
    ]);
    expect(await said(await freePort(), true)).toEqual([]);
    expect(await said(port, false)).toEqual([]);
  });

  it('warns of a tracked token endpoint', async () => {
    const said = async (resource: string, more = '') => {
      const config = `${onlyKeys}\nentityTags: { resources: [{ collection: ${resource}, member: "${resource}/{id}" }] }\n${more}`;
      const { out } = await check({ 'config/shopward.yaml': config });
      return out.filter((line) => line.includes('cannot sign in'));
    };
    expect(await said('/access-tokens')).toEqual([
      expect.stringMatching(/^warning: entityTags\.resources: POST \/access-tokens .* answered with 400/),
    ]);
    expect(await said('/carts')).toEqual([]);
    expect(await said('/access-tokens', 'refreshTokens: false\n')).toEqual([]);
  });

  it('--json prints the same as JSON', async () => {
    const { code, out } = await check({ 'config/shopward.yaml': `mode: x\n${keys}\n` }, { json: true });
    expect(code).toBe(1);
    expect(JSON.parse(out.join('\n'))).toEqual({
      ok: false,
      notes: [],
      files: [
        {
          role: 'config',
          name: 'config/shopward.yaml',
          path: expect.stringMatching(/^\/.*config\/shopward\.yaml$/),
        },
        {
          role: 'protected-resources',
          name: 'config/protected-resources.yaml',
          path: expect.stringMatching(/^\/.*config\/protected-resources\.yaml$/),
        },
      ],
      problems: [
        {
          file: 'config/shopward.yaml',
          line: 1,
          column: 7,
          severity: 'error',
          text: 'mode must be one of enforce, observe',
        },
      ],
    });
  });
});

describe('the shipped files', () => {
  it('pass with the address of the keys from the environment', async () => {
    const env = { JWKS_URL: 'https://shop.example/jwks.json', UPSTREAM_URL: 'http://shop:9000' };
    const { code, out } = await runCommand((io) => runCheck({ offline: true }, io), { env });
    expect(out.filter((line) => line.includes(': error: '))).toEqual([]);
    expect(code).toBe(0);
  });

  it('name a missing variable with line and column', async () => {
    const { code, out } = await runCommand((io) => runCheck({}, io));
    expect(code).toBe(1);
    expect(out.filter((line) => line.includes(': error: '))).toEqual([
      expect.stringMatching(
        /^config\/shopward\.yaml:\d+:\d+: error: auth\.keys\.jwks needs the environment variable JWKS_URL, which is not set$/,
      ),
    ]);
  });
});
