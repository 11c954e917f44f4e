import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import type { RolloutReport } from '../../src/rollout/report.ts';
import { OpenWebSockets } from '../../src/server/upgrade.ts';
import { type EchoUpstream, startEchoUpstream } from '../harness/echo-upstream.ts';
import { childrenOf } from '../harness/children-of.ts';
import { eventually } from '../harness/eventually.ts';
import { startRedisProcess } from '../harness/redis-server.ts';
import { callShop } from '../harness/shop-client.ts';
import { type RunningShopward, startShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

/** Sections of the configuration that take effect without a restart, and the state that a change keeps. */

let upstream: EchoUpstream;
beforeAll(async () => {
  upstream = await startEchoUpstream();
});
afterAll(() => upstream?.close());

const settings = (config: object) => ({
  upstream: `http://127.0.0.1:${upstream.port}`,
  rows: ['GET /secret', 'PATCH /carts/{id}'],
  config,
});

async function start(config: object) {
  const one = await startShopwardHere(settings(config));
  onTestFinished(() => one.stop());
  return one;
}

function edit(one: RunningShopward, change: (config: Record<string, unknown>) => void): void {
  const config = parse(readFileSync(one.configFile, 'utf8'));
  change(config);
  writeFileSync(one.configFile, stringify(config));
}

const ask = async (one: RunningShopward, line = 'GET /secret') => (await callShop(one.port, line, {})).status;
const until = (what: string, isSo: () => Promise<boolean>) =>
  eventually(what, async () => (await isSo()) || undefined);
const json = async (one: RunningShopward, path: string) => (await fetch(one.adminUrl + path)).json();

it('mode changes in both directions; tags of the embedded store and rate-limit buckets are kept', async () => {
  const rateLimits = { rows: [{ method: 'GET', path: '/odd', requests: 2, per: '1d', mode: 'enforce' }] };
  const one = await start({ rateLimits });
  const token = one.issueToken();
  const tag = (await callShop(one.port, 'GET /carts/1', { token })).field('etag') ?? '';
  const write = async (ifMatch: string) =>
    (await callShop(one.port, 'PATCH /carts/1', { token, ifMatch, body: {} })).status;
  expect(tag).toMatch(/^"/);
  expect([await ask(one), await ask(one, 'GET /odd'), await ask(one, 'GET /odd')]).toEqual([401, 200, 200]);
  edit(one, (config) => {
    config.mode = 'observe';
  });
  await until('observe mode', async () => (await ask(one)) === 200);
  await one.waitForLog(({ event }) => event === 'observe');
  expect(await json(one, '/api/state')).toMatchObject({ mode: 'observe' });
  await until('the request in the report', async () => {
    const { rows } = (await json(one, '/api/rollout')) as RolloutReport;
    return rows.find(({ row }) => row === 'GET /secret')?.wouldBeRefused === 1;
  });
  edit(one, (config) => {
    delete config.mode;
  });
  await until('enforce mode', async () => (await ask(one)) === 401);
  expect(await json(one, '/api/state')).toMatchObject({ mode: 'enforce' });
  expect(await ask(one, 'GET /odd')).toBe(429);
  expect([await write('"other"'), await write(tag), await write(tag)]).toEqual([412, 200, 412]);
});

it('open WebSockets are checked again when mode changes', async () => {
  const recheck = vi.spyOn(OpenWebSockets.prototype, 'recheck');
  onTestFinished(() => recheck.mockRestore());
  const one = await start({ mode: 'observe' });
  edit(one, (config) => {
    config.mode = 'enforce';
  });
  await until('enforce mode', async () => (await ask(one)) === 401);
  expect(recheck).toHaveBeenCalled();
});

it('rateLimits can be switched on, changed and switched off', async () => {
  const one = await start({ rateLimits: false });
  expect([await ask(one, 'GET /odd'), await ask(one, 'GET /odd')]).toEqual([200, 200]);
  const limit = (requests: number) => ({
    rows: [{ method: 'GET', path: '/odd', requests, per: '1d', mode: 'enforce' }],
  });
  edit(one, (config) => {
    config.rateLimits = limit(1);
  });
  await until('a limit', async () => (await ask(one, 'GET /odd')) === 429);
  edit(one, (config) => {
    config.rateLimits = limit(100);
  });
  await until('another limit', async () => (await ask(one, 'GET /odd')) === 200);
  edit(one, (config) => {
    config.rateLimits = false;
  });
  const policy = async () => (await callShop(one.port, 'GET /odd', {})).field('ratelimit-policy');
  await until('no limit', async () => (await policy()) === undefined);
});

it('log.level takes effect without a restart', async () => {
  const one = await start({ log: { level: 'silent' } });
  await ask(one);
  expect(one.log()).toEqual([]);
  edit(one, (config) => {
    config.log = { level: 'info' };
  });
  await until('a line', async () => {
    await ask(one);
    return one.log().some(({ reason }) => reason !== undefined);
  });
});

it('a configuration with an error changes nothing, and is reported until it is fixed; other keys need a restart', async () => {
  const one = await start({});
  const good = readFileSync(one.configFile, 'utf8');
  writeFileSync(one.configFile, `${good}mode: obsrve\n`);
  const line = await one.waitForLog(({ event }) => event === 'configuration-refused');
  const problem = expect.stringMatching(/shopward\.yaml:\d+:7: error: mode must be/);
  expect(line).toMatchObject({ level: 'error', problems: [problem] });
  expect(await json(one, '/readyz')).toMatchObject({
    status: 'ready',
    reasons: [expect.stringContaining('not in force: ')],
  });
  expect(await ask(one)).toBe(401);
  writeFileSync(one.configFile, good);
  edit(one, (config) => {
    config.publicUrl = 'https://odd.example';
    config.workers = 2;
    config.store = { url: 'redis://127.0.0.1:1' };
    config.rollout = false;
  });
  const restart = await one.waitForLog(({ event }) => event === 'restart-needed');
  expect((restart.settings as string[]).toSorted()).toEqual(
    ['publicUrl', 'rollout', 'rollout.keep', 'store.timeout', 'store.url', 'workers'].toSorted(),
  );
  expect(await json(one, '/readyz')).toMatchObject({ status: 'ready', reasons: [] });
});

it('a change reaches all workers, and workers that start later', async () => {
  const redis = await startRedisProcess();
  onTestFinished(() => redis.close());
  const store = { url: `redis://127.0.0.1:${redis.port}` };
  const one = await startShopward(settings({ workers: 2, store }));
  onTestFinished(() => one.stop());
  const answers = async () => {
    // The kernel chooses the worker of each connection, so there are enough to reach both.
    const all = await Promise.all(Array.from({ length: 32 }, () => ask(one)));
    return [...new Set(all)].join();
  };
  expect(await answers()).toBe('401');
  edit(one, (config) => {
    config.mode = 'observe';
    config.log = { level: 'warn' };
  });
  await until('observe mode', async () => (await answers()) === '200');
  expect(await json(one, '/api/state')).toMatchObject({ mode: 'observe' });
  const children = childrenOf(one);
  const serving = async () =>
    /^shopward_workers_serving 2$/m.test(await (await fetch(`${one.adminUrl}/metrics`)).text());
  for (const pid of children) process.kill(pid, 'SIGKILL');
  await until('the replacements', async () => {
    return !childrenOf(one).some((pid) => children.includes(pid)) && (await serving());
  });
  expect(await answers()).toBe('200');
});
