import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { ageRedis } from '../../harness/aged-redis.ts';
import { childrenOf } from '../../harness/children-of.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { eventually } from '../../harness/eventually.ts';
import { startFaultProxy } from '../../harness/fault-proxy.ts';
import { freePort } from '../../harness/free-port.ts';
import { listen } from '../../harness/listen.ts';
import { startRedisProcess } from '../../harness/redis-server.ts';
import {
  issueToken,
  type RunningShopward,
  type Shopward,
  type ShopwardOptions,
  startShopward,
} from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { expiredCertificate, expiredKey } from '../../harness/tls-fixture.ts';
import { makeSigner } from '../../unit/access/signing.ts';
import { expectAlerts, promtool, rulesText } from './shipped-rules.ts';

/**
 * Provokes each fault, step by step, and scrapes the metrics after each step. promtool then evaluates the shipped rules
 * on these samples, as if a step took `every`. So a slow machine changes no outcome.
 */
type Open = ReturnType<typeof closingAtEnd>;
/** The sum of all series of this name. */
type SumOf = (name: string) => number;

interface Stage {
  /** Addresses of admin ports. */
  readonly targets: readonly string[];
  /** Sends the traffic of a step; steps count from 1. */
  readonly play?: (step: number) => unknown;
  /** A step scrapes until this is true. */
  readonly shows?: (sumOf: SumOf, step: number) => boolean;
}

interface Row {
  readonly fault: string;
  /** The alerts that must fire. Of the others only those of slowness may. */
  readonly fires: readonly string[];
  /** Default: 16. */
  readonly steps?: number;
  /** Seconds between two scrapes, for promtool. Default: 30. */
  readonly every?: number;
  readonly start: (open: Open, fault: string) => Promise<Stage>;
}

async function startShop(open: Open, listener: RequestListener = (_, response) => response.end('{}')) {
  const server = createServer((request, response) => {
    request.resume();
    listener(request, response);
  });
  const { url } = open(await listen(server));
  return url;
}

/** `isOld`: as if it had had its data for an hour. */
async function startRedis(open: Open, isOld = true) {
  const redis = open(await startRedisProcess());
  if (isOld) await ageRedis(redis.port);
  return { redis, url: `redis://127.0.0.1:${redis.port}` };
}

const usualSteps = 16;
const rows = ['GET /secret'];

async function startProxy(open: Open, options: Partial<ShopwardOptions> = {}) {
  const upstream = options.upstream ?? (await startShop(open));
  const shopward = await startShopwardHere({ rows, ...options, upstream });
  open({ close: () => shopward.stop() });
  return stageOf(shopward);
}

/** For faults that need a process of their own. */
async function startProcess(open: Open, options: Partial<ShopwardOptions> = {}) {
  const upstream = options.upstream ?? (await startShop(open));
  const shopward = await startShopward({ rows, ...options, upstream });
  open({ close: () => shopward.kill() });
  return stageOf(shopward);
}

/** The proxy, its admin port, and a client of it. */
function stageOf<T extends RunningShopward>(shopward: T) {
  const good = shopward.issueToken();
  const ask = (target: string, more: RequestInit & { token?: string } = {}) =>
    fetch(`${shopward.url}${target}`, {
      ...more,
      headers: {
        Authorization: `Bearer ${more.token ?? good}`,
        'Content-Type': 'application/json',
        ...more.headers,
      },
    })
      .then(async (response) => {
        await response.arrayBuffer();
        return response.status;
      })
      .catch(() => 0);
  const write = () => ask(`/carts/${Math.floor(Math.random() * 1e6)}/items`, { method: 'POST', body: '{}' });
  return { shopward, targets: [`127.0.0.1:${shopward.adminPort}`], ask, write };
}

/** A gauge that stays as it is: only the first step waits for it. */
const is0 = (name: string) => (sumOf: SumOf, step: number) => step > 1 || sumOf(name) === 0;
const isSet = (name: string) => (sumOf: SumOf, step: number) => step > 1 || sumOf(name) > 0;

/** Sends several requests at once. */
const times = <T>(count: number, ask: (i: number) => T) =>
  Promise.all(Array.from({ length: count }, (_, i) => ask(i)));

