import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { configJsonSchema, type JsonSchema } from '../../../src/config/json-schema.ts';

const root = path.join(import.meta.dirname, '../../..');
/** Excluded from the test files that start a proxy: in alerts of Prometheus some keys mean something else. */
const exclude = ['test/unit/config/**', 'test/end-to-end/deploy/provoked-alerts.test.ts'];
const texts = globSync('test/**/*.ts', { cwd: root, exclude })
  .map((file) => readFileSync(path.join(root, file), 'utf8'))
  .filter((text) => /\bstartShopward|\battack-stage\b|\bstartReplica\b/.test(text));

const byOptions = (tests: string) => `only its option is tested: ${tests}`;
const tokenType = byOptions('test/end-to-end/docs/identity-providers, test/security/attacks/corpus');

/** Keys that no test sets in a running proxy -> reason. */
const reasons: Readonly<Record<string, string>> = {
  'admin.hosts': byOptions('test/unit/admin/admin-server'),
  'auth.tokenType.claim': tokenType,
  'auth.tokenType.header': tokenType,
  'auth.tokenType.values': tokenType,
  'cors.credentials': byOptions('test/unit/server/cors'),
  'cors.exposedFields': byOptions('test/unit/server/cors'),
  'entityTags.anonymousRecords': byOptions('test/unit/entity-tags/entity-tags'),
  'listen.keepAliveTimeout': byOptions('test/unit/server/listener'),
  'refreshTokens.endpoints.fields.refreshExpiresIn': byOptions('test/unit/refresh-tokens/issued-tokens'),
  'refreshTokens.retention': byOptions('test/unit/refresh-tokens/memory-store'),
  'store.sentinelPassword': 'no Sentinel of the tests has a password',
  'upstream.idleTimeout': byOptions('test/unit/upstream'),
  'urlResolver.maxEntries': byOptions('test/unit/url-resolver/freshness'),
};

/** Each key without keys below it, such as `listen.tls.minVersion`. */
function leavesOf({ properties, anyOf = [], items, prefixItems = [] }: JsonSchema, at: string): string[] {
  const below = [...anyOf, ...prefixItems, ...(items === undefined ? [] : [items])].flatMap((one) =>
    leavesOf(one, at),
  );
  const own = Object.entries(properties ?? {}).flatMap(([key, schema]) => {
    const name = at === '' ? key : `${at}.${key}`;
    const leaves = leavesOf(schema, name);
    return leaves.length > 0 ? leaves : [name];
  });
  return [...own, ...below];
}

it('each key is set by a test with a running proxy, or has a reason', () => {
  // test/end-to-end/rejections.test.ts sets all names of `rejections`. `auth.issuers` is read like `auth`.
  const leaves = [...new Set(leavesOf(configJsonSchema(), ''))].filter(
    (key) => !/^(?:rejections|auth\.issuers)\./.test(key),
  );
  expect(leaves.length).toBeGreaterThan(100);
  const isSet = (name: string) => {
    const above = name.split('.');
    const key = new RegExp(`\\b${above.pop()}\\b['"]?\\s*[:,}]`);
    return texts.some(
      (text) => key.test(text) && above.every((step) => new RegExp(`\\b${step}\\b`).test(text)),
    );
  };
  const unset = leaves.filter((key) => !isSet(key));
  expect(unset.toSorted()).toEqual(Object.keys(reasons).toSorted());
});
