import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
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
 * Starts one proxy for each fault and scrapes it. The samples go to Prometheus's `promtool`, as if scrapes were half a minute
 * apart and the last ones went on, so that no test waits for the `for` of an alert.
 */
const promtool = findProgram('promtool');
const rulesFile = path.join(import.meta.dirname, '../../../deploy/prometheus/shopward.rules.yaml');
const tickMs = 100;
const ticksOfAScrape = 6;
const scrapes = 18;
/** Scrapes at the end that are repeated until the history is long enough. */
const repeated = 4;
const historyLength = 60;

type Open = ReturnType<typeof closingAtEnd>;

interface Stage {
  /** Addresses of admin ports. */
  readonly targets: readonly string[];
  /** Sends the traffic of a tick; `tick` counts from 1. */
  readonly play?: (tick: number) => unknown;
}

interface Row {
  readonly fault: string;
  /** `fires`: the alerts that must fire. `mayFire`: alerts that are ignored. */
  readonly fires: readonly string[];
  readonly mayFire?: readonly string[];
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
  const targets = [`127.0.0.1:${shopward.adminPort}`];
  return { shopward, ask, write, targets };
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
  const start = async () => {
    const started = await startShopward({ rows, ...options, upstream, config, awaitListening: false });
    const ask = () => fetch(`http://${target}/livez`).then(({ ok }) => ok || undefined);
    await eventually('its admin port', () => ask().catch(() => undefined));
    return started;
  };
  let current = await start();
  open({ close: () => current.kill() });
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    targets: [target],
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

/** Ticks before the first fault, so that each counter is scraped before it rises. */
const soon = 20;

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
    fires: ['ShopwardRefuses', 'ShopwardStoreAway'],
    async start(open) {
      const { redis, url } = await startRedis(open);
      const { write, targets } = await startProxy(open, { config: { store: { url, timeout: '300ms' } } });
      await redis.kill();
      return { targets, play: write };
    },
  },
  {
    fault: 'Redis keeps coming back empty',
    fires: ['ShopwardNoTags'],
    async start(open) {
      const { url } = await startRedis(open);
      const entityTags = { lease: '60s', sendBy: '1s', wait: '500ms' };
      return startProxy(open, { config: { store: { url }, entityTags } });
    },
  },
  {
    fault: 'no replica of Redis confirms a claim',
    fires: ['ShopwardRefuses', 'ShopwardStoreReplicaMissing'],
    mayFire: ['ShopwardClaimsSlow', 'ShopwardStoreAway'],
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
    mayFire: ['ShopwardRefuses', 'ShopwardStoreAway'],
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
      return { targets, play: (tick) => tick === soon && writeFileSync(shopward.listFile, edited) };
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
      return { targets: one.targets, play: (tick) => tick === soon && one.kill() };
    },
  },
  {
    fault: 'a process starts again and again',
    fires: ['ShopwardRestarts'],
    mayFire: ['ShopwardDown'],
    async start(open) {
      const one = await startProcess(open);
      const restart = async () => {
        for (let left = 8; left > 0; left -= 1) {
          await one.restart();
          await sleep(1_500);
        }
      };
      return { targets: one.targets, play: (tick) => tick === soon && restart() };
    },
  },
  {
    fault: 'the log cannot be written',
    fires: ['ShopwardLogLinesLost'],
    async start(open) {
      const launcher = ['sh', '-c', 'exec "$@" >/dev/full', 'sh'];
      const { targets, url } = await startProcess(open, { launcher });
      return { targets, play: () => fetch(`${url}/open`).then((answer) => answer.arrayBuffer()) };
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
        const children = readFileSync(`/proc/${pid()}/task/${pid()}/children`, 'utf8').trim();
        for (const child of children.split(' ')) if (child !== '') process.kill(Number(child), 'SIGKILL');
      };
      return { targets, play: (tick) => tick > soon && kill() };
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
    fault: 'one of each, and nothing lasts',
    fires: [],
    start: startCalm,
  },
];

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
  const config = { store: { url }, listen: { maxConnections: 100 }, limits: { clientShare: 90 } };
  const { shopward, ask, write, targets } = await startProxy(open, { upstream, config });
  const list = readFileSync(shopward.listFile, 'utf8');
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
    () => ask('/secret', { token: shopward.issueToken({ exp: 1_000_000_000 }) }),
    () => ask('/secret', { token: 'x' }),
    () => times(120, () => openConnection(open, shopward.port)),
    () => writeFileSync(shopward.listFile, 'groups: ['),
    () => writeFileSync(shopward.listFile, list),
  ];
  await eventually('no cold start', async () => (await write()) === 200 || undefined);
  return {
    targets,
    play(tick) {
      times(2, () => ask('/secret'));
      if (tick % 3 === 0) write();
      // One event for each scrape.
      if (tick > soon && tick % ticksOfAScrape === 0) events.shift()?.();
    },
  };
}

