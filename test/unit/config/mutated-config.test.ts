import { writeFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { compileRules } from '../../../src/app/filter-definition.ts';
import { filterDefinitions } from '../../../src/app/filters.ts';
import { secretsOf } from '../../../src/app/secrets.ts';
import { createApp } from '../../../src/app.ts';
import { adviceValidators } from '../../../src/cli/list-advice.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { anyText } from '../../harness/any-text.ts';
import { testCertificate, testKey } from '../../harness/tls-fixture.ts';
import { makeFolder } from './config-folder.ts';

const log = createLog('silent');

/** A valid configuration with every kind of value. */
const valid = {
  mode: 'enforce',
  listen: { host: '127.0.0.1', port: 0, tls: { cert: 'cert.pem', key: 'key.pem' }, drainDelay: '0s' },
  admin: { port: 0, token: 'a'.repeat(32), hosts: ['shop.example'] },
  request: { encodedSlash: ['/a/{b}'], ignoredPrefixes: ['/index.php'], methods: ['QUERY'], itemForms: true },
  upstream: { url: 'https://shop.example/api', tls: { serverName: 'shop.example' }, webSocket: true },
  publicUrl: 'https://api.shop.example',
  trustedProxies: ['10.0.0.0/8'],
  trustedFields: ['CF-Connecting-IP'],
  protectedResourcesPath: '/protected-resources',
  auth: {
    issuers: [
      { issuer: 'https://a.example', keys: { discover: true }, subject: ['id', 'sub'] },
      { issuer: 'b', name: 'b', algorithms: ['HS256'], keys: { secret: 'x'.repeat(32) } },
    ],
    audience: ['shop'],
    forward: { subject: 'X-Auth-Subject', issuer: 'X-Auth-Issuer' },
  },
  entityTags: {
    lease: '15s',
    resources: [
      { collection: '/carts', member: '/carts/{id}', methods: ['PATCH'], ignore: ['/data/attributes/at'] },
      { collection: '/lists/{list}/items', member: '/lists/{list}/items/{id}' },
    ],
  },
  urlResolver: { path: '/url-resolver', source: 'upstream', locales: ['en', 'de'] },
  refreshTokens: {
    endpoints: [
      { kind: 'issue', method: 'POST', path: '/token', format: 'form' },
      { kind: 'revoke', method: 'DELETE', path: '/refresh-tokens/{id}', fields: {} },
    ],
    digestKey: 'y'.repeat(20),
  },
  rateLimits: { rows: [{ method: 'GET', path: '/a/**', requests: 5, per: '1s', mode: 'enforce' }] },
  limits: { routes: [{ path: '/uploads/**', requestBody: '5MiB' }], eventLoopStall: 'none' },
  cors: { origins: ['https://shop.example'] },
  rejections: { 'url-missing': { status: 404 } },
};

/** All paths of keys and indexes in a value. */
function pathsOf(value: unknown, at: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([key, child]) => pathsOf(child, [...at, key]))];
}

const paths = pathsOf(valid).filter(({ length }) => length > 0);
const valueAt = (at: readonly string[]) =>
  at.reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], valid);
const texts = paths.filter((at) => typeof valueAt(at) === 'string' && String(valueAt(at)).includes('/'));
const odd = fc.constantFrom<unknown>(
  ...['..', '.', '*', '**', ':x', '', 'a;b', '%61', '%2F', '%ff', '%', 'é', '__proto__', '{id', '{a-b}'],
  ...['/', '//', '/**', '/{id}', '/carts/{id}/items', '/carts/{id}', '/CARTS', '/carts', '/lists/{a}/{b}'],
  ...['/lists/{list}/items/{id}/x', '/cart/{id}', '/a/../b', '/refresh-tokens', 'Authorization', 'te'],
  ...[0, -1, Number.NaN, 2 ** 53, true, false, null, '0s', '36500d', '1B', 'none', 'memory'],
  '-----BEGIN X-----',
  ...[[], {}, [[]], [null], [{}], { __proto__: null }, ['a', 'a'], 'gone.pem', '.', '${X', '${X:-/a/{b}}'],
);
/** Sets one value to an odd value, to the value of another key, or to a list that contains it twice. */
const mutation = fc.record({
  at: fc.oneof(fc.constantFrom(...paths), fc.constantFrom(...texts)),
  value: fc.oneof(
    odd,
    fc.constantFrom(...paths).map(valueAt),
    anyText({ maxLength: 5 }),
    fc.constantFrom(...paths).map((at) => [valueAt(at), valueAt(at)]),
  ),
});

function mutate(mutations: readonly { readonly at: readonly string[]; readonly value: unknown }[]): string {
  const copy = structuredClone(valid);
  for (const { at, value } of mutations) {
    let parent: unknown = copy;
    for (const key of at.slice(0, -1)) parent = Object(parent)[key];
    if (typeof parent === 'object' && parent !== null)
      (parent as Record<string, unknown>)[at.at(-1) ?? ''] = value;
  }
  return JSON.stringify(copy);
}

it('a mutated configuration is refused with line and column, or accepted; nothing throws', async () => {
  const protectedList = 'groups: { carts: [GET /carts, "PATCH /carts/{id}", "ANY /a/**"] }\ncomplete: true\n';
  const cwd = makeFolder({
    'cert.pem': testCertificate,
    'key.pem': testKey,
    'protected-resources.yaml': protectedList,
  });
  const counts = { served: 0, refused: 0 };
  const tryOne = async (text: string) => {
    writeFileSync(path.join(cwd, 'c.yaml'), text);
    const loaded = await loadConfig({ file: 'c.yaml', env: {}, cwd, validators: adviceValidators });
    if ('problems' in loaded) {
      counts.refused += 1;
      expect(loaded.problems.filter(({ line, column }) => !(line >= 1 && column >= 1))).toEqual([]);
      return;
    }
    counts.served += 1;
    compileRules(loaded.config, { match: () => undefined, tokenParameters: [] }, filterDefinitions);
    const app = await createApp({
      config: loaded.config,
      protectedList: { text: protectedList },
      secrets: secretsOf(loaded),
      log,
    });
    await app.close(0);
  };
  await tryOne(JSON.stringify(valid));
  expect(counts).toEqual({ served: 1, refused: 0 });
  const mutated = fc.array(mutation, { minLength: 1, maxLength: 2 }).map(mutate);
  await fc.assert(fc.asyncProperty(mutated, tryOne), {
    numRuns: 50,
    examples: [
      [mutate([{ at: ['entityTags', 'resources', '0', 'member'], value: '/cart/{id}' }])],
      [mutate([{ at: ['entityTags', 'resources', '1', 'collection'], value: '/carts/{id}/items' }])],
    ],
  });
  expect(Math.min(counts.served, counts.refused)).toBeGreaterThan(1);
});
