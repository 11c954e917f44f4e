import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runCheck } from '../../../src/cli/check.ts';
import { freePort } from '../../harness/free-port.ts';
import { rowsOf } from '../../harness/text-table.ts';
import { startJwksServer } from '../access/jwks-server.ts';
import { listOf } from '../access/list-text.ts';
import { makeSigner } from '../access/signing.ts';
import { makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';

/** Without refreshTokens: its endpoint that revokes tokens would need a row. */
const usual = [
  'auth: { keys: { jwks: "https://shop.example/jwks.json" }, audience: shop }',
  'refreshTokens: false',
  'request: { profile: plain }',
];
const keys = usual.join('\n');
const listName = 'config/protected-resources.yaml';

function check(
  files: Record<string, string>,
  options: { json?: boolean; config?: string; offline?: boolean } = {},
  env: Record<string, string> = {},
) {
  const cwd = makeFolder({ [listName]: listOf('GET /carts/**'), ...files });
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
    const { code, out } = await check({ 'config/shopward.yaml': keys.replace('profile: plain', '') });
    expect(code).toBe(0);
    expect(out).toEqual([
      expect.stringMatching(/^note: request\.profile is not set: /),
      'checked config/shopward.yaml, config/protected-resources.yaml: ok',
    ]);
  });

  it('exits 1 when there is nothing to check', async () => {
    const { code, out } = await check({}, { config: 'gone.yaml' });
    expect([code, out.at(-1)]).toEqual([1, 'checked nothing: 1 error']);
  });

  it('checks key files', async () => {
    const { publicKey: weak } = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const files = {
      'config/shopward.yaml': 'auth: { keys: { files: [weak.pem] } }\n',
      'config/weak.pem': weak.export({ type: 'spki', format: 'pem' }).toString(),
    };
    const { code, out } = await check(files);
    const problem = /^config\/shopward\.yaml:1:25: error: auth\.keys\.files\[0\] names config\/weak\.pem: /;
    expect([code, out[0]]).toEqual([1, expect.stringMatching(problem)]);
  });

  it('loads keys and warns if there are none; --offline does neither', async () => {
    const keyServer = await startJwksServer(makeSigner('RS256'));
    onTestFinished(() => keyServer.close());
    const away = `http://127.0.0.1:${await freePort()}/`;
    const said = async (url: string, offline: boolean) => {
      const text = `auth: { keys: { jwks: "${url}" }, audience: a }\nrefreshTokens: false\nrequest: { profile: plain }\n`;
      const { code, out } = await check({ 'config/shopward.yaml': text }, { offline });
      expect(code).toBe(0);
      return out.slice(0, -1);
    };
    expect(await said(away, false)).toEqual([
      expect.stringMatching(
        /^warning: auth\.keys: no key could be loaded \(unreachable: no connection to the source, or it broke \(ECONNREFUSED\)\)/,
      ),
    ]);
    expect(await said(away, true)).toEqual([]);
    expect(await said(keyServer.url, false)).toEqual([]);
  });

  it('--json prints the same as JSON', async () => {
    const { code, out } = await check({ 'config/shopward.yaml': `mode: x\n${keys}\n` }, { json: true });
    expect(code).toBe(1);
    const at = (name: string) => expect.stringMatching(new RegExp(`^/.*/config/${name}$`));
    const text = 'mode must be one of enforce, observe';
    expect(JSON.parse(out.join('\n'))).toEqual({
      ok: false,
      notes: [],
      files: [
        { role: 'config', name: 'config/shopward.yaml', path: at('shopward.yaml') },
        { role: 'protected-resources', name: listName, path: at('protected-resources.yaml') },
      ],
      problems: [{ file: 'config/shopward.yaml', line: 1, column: 7, severity: 'error', text }],
    });
  });
});

const tracked = (path: string, more = '') => `{ collection: ${path}, member: "${path}/{id}"${more} }`;
const issuers = (...names: string[]) =>
  names
    .map((name) => `{ issuer: "https://${name}.example", keys: { jwks: "https://shop.example/k" } }`)
    .join();
const ofIssuers = `- { match: "GET /0/{id}", require: { id: sub } }
- { match: "GET /1/{id}", require: { id: sub, iss: [https://a.example] } }
- { match: "GET /2/{id}", require: { kind: human } }`;