/** Alerts that also fire if this process, in which most proxies run, gets too little CPU time. */
const starved = ['ShopwardSlow', 'ShopwardStoreAway'];

/** Values of one series in the notation of promtool, oldest first; undefined: not in that scrape. */
type Values = (number | undefined)[];

/** The samples of the proxies of a stage. */
class History {
  readonly #series = new Map<string, { readonly isCounter: boolean; readonly values: Values }>();
  #scrapes = 0;

  async scrape(targets: readonly string[]): Promise<void> {
    const texts = await Promise.all(
      targets.map((target) =>
        fetch(`http://${target}/metrics`)
          .then((answer) => answer.text())
          .catch(() => undefined),
      ),
    );
    for (const [i, text] of texts.entries()) {
      const labels = `job="shopward",instance="${targets[i]}"`;
      this.#note(`up{${labels}}`, false, text === undefined ? 0 : 1);
      const types = new Map(text?.matchAll(/^# TYPE (\S+) (\w+)$/gm).map(([, name, type]) => [name, type]));
      for (const [, name = '', own, value] of text?.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm) ?? []) {
        if (!ruledNames.has(name) || !ruledBuckets.has(/\ble="(.*?)"/.exec(own ?? '')?.[1] ?? '')) continue;
        const type = types.get(name) ?? types.get(name.replace(/_(?:bucket|count|sum)$/, ''));
        const labelled = `${name}{${own ? `${own},` : ''}${labels}}`;
        // Time starts in 1970 in a promtool test.
        const ahead = name.endsWith('_expiry_timestamp_seconds') ? Date.now() / 1_000 : 0;
        this.#note(labelled, type !== 'gauge', Number(value) - ahead);
      }
    }
    this.#scrapes += 1;
  }

  #note(name: string, isCounter: boolean, value: number): void {
    const series = this.#series.get(name) ?? { isCounter, values: [] };
    series.values[this.#scrapes] = value;
    this.#series.set(name, series);
  }

  toInput(): object[] {
    return [...this.#series].map(([series, { isCounter, values }]) => {
      const all: Values = Array.from({ length: this.#scrapes }, (_, i) => values[i]);
      for (let i = all.length; i < historyLength; i += 1) {
        const [last, then, before] = [all[i - 1], all[i - repeated], all[i - repeated - 1]];
        // Repeats the rise of the counter in that scrape.
        const rise = Math.max((then ?? 0) - (before ?? then ?? 0), 0);
        all.push(isCounter && last !== undefined && then !== undefined ? last + rise : then);
      }
      return { series, values: all.map((value) => value ?? 'stale').join(' ') };
    });
  }
}

const rulesText = readFileSync(rulesFile, 'utf8');
const ruledNames = new Set(rulesText.match(/\b(?:shopward|http|process)_\w+/g));
const ruledBuckets = new Set(['', ...rulesText.matchAll(/\ble="(.*?)"/g).map(([, le = '']) => le)]);

function promtoolTest({ fault, fires, mayFire = [] }: Row, history: History): object {
  const ignored = [...mayFire, ...starved.filter((name) => !fires.includes(name))].join('|');
  const fired = `ALERTS{alertstate="firing",alertname!~"${ignored}"}`;
  return {
    name: fault,
    interval: '30s',
    input_series: history.toInput(),
    promql_expr_test: [
      {
        expr: `group by (alertname, reason) (count_over_time(${fired}[1h]))`,
        eval_time: '29m',
        exp_samples: fires.map((alert) => {
          const [name, reason] = alert.split(' ');
          const labels = reason === undefined ? '' : `,reason="${reason}"`;
          return { labels: `{alertname="${name}"${labels}}`, value: 1 };
        }),
      },
    ],
  };
}

test.skipIf(promtool === undefined)(
  'each fault that lasts fires its alerts, and no other; single faults fire none',
  async (context) => {
    const open = closingAtEnd(context);
    const stages = await Promise.all(
      table.map(async (row) => ({ row, history: new History(), ...(await row.start(open, row.fault)) })),
    );
    for (let tick = 1; tick <= scrapes * ticksOfAScrape; tick += 1) {
      for (const { play } of stages) play?.(tick);
      await sleep(tickMs);
      if (tick % ticksOfAScrape > 0) continue;
      await Promise.all(stages.map(({ history, targets }) => history.scrape(targets)));
    }
    const noTargets: Row = { fault: 'nothing is scraped', fires: ['ShopwardAbsent'], start: startCalm };
    const tests = stages.map(({ row, history }) => promtoolTest(row, history));
    const folder = open(makeFolder('promtool'));
    const file = path.join(folder.path, 'test.json');
    writeFileSync(
      file,
      JSON.stringify({
        rule_files: [rulesFile],
        evaluation_interval: '1m',
        tests: [...tests, promtoolTest(noTargets, new History())],
      }),
    );
    const { stdout, stderr, status } = spawnSync(promtool ?? '', ['test', 'rules', file], {
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    });
    expect(status, stdout + stderr).toBe(0);
  },
);