const table: readonly Row[] = [
  {
    fault: 'the shop is down',
    fires: ['ShopwardUpstreamDown'],
    async start(open) {
      const { ask, targets } = await startProxy(open, { upstream: `http://127.0.0.1:${await freePort()}` });
      return { targets, play: () => times(4, () => ask('/open')) };
    },
  },
  {
    fault: 'a third of the answers of the shop are 500',
    fires: ['ShopwardShopFails'],
    async start(open) {
      let count = 0;
      const upstream = await startShop(open, (_, response) => {
        count += 1;
        response.writeHead(count % 3 === 0 ? 500 : 200).end('{}');
      });
      const { ask, targets } = await startProxy(open, { upstream });
      return { targets, play: () => times(12, () => ask('/open')) };
    },
  },
  {
    fault: 'the shop takes 3 s for each eighth answer',
    fires: ['ShopwardShopSlow'],
    async start(open) {
      const slow = new Map<string | undefined, ServerResponse>();
      const upstream = await startShop(open, (request, response) => {
        if (request.url === '/open') response.end('{}');
        else slow.set(request.url, response);
      });
      const config = { limits: { clientShare: 100 }, upstream: { responseTimeout: '10m' } };
      const { ask, targets } = await startProxy(open, { upstream, config });
      // All wait for these 3 s at once.
      const asked = Array.from({ length: 16 }, (_, i) => ask(`/slow-${i + 1}`));
      await eventually('the slow requests', () => slow.size === asked.length || undefined);
      await sleep(3_000);
      const play = async (step: number) => {
        slow.get(`/slow-${step}`)?.end('{}');
        await Promise.all([asked[step - 1], times(7, () => ask('/open'))]);
      };
      return { targets, play };
    },
  },
  {
    fault: 'requests wait for a connection to the shop',
    fires: ['ShopwardSlow'],
    async start(open) {
      const delayed: ServerResponse[] = [];
      const upstream = await startShop(open, (request, response) => {
        if (request.url === '/open') response.end('{}');
        else delayed.push(response);
      });
      const { ask, targets } = await startProxy(open, {
        upstream,
        config: { upstream: { connections: 1 }, limits: { clientShare: 100 } },
      });
      const play = async () => {
        const first = ask('/slow');
        await eventually('the request at the shop', () => delayed.length > 0 || undefined);
        const others = times(8, () => ask('/open'));
        await eventually('the others in the queue', async () => {
          const metrics = await (await fetch(`http://${targets[0]}/metrics`)).text();
          return metrics.includes('\nshopward_upstream_queue 8\n') || undefined;
        });
        await sleep(700);
        delayed.pop()?.end('{}');
        await Promise.all([first, others]);
      };
      return { targets, play };
    },
  },
  {
    fault: 'floods of forged and of expired tokens',
    fires: ['ShopwardUnusualRefusals expired', 'ShopwardUnusualRefusals signature'],
    async start(open) {
      const { ask, targets, shopward } = await startProxy(open);
      const forged = issueToken(makeSigner('RS256'));
      const expired = shopward.issueToken({ exp: 1_000_000_000 });
      const tokens = [forged, expired, shopward.issueToken()];
      return {
        targets,
        play: () => times(24, (i) => ask('/secret', { token: tokens[i % tokens.length] ?? forged })),
      };
    },
  },
  {
    fault: 'Redis is away',
    fires: ['ShopwardRefuses', 'ShopwardStatesUnwritten', 'ShopwardStoreAway'],
    async start(open) {
      const { redis, url } = await startRedis(open);
      const attributes = { accessToken: 'a', expiresIn: 60, refreshToken: 'r' };
      const pair = JSON.stringify({ data: { type: 'access-tokens', attributes } });
      const upstream = await startShop(open, (_, response) => {
        response.writeHead(201, { 'Content-Type': 'application/json' }).end(pair);
      });
      const config = { store: { url, timeout: '300ms' } };
      const { ask, write, targets } = await startProxy(open, { upstream, config });
      await redis.kill();
      const signIn = () => ask('/access-tokens', { method: 'POST', body: '{"data":{}}' });
      return {
        targets,
        play: () => times(5, (i) => (i === 0 ? signIn() : write())),
        shows: is0('shopward_store_up'),
      };
    },
  },
  {
    fault: 'Redis has just come back empty',
    fires: ['ShopwardNoTags'],
    async start(open) {
      const { url } = await startRedis(open, false);
      const entityTags = { lease: '10m', sendBy: '1s', wait: '500ms' };
      const { targets } = await startProxy(open, { config: { store: { url }, entityTags } });
      return { targets, shows: isSet('shopward_entity_tags_hold_seconds') };
    },
  },
  {
    fault: 'no replica of Redis confirms claims',
    fires: ['ShopwardRefuses', 'ShopwardStoreReplicaMissing'],
    steps: 12,
    async start(open) {
      const { url } = await startRedis(open);
      const { write, targets } = await startProxy(open, {
        config: { store: { url, replicas: 1, timeout: '2s' } },
      });
      return { targets, play: () => times(4, write) };
    },
  },
  {
    fault: 'Redis is full',
    fires: ['ShopwardStoreFillsUp', 'ShopwardStoreNearlyFull'],
    async start(open) {
      const { redis, url } = await startRedis(open);
      const { targets } = await startProxy(open, { config: { store: { url } } });
      const client = new Redis(redis.port, '127.0.0.1');
      open({ close: () => client.disconnect() });
      // A large key, so that memory that Redis frees from client buffers does not matter.
      await client.setrange('filler', 16_000_000, 'x');
      const [, used] = /used_memory:(\d+)/.exec(await client.info('memory')) ?? [];
      await client.config('SET', 'maxmemory', Math.round(Number(used) / 0.97));
      const [now, max] = ['shopward_store_memory_used_bytes', 'shopward_store_memory_max_bytes'];
      return { targets, shows: (sumOf, step) => step > 1 || sumOf(now) > 0.95 * (sumOf(max) || Number.NaN) };
    },
  },
  {
    fault: 'replicas have two digest keys',
    fires: ['ShopwardStoreDisagreement'],
    steps: 5,
    every: 240,
    async start(open) {
      const [{ url }, upstream] = [await startRedis(open), await startShop(open)];
      const start = (digestKey: string) =>
        startProxy(open, { upstream, config: { store: { url }, refreshTokens: { digestKey } } });
      await start('1'.repeat(32));
      const { targets } = await start('2'.repeat(32));
      return { targets, shows: isSet('shopward_store_disagreements') };
    },
  },
  {
    fault: 'Redis answers late',
    fires: ['ShopwardClaimsSlow'],
    async start(open) {
      const { redis } = await startRedis(open);
      const proxy = open(await startFaultProxy(redis.port));
      const { write, targets } = await startProxy(open, {
        config: { store: { url: `redis://127.0.0.1:${proxy.port}` } },
      });
      await proxy.set({ toClient: { delayMs: 150 } });
      return { targets, play: () => times(8, write) };
    },
  },
  {
    fault: 'an edit of the list is broken',
    fires: ['ShopwardListNotReloaded'],
    async start(open) {
      const { shopward, targets } = await startProxy(open);
      writeFileSync(shopward.listFile, 'groups: [');
      return { targets, shows: is0('shopward_config_last_reload_success') };
    },
  },
  {
    fault: 'the list is rewritten all the time',
    fires: ['ShopwardListNotReloaded'],
    async start(open) {
      const { shopward, targets } = await startProxy(open);
      const text = readFileSync(shopward.listFile, 'utf8');
      let count = 0;
      const timer = setInterval(() => {
        count += 1;
        writeFileSync(shopward.listFile, `${text}# ${count}\n`);
      }, 90);
      open({ close: () => clearInterval(timer) });
      return { targets, shows: is0('shopward_config_last_reload_success') };
    },
  },
  {
    fault: 'an edit of the list opens a row',
    fires: ['ShopwardListLooser'],
    async start(open) {
      const { shopward, targets } = await startProxy(open, { rows: ['GET /secret', 'GET /other'] });
      const edited = readFileSync(shopward.listFile, 'utf8').replace(/.*\/other.*\n/, '');
      return {
        targets,
        // Prometheus sees a rise only of a counter that it has scraped before.
        play: (step) => step === 2 && writeFileSync(shopward.listFile, edited),
        shows: (sumOf, step) => step === 1 || sumOf('shopward_list_looser_rows_total') > 0,
      };
    },
  },
  {
    fault: 'an edit of the mapping file is broken',
    fires: ['ShopwardMappingFileNotReloaded'],
    async start(open, fault) {
      const folder = open(makeFolder(fault));
      const file = path.join(folder.path, 'mapping.csv');
      writeFileSync(file, 'url,entityType,entityId\n/en/shoe,abstract-products,1\n');
      const { targets } = await startProxy(open, { config: { urlResolver: { source: file } } });
      writeFileSync(file, '/en/shoe\n');
      return { targets, shows: is0('shopward_url_file_last_reload_success') };
    },
  },
  {
    fault: 'the key source is down',
    fires: ['ShopwardKeysNotLoaded', 'ShopwardNoKeys'],
    async start(open) {
      const jwks = `http://127.0.0.1:${await freePort()}/jwks.json`;
      const { targets } = await startProxy(open, { config: { auth: { keys: { jwks, files: undefined } } } });
      return { targets, shows: is0('shopward_keys_last_load_success') };
    },
  },
  {
    fault: 'a rotated secret is too short',
    fires: ['ShopwardSecretNotTaken'],
    async start(open, fault) {
      const folder = open(makeFolder(fault));
      const file = path.join(folder.path, 'token');
      writeFileSync(file, 'x'.repeat(64));
      const keys = { secret: `\${file:${file}}`, files: undefined };
      const { targets } = await startProxy(open, { config: { auth: { algorithms: ['HS256'], keys } } });
      writeFileSync(file, 'short');
      return { targets, shows: is0('shopward_secrets_last_reload_success') };
    },
  },
  {
    fault: 'the certificate has ended',
    fires: ['ShopwardCertificateExpired', 'ShopwardCertificateExpires'],
    start: (open, fault) => startWithCertificate(open, fault, expiredCertificate, expiredKey),
  },
  {
    fault: 'the certificate ends in a week',
    fires: ['ShopwardCertificateExpires'],
    async start(open, fault) {
      const folder = open(makeFolder(`${fault} openssl`));
      const [cert, key] = [path.join(folder.path, 'cert'), path.join(folder.path, 'key')];
      const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
      const named = ['-days', '7', '-subj', '/CN=localhost', '-keyout', key, '-out', cert];
      execFileSync('openssl', [...made, ...named], { stdio: 'ignore' });
      return startWithCertificate(open, fault, readFileSync(cert, 'utf8'), readFileSync(key, 'utf8'));
    },
  },
  {
    fault: "the shop's clock is an hour behind",
    fires: ['ShopwardClock'],
    async start(open) {
      const upstream = await startShop(open, (_, response) => {
        response.setHeader('Date', new Date(Date.now() - 3_600_000).toUTCString()).end('{}');
      });
      const { ask, targets } = await startProxy(open, { upstream });
      await eventually('the difference', async () => {
        await ask('/open');
        return valueIn(await scrape(targets[0]), 'shopward_clock_difference_seconds') > 0 || undefined;
      });
      return { targets, play: () => ask('/open') };
    },
  },
  {
    fault: 'one peer opens connections beyond its share',
    fires: ['ShopwardConnectionsFull'],
    async start(open) {
      const config = { listen: { maxConnections: 20 }, limits: { clientShare: 10 } };
      const { shopward, targets } = await startProxy(open, { config });
      let [before, refused] = [0, 0];
      const play = () => {
        before = refused;
        times(8, () => openConnection(open, shopward.port));
      };
      // Each step waits for a rise: without it, promtool would see a pause.
      const shows = (sumOf: SumOf) => {
        refused = sumOf('shopward_connections_refused_total');
        return refused >= before + 5;
      };
      return { targets, play, shows };
    },
  },
  {
    fault: 'a process is gone',
    fires: ['ShopwardDown'],
    async start(open) {
      // A port that no other process gets after the stop.
      const { shopward, targets } = await startProxy(open, { config: { admin: { port: await freePort() } } });
      return { targets, play: (step) => step === 2 && shopward.stop() };
    },
  },
  {
    fault: 'a process starts again and again',
    fires: ['ShopwardRestarts'],
    steps: 5,
    async start(open) {
      const targets: string[] = [];
      let last: RunningShopward | undefined;
      const play = async () => {
        await last?.stop();
        const next = await startProxy(open);
        last = next.shopward;
        targets.splice(0, 1, ...next.targets);
      };
      return { targets, play };
    },
  },
  {
    fault: 'the log cannot be written',
    fires: ['ShopwardLogLinesLost'],
    steps: 6,
    every: 240,
    async start(open) {
      const launcher = ['sh', '-c', 'exec "$@" >/dev/full', 'sh'];
      const { targets, ask } = await startProcess(open, { launcher });
      return {
        targets,
        play: () => ask('/open'),
        shows: (sumOf, step) => sumOf('shopward_log_write_failures_total') >= step,
      };
    },
  },
  {
    fault: 'workers end again and again',
    fires: ['ShopwardWorkersMissing', 'ShopwardWorkersRestart'],
    steps: 5,
    async start(open) {
      const { url } = await startRedis(open);
      const { targets, shopward } = await startProcess(open, { config: { workers: 2, store: { url } } });
      let [before, restarts] = [0, 0];
      const play = () => {
        before = restarts;
        killChildren(shopward);
      };
      // Kills again: a replacement may serve before it is seen to be missing.
      const shows = (sumOf: SumOf) => {
        restarts = sumOf('shopward_worker_restarts_total');
        const isSeen = restarts > before && sumOf('shopward_workers_serving') < 2;
        if (!isSeen) killChildren(shopward);
        return isSeen;
      };
      return { targets, play, shows };
    },
  },
  {
    fault: 'few files may be open',
    fires: ['ShopwardFilesRunOut'],
    async start(open) {
      const launcher = ['sh', '-c', 'ulimit -n 110; exec "$@"', 'sh'];
      const config = { listen: { maxConnections: 95 }, limits: { clientShare: 100 } };
      const { targets, shopward } = await startProcess(open, { launcher, config });
      let count = 0;
      const keepOpen = () => {
        count += 1;
        openConnection(open, shopward.port).once('close', () => {
          count -= 1;
        });
      };
      return {
        targets,
        play: () => void times(74 - count, keepOpen),
        shows: (sumOf) => sumOf('process_open_fds') > 0.8 * sumOf('process_max_fds'),
      };
    },
  },
  {
    fault: 'one observed refusal every 25 minutes',
    fires: ['ShopwardObserves'],
    steps: 62,
    every: 1_500,
    async start(open) {
      const { ask, targets } = await startProxy(open, { config: { mode: 'observe' } });
      return { targets, play: () => ask('/secret', { token: 'x' }) };
    },
  },
  { fault: 'nothing is scraped', fires: ['ShopwardAbsent'], start: async () => ({ targets: [] }) },
  { fault: 'one fault of each kind, none of which lasts', fires: [], steps: 30, start: startCalm },
];

