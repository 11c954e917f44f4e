import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { eventually } from '../../harness/eventually.ts';
import { startFaultProxy } from '../../harness/fault-proxy.ts';
import { freePort } from '../../harness/free-port.ts';
import { findProgram } from '../../harness/programs.ts';
import { startRedisProcess } from '../../harness/redis-server.ts';
import { issueToken, type ShopwardOptions, startShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { expiredCertificate, expiredKey } from '../../harness/tls-fixture.ts';
import { makeSigner } from '../../unit/access/signing.ts';

/**
 * Starts one proxy for each fault, a namespace of its own, and a Prometheus that scrapes all of them. It has the shipped rules
 * with shorter times, in their order: whatever lasts longer than a window does so here.
 */
const prometheus = findProgram('prometheus');
const root = path.join(import.meta.dirname, '../../..');
const rulesText = readFileSync(path.join(root, 'deploy/prometheus/shopward.rules.yaml'), 'utf8');
type Seconds = Readonly<Record<string, number>>;
const windows: Seconds = { '2m': 12, '10m': 14, '15m': 60, '1h': 18, '1d': 20 };
const lasting: Seconds = { '1m': 15, '2m': 15, '3m': 16, '5m': 18, '10m': 20, '15m': 22, '1d': 24 };
const shortRules = rulesText
  .replace(/\[(\w+)\]/g, (_, time) => `[${windows[time]}s]`)
  .replace(/ for: (\w+)/g, (_, time) => ` for: ${lasting[time]}s`);
const tickMs = 250;

type Open = ReturnType<typeof closingAtEnd>;

interface Stage {
  /** Addresses of admin ports. */
  readonly targets: readonly string[];
  /** Sends the traffic of a tick; `tick` counts from 1, when Prometheus has scraped each proxy. */
  readonly play?: (tick: number) => unknown;
  /** Resolves when nothing is starting that the end of the test could not close. */
  readonly started?: () => Promise<void> | undefined;
}

interface Row {
  readonly fault: string;
  /** The alerts that must fire; without any, none may. */
  readonly fires: readonly string[];
  readonly start: (open: Open, fault: string) => Promise<Stage>;
}

async function startShop(open: Open, listener: RequestListener = (_, response) => response.end('{}')) {
  const server = createServer((request, response) => {
    request.resume();
    listener(request, response);
  }).listen(0, '127.0.0.1');
  open({ close: () => server.close().closeAllConnections() });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function startRedis(open: Open, settings = {}) {
  const redis = open(await startRedisProcess({ settings }));
  const client = new Redis(redis.port, '127.0.0.1', { lazyConnect: true });
  open({ close: () => client.disconnect() });
  return { redis, client, url: `redis://127.0.0.1:${redis.port}` };
}

const shortLease = { lease: '3s', sendBy: '1s', wait: '500ms' };
const rows = ['GET /secret'];

async function startProxy(open: Open, options: Partial<ShopwardOptions> = {}) {
  const upstream = options.upstream ?? (await startShop(open));
  const { store, ...others } = (options.config ?? {}) as { store?: object };
  const config = { entityTags: shortLease, store: { timeout: '1s', ...store }, ...others };
  const shopward = await startShopwardHere({ rows, ...options, upstream, config });
  open({ close: () => shopward.stop() });
  const targets = [`127.0.0.1:${shopward.adminPort}`];
  return { shopward, ...clientOf(shopward.url, shopward.issueToken()), targets };
}

function clientOf(url: string, good: string) {
  const ask = (target: string, more: RequestInit & { token?: string } = {}) =>
    fetch(`${url}${target}`, {
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
  return { ask, write };
}

/** A process whose ports stay the same after a restart. */
async function startProcess(open: Open, options: Partial<ShopwardOptions> = {}, listen = {}) {
  const upstream = options.upstream ?? (await startShop(open));
  const [port, adminPort] = [await freePort(), await freePort()];
  const config = {
    ...options.config,
    listen: { host: '127.0.0.1', port, drainDelay: '0s', ...listen },
    admin: { host: '127.0.0.1', port: adminPort },
  };
  const target = `127.0.0.1:${adminPort}`;
  // The workers of a process that was killed may still have its port: then the new one ends, and is started again.
  const start = async (): Promise<Awaited<ReturnType<typeof startShopward>>> => {
    const started = await startShopward({ rows, ...options, upstream, config, awaitListening: false });
    open({ close: () => started.kill() });
    const ask = () => fetch(`http://${target}/livez`).then(({ ok }) => ok || undefined);
    const isUp = async () => {
      // The end of the test kills a process that is still starting.
      if (started.signalCode !== null) return started;
      if (started.exitCode !== null) return start();
      return (await ask().catch(() => undefined)) && started;
    };
    return eventually('its admin port', isUp, 170_000);
  };
  let current = await start();
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    targets: [target],
    ...{ listFile: current.listFile, issueToken: current.issueToken },
    pid: () => current.pid,
    kill: () => current.kill(),
    async restart() {
      await current.kill();
      current = await start();
    },
  };
}

/** Sends several requests without waiting for an answer. */
const times = (count: number, ask: () => unknown) => {
  for (let i = 0; i < count; i += 1) ask();
};

const table: readonly Row[] = [
  {
    fault: 'the shop is down',
    fires: ['ShopwardUpstreamDown'],
    async start(open) {
      const { ask, targets } = await startProxy(open, { upstream: `http://127.0.0.1:${await freePort()}` });
      return { targets, play: () => times(2, () => ask('/open')) };
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
      return { targets, play: () => times(2, () => ask('/open')) };
    },
  },
  {
    fault: 'the shop takes 3 s for each fourth answer',
    fires: ['ShopwardShopSlow'],
    async start(open) {
      let count = 0;
      const upstream = await startShop(open, (_, response) => {
        count += 1;
        setTimeout(() => response.end('{}'), count % 4 === 0 ? 3_000 : 0);
      });
      const { ask, targets } = await startProxy(open, { upstream });
      return { targets, play: () => times(2, () => ask('/open')) };
    },
  },
  {
    fault: 'requests wait for a connection to the shop',
    fires: ['ShopwardSlow'],
    async start(open) {
      const upstream = await startShop(open, (_, response) => {
        setTimeout(() => response.end('{}'), 100);
      });
      const { ask, targets } = await startProxy(open, {
        upstream,
        config: { upstream: { connections: 1 }, limits: { clientShare: 100 } },
      });
      let waiting = 0;
      const one = () => {
        waiting += 1;
        return ask('/open').finally(() => {
          waiting -= 1;
        });
      };
      return { targets, play: () => times(12 - waiting, one) };
    },
  },
  {
    fault: 'floods of forged and of expired tokens',
    fires: ['ShopwardUnusualRefusals expired', 'ShopwardUnusualRefusals signature'],
    async start(open) {
      const { ask, targets, shopward } = await startProxy(open);
      const forged = issueToken(makeSigner('RS256'));
      const expired = shopward.issueToken({ exp: 1_000_000_000 });
      return {
        targets,
        play: () => {
          ask('/secret', { token: forged });
          ask('/secret', { token: expired });
          ask('/secret');
        },
      };
    },
  },
  {
    fault: 'Redis is away',
    fires: ['ShopwardRefuses', 'ShopwardStatesUnwritten', 'ShopwardStoreAway'],
    async start(open) {
      const { redis, url } = await startRedis(open);
      const attributes = { accessToken: 'a', tokenType: 'Bearer', expiresIn: 60, refreshToken: 'r' };
      const pair = JSON.stringify({ data: { type: 'access-tokens', attributes } });
      const upstream = await startShop(open, (_, response) => {
        response.writeHead(201, { 'Content-Type': 'application/json' }).end(pair);
      });
      const config = { store: { url, timeout: '300ms' } };
      const { ask, write, targets } = await startProxy(open, { upstream, config });
      await redis.kill();
      const signIn = () => ask('/access-tokens', { method: 'POST', body: '{"data":{}}' });
      return { targets, play: (tick) => (tick % 10 === 0 ? signIn() : write()) };
    },
  },
  {
    fault: 'Redis keeps coming back empty',
    fires: ['ShopwardNoTags'],
    async start(open) {
      const { url } = await startRedis(open);
      const entityTags = { lease: '10m', sendBy: '1s', wait: '500ms' };
      return startProxy(open, { config: { store: { url }, entityTags } });
    },
  },
  {
    fault: 'no replica of Redis confirms claims',
    fires: ['ShopwardRefuses', 'ShopwardStoreReplicaMissing'],
    async start(open) {
      const { url } = await startRedis(open);
      const { write, targets } = await startProxy(open, {
        config: { store: { url, replicas: 1, timeout: '300ms' } },
      });
      return { targets, play: write };
    },
  },
  {
    fault: 'Redis is full',
    fires: ['ShopwardStoreFillsUp', 'ShopwardStoreNearlyFull'],
    async start(open) {
      const { client, url } = await startRedis(open);
      const stage = await startProxy(open, { config: { store: { url } } });
      await client.config('SET', 'maxmemory-policy', 'noeviction');
      const fill = async () => {
        const [, used] = /used_memory:(\d+)/.exec(await client.info('memory')) ?? [];
        await client.config('SET', 'maxmemory', Math.round(Number(used) / 0.97));
      };
      return { ...stage, play: (tick) => tick % 5 === 0 && fill() };
    },
  },
  {
    fault: 'replicas have two digest keys',
    fires: ['ShopwardStoreDisagreement'],
    async start(open) {
      const [{ url }, upstream] = [await startRedis(open), await startShop(open)];
      const start = (digestKey: string) =>
        startProxy(open, { upstream, config: { store: { url }, refreshTokens: { digestKey } } });
      const [one, other] = [await start('1'.repeat(32)), await start('2'.repeat(32))];
      return { targets: [...one.targets, ...other.targets] };
    },
  },
  {
    fault: 'Redis answers late',
    fires: ['ShopwardClaimsSlow'],
    async start(open) {
      const { redis } = await startRedis(open);
      const proxy = open(await startFaultProxy(redis.port));
      const url = `redis://127.0.0.1:${proxy.port}`;
      const { write, targets } = await startProxy(open, {
        config: { store: { url, timeout: '1s' }, entityTags: { ...shortLease, wait: '1s' } },
      });
      await proxy.set({ toClient: { delayMs: 150 } });
      return { targets, play: write };
    },
  },
  {
    fault: 'an edit of the list is broken',
    fires: ['ShopwardListNotReloaded'],
    async start(open) {
      const { shopward, targets } = await startProxy(open);
      writeFileSync(shopward.listFile, 'groups: [');
      return { targets };
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
      return { targets };
    },
  },
  {
    fault: 'an edit of the list opens a row',
    fires: ['ShopwardListLooser'],
    async start(open) {
      const { shopward, targets } = await startProxy(open, { rows: ['GET /secret', 'GET /other'] });
      const text = readFileSync(shopward.listFile, 'utf8');
      const edited = text.replace(/.*\/other.*\n/, '');
      // Prometheus sees a rise only of a counter that it has scraped before.
      return { targets, play: (tick) => tick === 1 && writeFileSync(shopward.listFile, edited) };
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
      return { targets };
    },
  },
  {
    fault: 'the key source is down',
    fires: ['ShopwardKeysNotLoaded', 'ShopwardNoKeys'],
    async start(open) {
      const jwks = `http://127.0.0.1:${await freePort()}/jwks.json`;
      return startProxy(open, { config: { auth: { keys: { jwks, files: undefined } } } });
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
      const stage = await startProxy(open, { config: { auth: { algorithms: ['HS256'], keys } } });
      writeFileSync(file, 'short');
      return stage;
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
      return { targets, play: () => ask('/open') };
    },
  },
  {
    fault: 'one peer opens connections beyond its share',
    fires: ['ShopwardConnectionsFull'],
    async start(open) {
      const config = { listen: { maxConnections: 20 }, limits: { clientShare: 10 } };
      const { shopward, targets } = await startProxy(open, { config });
      return { targets, play: () => times(2, () => openConnection(open, shopward.port)) };
    },
  },
  {
    fault: 'a process is gone',
    fires: ['ShopwardDown'],
    async start(open) {
      const one = await startProcess(open);
      return { targets: one.targets, play: (tick) => tick === 1 && one.kill() };
    },
  },
  {
    fault: 'a process starts again and again',
    fires: ['ShopwardRestarts'],
    async start(open) {
      const one = await startProcess(open);
      let restarting: Promise<void> | undefined;
      const restart = () => {
        restarting ??= one.restart().finally(() => {
          restarting = undefined;
        });
      };
      const play = (tick: number) => tick % 16 === 0 && restart();
      return { targets: one.targets, play, started: () => restarting };
    },
  },
  {
    fault: 'the log cannot be written',
    fires: ['ShopwardLogLinesLost'],
    async start(open) {
      const launcher = ['sh', '-c', 'exec "$@" >/dev/full', 'sh'];
      const { targets, url } = await startProcess(open, { launcher });
      return { targets, play: () => clientOf(url, '').ask('/open') };
    },
  },
  {
    fault: 'workers end again and again',
    fires: ['ShopwardWorkersMissing', 'ShopwardWorkersRestart'],
    async start(open) {
      const { url } = await startRedis(open);
      const config = { workers: 2, store: { url, timeout: '1s' }, entityTags: shortLease };
      const { targets, pid } = await startProcess(open, { config });
      const kill = () => {
        for (const child of childrenOf(pid())) process.kill(Number(child), 'SIGKILL');
      };
      return { targets, play: (tick) => tick % 2 === 0 && kill() };
    },
  },
  {
    fault: 'few files may be open',
    fires: ['ShopwardFilesRunOut'],
    async start(open) {
      const launcher = ['sh', '-c', 'ulimit -n 110; exec "$@"', 'sh'];
      const config = { limits: { clientShare: 100 } };
      const { targets, port } = await startProcess(open, { launcher, config }, { maxConnections: 95 });
      // A few at a time: connections without a request are all closed after the same time.
      let count = 0;
      const keepOpen = () => {
        count += 1;
        openConnection(open, port).once('close', () => {
          count -= 1;
        });
      };
      return { targets, play: () => times(Math.min(8, 74 - count), keepOpen) };
    },
  },
  {
    fault: 'an observed refusal in each second',
    fires: ['ShopwardObserves'],
    async start(open) {
      const { ask, targets } = await startProxy(open, { config: { mode: 'observe' } });
      return { targets, play: (tick) => tick % 10 === 0 && ask('/secret', { token: 'x' }) };
    },
  },
  { fault: 'nothing is scraped', fires: ['ShopwardAbsent'], start: async () => ({ targets: [] }) },
  { fault: 'one of each, and nothing lasts', fires: [], start: startCalm },
];

const childrenOf = (pid: number | undefined): string[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? [];

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
  const config = { workers: 2, store: { url, timeout: '5s' }, limits: { clientShare: 90 } };
  const observed = { match: 'GET /observed', observe: true };
  const options = { upstream, config, rows: [...rows, observed] };
  const one = await startProcess(open, options, { maxConnections: 100 });
  const { ask, write } = clientOf(one.url, one.issueToken());
  const list = readFileSync(one.listFile, 'utf8');
  const odd = (answer: RequestListener) => () => {
    next.push(answer);
    return ask('/odd');
  };
  const events: (() => unknown)[] = [
    odd((request) => request.socket.destroy()),
    odd((_, response) => response.writeHead(500).end('{}')),
    odd((_, response) => response.writeHead(503).end('{}')),
    odd((_, response) => setTimeout(() => response.end('{}'), 3_000)),
    () => ask('/secret', { token: issueToken(makeSigner('RS256')) }),
    () => ask('/secret', { token: one.issueToken({ exp: 1_000_000_000 }) }),
    () => ask('/secret', { token: 'x' }),
    () => ask('/observed', { token: 'x' }),
    () => times(240, () => openConnection(open, one.port)),
    () => writeFileSync(one.listFile, 'groups: ['),
    () => writeFileSync(one.listFile, list),
    () => process.kill(Number(childrenOf(one.pid())[0]), 'SIGKILL'),
    one.restart,
  ];
  await eventually('no cold start', async () => (await write()) === 200 || undefined);
  return {
    targets: one.targets,
    play(tick) {
      ask('/open');
      if (tick % 3 === 0) write();
      if (tick % 4 === 0) events.shift()?.();
    },
  };
}

type Sample = { readonly metric: Readonly<Record<string, string>> };

/** Returns a function that queries it. */
async function startPrometheus(open: Open, stages: readonly (Row & Stage)[]) {
  const folder = open(makeFolder('prometheus'));
  const location = (name: string) => path.join(folder.path, name);
  const [absent] = /- alert: ShopwardAbsent\n(?: {8}.*\n)+/.exec(shortRules) ?? [];
  const names = rulesText.match(/\b(?:shopward|http|process)_\w+/g)?.join('|');
  const config = {
    global: { scrape_interval: '2s', scrape_timeout: '2s', evaluation_interval: '1s' },
    rule_files: ['rules.yaml'],
    scrape_configs: [
      {
        job_name: 'shopward',
        static_configs: stages.map(({ targets, fault }) => ({ targets, labels: { namespace: fault } })),
        metric_relabel_configs: [{ source_labels: ['__name__'], regex: names, action: 'keep' }],
      },
    ],
  };
  writeFileSync(location('prometheus.yaml'), JSON.stringify(config));
  // A job without a target.
  const other = `  - name: other\n    rules:\n      ${absent?.replace('job="shopward"', 'job="other"')}`;
  writeFileSync(location('rules.yaml'), shortRules + other);
  const address = `127.0.0.1:${await freePort()}`;
  const own = [`--web.listen-address=${address}`, `--storage.tsdb.path=${location('data')}`];
  const args = [`--config.file=${location('prometheus.yaml')}`, '--log.level=warn', ...own];
  const child = spawn(prometheus ?? '', args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = once(child, 'close');
  open({ close: () => ended });
  open({ close: () => child.kill('SIGKILL') });
  return async (query: string): Promise<readonly Sample[]> => {
    const url = `http://${address}/api/v1/query?${new URLSearchParams({ query })}`;
    const answer = await fetch(url).catch(() => {});
    return answer?.ok ? ((await answer.json()) as { data: { result: Sample[] } }).data.result : [];
  };
}

test.skipIf(prometheus === undefined)(
  'each fault that lasts fires its alerts; single faults fire none',
  { timeout: 420_000 },
  async (context) => {
    const open = closingAtEnd(context);
    const start = async (row: Row) => ({ ...row, ...(await row.start(open, row.fault)) });
    const stages = await Promise.all(table.map(start));
    const ask = await startPrometheus(open, stages);
    const targets = stages.flatMap((stage) => stage.targets).length;
    // While all start, some are scraped too early.
    const isCalm = async () =>
      (await ask('up == 1')).length === targets &&
      (await ask('ALERTS{alertname="ShopwardDown"}')).length === 0;
    await eventually('scrape of each', async () => (await isCalm()) || undefined, 100_000);
    const begunMs = Date.now();
    let tick = 0;
    const timer = setInterval(() => {
      tick += 1;
      for (const { play } of stages) play?.(tick);
    }, tickMs);
    open({ close: () => clearInterval(timer) });

    const fired = async () => {
      const since = `${Math.ceil((Date.now() - begunMs) / 1_000)}s`;
      const firing = `count_over_time(ALERTS{alertstate="firing"}[${since}])`;
      const found = await ask(`group by (namespace, alertname, reason) (${firing})`);
      return Object.fromEntries(
        stages.map(({ fault, fires }) => {
          const own = found
            .filter(({ metric: { namespace = 'nothing is scraped' } }) => namespace === fault)
            .map(({ metric: { alertname = '', reason } }) => (reason ? `${alertname} ${reason}` : alertname))
            .toSorted();
          return [fault, fires.length === 0 ? own : own.filter((name) => fires.includes(name))];
        }),
      );
    };
    const expected = Object.fromEntries(table.map(({ fault, fires }) => [fault, fires]));
    await context.expect.poll(fired, { timeout: 300_000, interval: 1_000 }).toEqual(expected);
    // The last single fault, a restart, is a window ago.
    await eventually('ticks', () => tick >= 110 || undefined, 100_000);
    clearInterval(timer);
    await Promise.all(stages.map(({ started }) => started?.()));
    expect(await fired()).toEqual(expected);
    const alerts = rulesText.matchAll(/- alert: (\w+)/g).map(([, name]) => name);
    expect(new Set(table.flatMap(({ fires }) => fires.map((alert) => alert.split(' ')[0])))).toEqual(
      new Set(alerts),
    );
  },
);
