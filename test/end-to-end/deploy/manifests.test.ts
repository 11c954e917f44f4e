import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { type DemoShop, startDemoShop } from '../../../demo/shop.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');

let shop: DemoShop;
let redis: Awaited<ReturnType<typeof startRedis>>;
let shopward: Shopward;
/** Samples that shopward can expose; labels that it exposes or that Prometheus may add. */
const exposed = new Set<string>();
const labels = new Set(['instance', 'job', 'namespace']);
beforeAll(async () => {
  shop = await startDemoShop();
  redis = await startRedis({});
  shopward = await startShopward({ upstream: shop.url, config: { store: { url: redis.url } } });
  await fetch(`${shopward.url}/orders`);
  await fetch(`${shopward.url}/carts`, {
    headers: { Accept: 'application/vnd.api+json', Authorization: `Bearer ${shopward.issueToken()}` },
  });
  const text = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    for (const ending of endings[type as keyof typeof endings] ?? ['']) exposed.add(name + ending);
  }
  for (const [, label] of text.matchAll(/[{,]([a-z_]+)="/g)) labels.add(label as string);
  // Only with `listen.tls`, which test/end-to-end/secrets-reload.test.ts covers.
  exposed.add('shopward_certificate_expiry_timestamp_seconds');
  // Only with several workers, which test/unit/cluster covers.
  for (const name of ['shopward_workers', 'shopward_workers_serving', 'shopward_worker_restarts_total']) {
    exposed.add(name);
  }
});
afterAll(async () => {
  await shopward.stop();
  await redis.close();
  await shop.close();
});

/** Endings of the sample names of a type. */
const endings = { histogram: ['_bucket', '_count', '_sum'] };

/** Metrics of an expression: names with a known prefix, outside of selectors and `by` lists. */
const namesIn = (text: string) =>
  [...withoutGroups(text).matchAll(/\b((?:shopward|http|process|nodejs)_[a-z0-9_]+)/g)].map(
    ([, name]) => name as string,
  );
const withoutGroups = (text: string) => text.replace(/\{[^}]*\}|\bby \([^)]*\)/g, '');
/** Labels that an expression selects or groups by. */
const labelsIn = (text: string) => [
  ...[...text.matchAll(/[{,]\s*([a-z_]+)=/g)].map(([, label]) => label as string),
  ...[...text.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => (list as string).split(/,\s*/)),
];

test.each([
  [
    'the dashboard',
    () =>
      (JSON.parse(read('deploy/grafana/shopward.json')).panels as { targets: { expr: string }[] }[]).flatMap(
        ({ targets }) => targets.map(({ expr }) => expr),
      ),
  ],
  [
    'the alerts',
    () =>
      (
        parse(read('deploy/prometheus/shopward.rules.yaml')).groups as { rules: { expr: string }[] }[]
      ).flatMap(({ rules }) => rules.map(({ expr }) => expr)),
  ],
])('%s asks only for existing metrics and labels', (_, expressions) => {
  const names = expressions().flatMap(namesIn);
  expect(names.length).toBeGreaterThan(4);
  expect(names.filter((name) => !exposed.has(name))).toEqual([]);
  const used = expressions().flatMap(labelsIn);
  expect(used.length).toBeGreaterThan(1);
  expect(used.filter((label) => !labels.has(label))).toEqual([]);
});

test('manifests are YAML, probes get 200, and the compose service is read-only', async () => {
  for (const file of globSync('deploy/**/*.yaml', { cwd: root })) {
    if (/helm\/.*\/templates\//.test(file)) continue;
    for (const document of parseAllDocuments(read(file))) expect(document.errors, file).toEqual([]);
  }
  const kubernetes = read('deploy/kubernetes/shopward.yaml');
  const probes = [...kubernetes.matchAll(/httpGet: \{ path: (\S+),/g)];
  expect(probes).toHaveLength(3);
  for (const [, probe = ''] of probes) {
    expect((await fetch(shopward.adminUrl + probe)).status, probe).toBe(200);
  }
  const { shopward: service } = parse(read('deploy/compose.yaml')).services;
  expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
});

const analyse = ['/usr/bin/systemd-analyze', '/bin/systemd-analyze'].find((file) => existsSync(file));

test.skipIf(analyse === undefined)('systemd accepts the unit', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-unit-'));
  const file = path.join(folder, 'shopward.service');
  // systemd reports a program that does not exist.
  writeFileSync(file, read('deploy/systemd/shopward.service').replaceAll('/usr/bin/node', process.execPath));
  const { stderr } = spawnSync(analyse ?? '', ['verify', file], { encoding: 'utf8' });
  // It may also complain about other units of this machine.
  expect(stderr.split('\n').filter((line) => line.includes('shopward'))).toEqual([]);
  rmSync(folder, { recursive: true });
});