/** A word, a configuration and rows of its list; then the beginning of each output line that contains the word. */
const advice = rowsOf(`
# request.profile
request: {}
  note: request.profile is not set
# request.profile
request: { profile: spryker } => -
# request.profile
request: { lastPair: false } => -
# parameter
- { match: "GET /i/{id}", require: { id: sub } }
- { match: "GET /c/{id}", require: { customer: sub.name } }
- { match: "GET /k/{id}", require: { kind: human } }
  config/protected-resources.yaml:4:7: warning: GET /c/{id} has no parameter {customer}: the claim customer must be the text "sub.name"
# auth.proof
- { match: "GET /a", proof: required }
  config/protected-resources.yaml:3:7: warning: GET /a refuses every token: proof: required needs auth.proof
# auth.proof
auth: { proof: dpop, keys: { jwks: "https://shop.example/jwks.json" } }
- { match: "GET /a", proof: required } => -
# auth.issuers
auth: { audience: shop, issuers: [${issuers('a')}] }
${ofIssuers} => -
# auth.issuers
auth: { audience: shop, issuers: [${issuers('a', 'b')}] }
${ofIssuers}
  config/protected-resources.yaml:3:7: warning: GET /0/{id} accepts the claim from each of auth.issuers: add iss: [ISSUER] to require
# revokes nothing
refreshTokens: {}
- DELETE /carts
  config/protected-resources.yaml:1:1: warning: refreshTokens: DELETE /refresh-tokens/{refresh_token_id} revokes nothing, since no row protects it: add the row "DELETE /refresh-tokens/{refresh_token_id}"
# revokes nothing
refreshTokens: {}
- DELETE /refresh-tokens/{id} => -
# revokes nothing
refreshTokens: {}
- ANY /refresh-tokens/** => -
# revokes nothing
- DELETE /carts => -
# guarded
entityTags: { resources: [${tracked('/carts', ', batch: guarded')}] }
- POST /carts
  config/protected-resources.yaml:1:1: warning: entityTags.resources: PATCH /carts is refused (batch: guarded), since no row protects it: add the row "PATCH /carts"
  config/protected-resources.yaml:1:1: warning: entityTags.resources: DELETE /carts is refused (batch: guarded), since no row protects it: add the row "DELETE /carts"
# guarded
entityTags: { resources: [${tracked('/carts', ', batch: guarded')}] }
- ANY /carts/** => -
# itself
urlResolver: {}
- GET /url-resolver
- ANY /protected-resources
- PATCH /url-resolver
- ANY /**
  config/protected-resources.yaml:3:7: warning: GET /url-resolver: shopward answers GET /url-resolver itself, and asks for no token
  config/protected-resources.yaml:4:7: warning: ANY /protected-resources: shopward answers GET /protected-resources itself, and asks for no token
# authorize
trustedProxies: [10.0.0.1]
authorize: { listen: { port: 8082 } }
  note: authorize: entityTags, limits.requestBody, WebSockets do not apply to requests that another proxy forwards
# authorize
authorize: { listen: { port: 8082 } }
  config/shopward.yaml:1:12: warning: authorize answers each question with 403: trustedProxies is empty
  note: authorize: entityTags, limits.requestBody, WebSockets do not apply to requests that another proxy forwards
`);

describe('check prints about', () => {
  it.each(advice)('%s', async (input, expected) => {
    const [[about = ''] = [], config, rows] = [/^# /, /^[a-z]/, /^- /].map((start) =>
      input.split('\n').flatMap((line) => (start.test(line) ? line.replace(/^[#-] /, '') : [])),
    );
    const others = usual.filter((line) => !input.includes(`\n${line.slice(0, 5)}`));
    const { code, out } = await check({
      'config/shopward.yaml': [...(config ?? []), ...others, ''].join('\n'),
      [listName]: listOf(...(rows?.length ? rows : ['GET /orders'])),
    });
    const lines = out.filter((line) => line.includes(about));
    expect(lines.map((line, i) => line.slice(0, expected[i]?.length))).toEqual(expected);
    expect(code).toBe(lines.some((line) => line.includes(': error: ')) ? 1 : 0);
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
