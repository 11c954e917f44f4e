import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { runHealth, runPurge } from '../../src/cli/admin-verbs.ts';
import { eventually } from '../harness/eventually.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { callShop, jsonOf, outcomeOf } from '../harness/shop-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { runCommand } from '../unit/cli/command-run.ts';

const target = (url: string) => `/url-resolver?url=${encodeURIComponent(url)}`;
const ask = ({ port }: RunningShopward, url: string) => callShop(port, `GET ${target(url)}`);
const entityOf = async (shopward: RunningShopward, url: string) => {
  const response = await ask(shopward, url);
  if (response.status !== 200) return outcomeOf(response);
  const { entityType, entityId } = jsonOf(response).data[0].attributes;
  return `${entityType}/${entityId}`;
};

let shop: DemoShop;
beforeEach(async () => {
  shop = await startDemoShop({ resolverLatencyMs: 0 });
});
afterEach(() => shop.close());

describe('a mapping file', () => {
  let folder: string;
  let file: string;
  let shopward: RunningShopward;
  const header = 'url,entityType,entityId\n';

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'shopward-mapping-'));
    file = path.join(folder, 'mapping.csv');
  });
  afterEach(async () => {
    await shopward?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('is asked before the shop; a valid edit takes effect, an invalid one does not', async () => {
    await writeFile(file, `${header}/en/computer,cms-pages,from-file\n`);
    shopward = await startShopwardHere({
      upstream: shop.url,
      config: { urlResolver: { source: [file, 'upstream'] } },
    });
    expect(await entityOf(shopward, '/en/computer')).toBe('cms-pages/from-file');
    expect(shop.received.total).toBe(0);
    expect(await entityOf(shopward, '/en/merchant/budget-cameras')).toMatch(/^merchants\//);

    await writeFile(`${file}.new`, `${header}/en/computer,merchants,"edited, twice"\n`);
    await rename(`${file}.new`, file);
    await eventually('the edit', async () =>
      (await entityOf(shopward, '/en/computer')) === 'merchants/edited, twice' ? true : undefined,
    );

    await writeFile(file, `${header}/en/computer,no-such-type,1\n`);
    await eventually('the problem', async () => {
      const ready = await (await fetch(`${shopward.adminUrl}/readyz`)).text();
      return /mapping\.csv:2:14: /.test(ready) || undefined;
    });
    expect(await entityOf(shopward, '/en/computer')).toBe('merchants/edited, twice');
  });

  it('as the only source: 404 for an unknown URL, and the shop is not asked', async () => {
    const rows = ['/en/a', '/de/bücher'].map((url) => `${url},abstract-products,7\n`);
    await writeFile(file, header + rows.join(''));
    shopward = await startShopwardHere({ upstream: shop.url, config: { urlResolver: { source: file } } });
    expect(await entityOf(shopward, '/en/a')).toBe('abstract-products/7');
    expect(await entityOf(shopward, '/en/computer')).toBe('404 2802');
    for (const umlaut of ['%C3%BC', '%c3%bc', '%c3%BC']) {
      const response = await callShop(shopward.port, `GET /url-resolver?url=/de/b${umlaut}cher`);
      expect([umlaut, response.status]).toEqual([umlaut, 200]);
    }
    expect(shop.received.total).toBe(0);
  });
});

describe('two replicas over one Redis', () => {
  let redis: RedisProcess;
  let replicas: RunningShopward[] = [];
  beforeEach(async () => {
    redis = await startRedisProcess();
    const config = { store: { url: `redis://127.0.0.1:${redis.port}` } };
    replicas = await Promise.all([1, 2].map(() => startShopwardHere({ upstream: shop.url, config })));
  });
  afterEach(async () => {
    for (const replica of replicas) await replica.stop();
    await redis.close();
  });

  const purge = async ({ adminUrl }: RunningShopward, body: object) =>
    (await fetch(`${adminUrl}/api/purge`, { method: 'POST', body: JSON.stringify(body) })).status;

  it('a purge through one replica reaches both: an entry, a prefix, all', async () => {
    const [one, two] = replicas as [RunningShopward, RunningShopward];
    const state = async (shopward: RunningShopward, url: string) =>
      /fwd=miss|hit/.exec((await ask(shopward, url)).field('cache-status') ?? '')?.[0];
    for (const [body, purged, kept] of [
      [{ url: '/en/computer' }, '/en/computer', '/en/return-policy'],
      [{ prefix: '/en/comp' }, '/en/computer', '/en/return-policy'],
      [{ all: true }, '/en/return-policy', undefined],
    ] as const) {
      for (const shopward of replicas)
        await Promise.all([ask(shopward, '/en/computer'), ask(shopward, '/en/return-policy')]);
      for (const shopward of replicas) expect(await state(shopward, purged)).toBe('hit');
      const before = shop.received.total;
      expect(await purge(one, body)).toBe(200);
      // After the purge the other replica asks the shop again instead of using its memory.
      await eventually('the purge at the other', async () => {
        await ask(two, purged);
        return shop.received.total > before || undefined;
      });
      if (kept !== undefined) expect(await state(two, kept)).toBe('hit');
    }
  });

  it('without Redis each replica asks the shop; once Redis is back a purge reaches both again', async () => {
    const [one, two] = replicas as [RunningShopward, RunningShopward];
    await redis.kill();
    for (const shopward of [one, two]) {
      await shopward.waitForLog(({ event, status }) => event === 'store' && status === 'away');
      expect((await ask(shopward, '/no-such-page/away')).field('cache-status')).toContain('fwd=miss');
    }
    expect(await entityOf(one, '/en/computer')).toMatch(/^category-nodes\//);
    await redis.restart();
    await ask(two, '/en/computer');
    const before = shop.received.total;
    await eventually('a purge', async () => ((await purge(one, { all: true })) === 200 ? true : undefined));
    await eventually('the purge at the other', async () => {
      await ask(two, '/en/computer');
      return shop.received.total > before || undefined;
    });
  });

  it('`shopward purge` removes a mapping, and `shopward health` passes with an invalid edit', async () => {
    const [one] = replicas as [RunningShopward, RunningShopward];
    await ask(one, '/en/computer');
    const before = shop.received.total;
    const port = String(one.adminPort);
    const configFile = path.join(one.folder, 'cli.yaml');
    const text = `auth: { keys: { files: [public.pem] } }\nadmin: { port: ${port} }\n`;
    await writeFile(configFile, text);
    const purged = await runCommand((io) => runPurge({ config: configFile, url: '/en/computer' }, io));
    expect(purged).toMatchObject({ code: 0, out: ['purged: /en/computer'] });
    const options = { config: configFile };
    const ofPrefix = await runCommand((io) => runPurge({ ...options, prefix: '/no-such/' }, io));
    expect(ofPrefix).toMatchObject({ code: 0, out: ['purged: /no-such/'] });
    const health = await runCommand((io) => runHealth(options, io));
    expect(health.code).toBe(0);
    // An invalid edit is not in force, so it must not restart a container.
    for (const broken of ['mode: obsrve\n', 'no: such key\n', 'upstream: { url: "${NO_SUCH}" }\n']) {
      await writeFile(configFile, text + broken);
      expect(await runCommand((io) => runHealth(options, io))).toEqual({ ...health, err: [] });
    }
    await ask(one, '/en/computer');
    expect(shop.received.total).toBe(before + 1);
  });
});
