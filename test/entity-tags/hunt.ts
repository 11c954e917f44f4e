/**
 * Hunts for a lost update: replicas of the proxy, one Redis, clients that write the same few carts, and a nemesis that
 * kills and stops replicas and restarts or wipes Redis.
 *
 *     node test/entity-tags/hunt.ts [seconds=60] [replicas=3] [clients=24] [carts=12] [landing=900]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startRedis } from '../harness/redis-processes.ts';
import { freePort } from '../harness/redis-server.ts';
import { createHuntShop, type History } from './hunt-shop.ts';

const [seconds = 60, replicas = 3, clients = 24, carts = 12, landing = 900] = process.argv
  .slice(2)
  .map(Number);
/** B + S + e <= L, in milliseconds; a `landing` beyond 1100 is a shop that the lease does not cover, and must lose. */
const times = { lease: 2000, sendBy: 400, landing };

const history: History = { applied: 0, children: 0, lost: 0 };
const counts: Record<string, number> = {};
const count = (what: string) => {
  counts[what] = (counts[what] ?? 0) + 1;
};

const directory = mkdtempSync(join(tmpdir(), 'shopward-hunt-'));
const redis = await startRedis({});
const shop = createHuntShop(history, times.landing);
await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
const shopPort = (shop.address() as AddressInfo).port;

interface Replica {
  readonly port: number;
  readonly file: string;
  child: ChildProcess | undefined;
}

const all: Replica[] = [];
for (let i = 0; i < replicas; i += 1) {
  const port = await freePort();
  const file = join(directory, `replica-${i}.yaml`);
  writeFileSync(file, configuration(port));
  all.push({ port, file, child: undefined });
}
writeFileSync(join(directory, 'list.yaml'), 'groups:\n  Orders:\n    - GET /orders\ncomplete: true\n');
for (const replica of all) start(replica);

const until = Date.now() + seconds * 1000;
const nemesis = runNemesis();
await Promise.all(Array.from({ length: clients }, runClient));
await nemesis;
await sleep(times.landing + 100);
for (const { child } of all) child?.kill('SIGKILL');
shop.closeAllConnections();
shop.close();
await redis.close();
rmSync(directory, { recursive: true, force: true });
console.log(JSON.stringify({ seconds, replicas, clients, carts, ...history, ...counts }, null, 1));
process.exit(history.lost === 0 && history.applied > 0 ? 0 : 1);

function configuration(port: number): string {
  return `
listen: { host: 127.0.0.1, port: ${port} }
admin: false
upstream: { url: "http://127.0.0.1:${shopPort}", responseTimeout: 5s }
store: { url: "${redis.url}", timeout: 200ms }
protectedResources: list.yaml
auth: { algorithms: [HS256], keys: { secret: "${'hunt'.repeat(16)}" } }
entityTags:
  lease: ${times.lease}ms
  sendBy: ${times.sendBy}ms
  wait: 1s
  resources: [{ collection: /carts, member: "/carts/{cart_id}", methods: [PATCH, DELETE] }]
urlResolver: false
refreshTokens: false
log: { level: fatal }
`;
}

function start(replica: Replica): void {
  const main = new URL('../../src/main.ts', import.meta.url).pathname;
  const stdio = ['ignore', 'ignore', 'inherit'] as const;
  replica.child = spawn(process.execPath, [main, 'serve', '--config', replica.file], { stdio: [...stdio] });
}

async function runNemesis(): Promise<void> {
  const client = new Redis(redis.url);
  client.on('error', () => {});
  while (Date.now() < until - 1000) {
    await sleep(300 + Math.random() * 1500);
    const replica = all[Math.floor(Math.random() * all.length)];
    const fate = Math.random();
    if (replica === undefined) continue;
    if (fate < 0.4) {
      count('kills');
      replica.child?.kill('SIGKILL');
      await sleep(100);
      start(replica);
    } else if (fate < 0.85) {
      count('stops');
      replica.child?.kill('SIGSTOP');
      await sleep(Math.random() * times.lease * 1.5);
      replica.child?.kill('SIGCONT');
    } else if (fate < 0.93) {
      count('wipes');
      await client.flushall().catch(() => {});
    } else {
      count('redisRestarts');
      await redis.process?.restart();
    }
  }
  client.disconnect();
}

async function runClient(): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  while (Date.now() < until) {
    const path = `/carts/${Math.floor(Math.random() * carts)}`;
    if (Math.random() < 0.15) {
      count(`child ${(await send(agent, 'POST', `${path}/items`, {})).status}`);
      continue;
    }
    let known = await send(agent, 'GET', path, {});
    count(`get ${known.status}${known.tag === undefined ? ' without a tag' : ''}`);
    while (known.tag !== undefined && known.version !== undefined && Date.now() < until) {
      known = await send(agent, 'PATCH', path, { 'If-Match': known.tag }, { basedOn: known.version });
      count(`patch ${known.status}`);
      if (known.status !== 200 || Math.random() < 0.3) break;
    }
    await sleep(known.status === 0 ? 100 : Math.random() * 20);
  }
  agent.destroy();
}

interface Answer {
  readonly status: number;
  readonly tag: string | undefined;
  readonly version: number | undefined;
}

/** Status 0: no answer. */
function send(
  agent: Agent,
  method: string,
  path: string,
  headers: Record<string, string>,
  body: unknown = {},
): Promise<Answer> {
  const none: Answer = { status: 0, tag: undefined, version: undefined };
  const replica = all[Math.floor(Math.random() * all.length)];
  return new Promise((resolve) => {
    const text = method === 'GET' ? '' : JSON.stringify(body);
    const type =
      method === 'GET' ? {} : { 'Content-Type': 'application/json', 'Content-Length': text.length };
    const sent = httpRequest(
      { host: '127.0.0.1', port: replica?.port, method, path, agent, headers: { ...headers, ...type } },
      (response) => {
        let answer = '';
        response.on('data', (chunk) => {
          answer += chunk;
        });
        response.on('error', () => resolve(none));
        response.on('end', () => {
          const version =
            response.statusCode === 200 ? JSON.parse(answer).data.attributes.version : undefined;
          resolve({ status: response.statusCode ?? 0, tag: response.headers.etag, version });
        });
      },
    );
    sent.setTimeout(4000, () => sent.destroy());
    sent.on('error', () => resolve(none));
    sent.end(text);
  });
}