function killChildren(primary: Shopward): void {
  for (const child of childrenOf(primary)) {
    try {
      process.kill(child, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  }
}

function makeFolder(name: string) {
  const folder = mkdtempSync(path.join(os.tmpdir(), `shopward-${name.replace(/\W+/g, '-')}-`));
  return { path: folder, close: () => rmSync(folder, { recursive: true, force: true }) };
}

function openConnection(open: Open, port: number): Socket {
  const socket = connect(port, '127.0.0.1')
    .on('error', () => {})
    .resume();
  open({ close: () => socket.destroy() });
  return socket;
}

function startWithCertificate(open: Open, name: string, certText: string, keyText: string): Promise<Stage> {
  const folder = open(makeFolder(name));
  const [cert, key] = [path.join(folder.path, 'cert.pem'), path.join(folder.path, 'key.pem')];
  writeFileSync(cert, certText);
  writeFileSync(key, keyText);
  return startProxy(open, { config: { listen: { tls: { cert, key } } } });
}

/** Steady traffic, and one fault of each kind. */
async function startCalm(open: Open): Promise<Stage> {
  const next: RequestListener[] = [];
  const upstream = await startShop(open, (request, response) => {
    const own = request.url === '/odd' ? next.shift() : undefined;
    if (own === undefined) response.end('{}');
    else own(request, response);
  });
  const { url } = await startRedis(open);
  const config = {
    ...{ workers: 2, store: { url }, listen: { maxConnections: 100 }, limits: { clientShare: 90 } },
  };
  const observed = { match: 'GET /observed', observe: true };
  const start = () => startProcess(open, { upstream, config, rows: [...rows, observed] });
  let now = await start();
  const targets = [...now.targets];
  const list = readFileSync(now.shopward.listFile, 'utf8');
  const odd = (answer: RequestListener) => () => {
    next.push(answer);
    return now.ask('/odd');
  };
  const until = (isSo: (sumOf: SumOf) => boolean) =>
    eventually('the metric', async () => {
      const samples = await scrape(targets[0]);
      return isSo((name) => valueIn(samples, name)) || undefined;
    });
  const reloaded = (value: number) =>
    until((sumOf) => sumOf('shopward_config_last_reload_success') === value);
  const serving = () => until((sumOf) => sumOf('shopward_workers_serving') === 2);
  const events: (() => unknown)[] = [
    odd((request) => request.socket.destroy()),
    odd((_, response) => response.writeHead(500).end('{}')),
    odd((_, response) => response.writeHead(503).end('{}')),
    odd((_, response) => setTimeout(() => response.end('{}'), 3_000)),
    () => now.ask('/secret', { token: issueToken(makeSigner('RS256')) }),
    () => now.ask('/secret', { token: now.shopward.issueToken({ exp: 1_000_000_000 }) }),
    () => now.ask('/secret', { token: 'x' }),
    () => now.ask('/observed', { token: 'x' }),
    async () => {
      const sockets = await times(240, () => openConnection(open, now.shopward.port));
      await until((sumOf) => sumOf('shopward_connections_refused_total') >= 50);
      for (const socket of sockets) socket.destroy();
    },
    async () => {
      writeFileSync(now.shopward.listFile, 'groups: [');
      await reloaded(0);
    },
    async () => {
      writeFileSync(now.shopward.listFile, list);
      await reloaded(1);
    },
    async () => {
      process.kill(childrenOf(now.shopward)[0] ?? Number.NaN, 'SIGKILL');
      await until((sumOf) => sumOf('shopward_worker_restarts_total') === 1);
    },
    serving,
    async () => {
      await now.shopward.kill();
      now = await start();
      targets.splice(0, 1, ...now.targets);
    },
    serving,
  ];
  return {
    targets,
    async play(step) {
      await times(12, (i) => (i < 2 ? now.write() : now.ask('/open')));
      if (step > 2) await events.shift()?.();
    },
  };
}

/** Series -> value, as `name{labels}`. */
type Samples = ReadonlyMap<string, number>;
const names = new Set(rulesText.match(/\b(?:shopward|http|process)_\w+/g));

/** The metrics of a target that the rules use; undefined if it does not answer. */
async function scrape(target = ''): Promise<Samples | undefined> {
  const answer = await fetch(`http://${target}/metrics`).catch(() => undefined);
  const lines = (await answer?.text())?.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm);
  return (
    lines &&
    new Map(
      [...lines].flatMap(([, name = '', labels = '', value]) =>
        names.has(name) ? [[`${name}{${labels}`, Number(value)] as const] : [],
      ),
    )
  );
}

function valueIn(samples: Samples | undefined, name: string): number {
  const own = [...(samples ?? [])].filter(([series]) => series.startsWith(`${name}{`));
  return own.reduce((sum, [, value]) => sum + value, 0);
}

/** The values of each series, one for each step. */
async function record(
  { start, fault, steps = usualSteps }: Row,
  open: Open,
): Promise<Record<string, string>> {
  const { targets, play, shows } = await start(open, fault);
  const nowSeconds = Date.now() / 1_000;
  const history = new Map<string, string[]>();
  const note = (series: string, step: number, value: number) => {
    const values = history.get(series) ?? Array(steps).fill('stale');
    values[step - 1] = String(value);
    history.set(series, values);
  };
  for (let step = 1; step <= steps; step += 1) {
    await play?.(step);
    for (const [i, target] of targets.entries()) {
      const samples = await eventually(`the fault in the metrics of step ${step}`, async () => {
        const found = await scrape(target);
        return shows?.((name) => valueIn(found, name), step) === false ? undefined : { found };
      });
      const labels = `job="shopward",instance="${i}"}`;
      note(`up{${labels}`, step, samples.found === undefined ? 0 : 1);
      for (const [series, value] of samples.found ?? []) {
        // The clock of promtool starts at 0.
        const own = series.startsWith('shopward_certificate_expiry') ? value - nowSeconds : value;
        note(`${series}${series.endsWith('{') ? '' : ','}${labels}`, step, own);
      }
    }
  }
  return Object.fromEntries([...history].map(([series, values]) => [series, values.join(' ')]));
}

const slowness = ['ShopwardSlow', 'ShopwardShopSlow', 'ShopwardClaimsSlow'];

describe.concurrent('each fault that lasts fires its alerts; single faults fire none', () => {
  test.skipIf(promtool === undefined).for(table)('$fault: $fires', async (row, context) => {
    const values = await record(row, closingAtEnd(context));
    const { fault, fires, every = 30, steps = usualSteps } = row;
    const endsAt = `${(steps - 1) * every}s`;
    // A busy machine is slow without a fault.
    const ignores = slowness.filter((alert) => !fires.includes(alert));
    const history = { what: fault, fires, ignores, interval: `${every}s`, values };
    await expectAlerts([history], { evaluation: `${every}s`, endsAt, firingIn: endsAt });
  });
});

test('the table has each alert', () => {
  const alerts = rulesText.matchAll(/- alert: (\w+)/g).map(([, name]) => name);
  expect(new Set(table.flatMap(({ fires }) => fires.map((alert) => alert.split(' ')[0])))).toEqual(
    new Set(alerts),
  );
});
