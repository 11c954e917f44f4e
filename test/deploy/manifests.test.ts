import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { startRedis } from '../harness/redis-processes.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';

const root = path.resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');

let shop: DemoShop;
let redis: Awaited<ReturnType<typeof startRedis>>;
let shopward: Shopward;
let exposed = new Set<string>();
beforeAll(async () => {
  shop = await startDemoShop();
  redis = await startRedis({});
  shopward = await startShopward({ upstream: shop.url, config: { store: { url: redis.url } } });
  await fetch(`${shopward.url}/orders`);
  const text = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
  exposed = new Set([...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name as string));
});
afterAll(async () => {
  await shopward.stop();
  await redis.close();
  await shop.close();
});

/** Metric names of an expression, without the endings of counters and histograms. */
const namesIn = (text: string) =>
  [...text.matchAll(/\b((?:shopward|http|process|nodejs)_[a-z0-9_]+)(?=[{\s\\[=)]|$)/g)]
    .map(([, name]) => (name as string).replace(/_(total|bucket|count|sum)$/, ''))
    .filter((name) => !/^http_(request_method|route|response_status_code)$/.test(name));

test.each([
  [
    'the dashboard',
    () =>
      (JSON.parse(read('deploy/grafana/shopward.json')).panels as { targets: { expr: string }[] }[]).flatMap(
        ({ targets }) => targets.map(({ expr }) => expr),
      ),
  ],
  [
    'the alerts of docs/operations.md',
    () =>
      [...read('docs/operations.md').matchAll(/^\| [^|]+ \| `((?:[^`|]|\\\|)+)` \|$/gm)].map(
        ([, expression]) => expression as string,
      ),
  ],
])('%s asks only for metrics that there are', (_, expressions) => {
  const names = expressions().flatMap(namesIn);
  expect(names.length).toBeGreaterThan(4);
  expect(names.filter((name) => !exposed.has(name))).toEqual([]);
});

test('manifests are YAML, and probe what the admin port answers', async () => {
  for (const file of globSync('deploy/**/*.yaml', { cwd: root })) {
    for (const document of parseAllDocuments(read(file))) expect(document.errors, file).toEqual([]);
  }
  const kubernetes = read('deploy/kubernetes/shopward.yaml');
  for (const [, probe = ''] of kubernetes.matchAll(/httpGet: \{ path: (\S+),/g)) {
    expect((await fetch(shopward.adminUrl + probe)).status, probe).toBe(200);
  }
  for (const right of ['readOnlyRootFilesystem: true', 'runAsNonRoot: true', 'drop: [ALL]']) {
    expect(kubernetes).toContain(right);
  }
  const { shopward: service } = parse(read('deploy/compose.yaml')).services;
  expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
});
