/**
 * npm run sizing: the memory of one process, from /proc: at rest, at 6,000 requests a second, for each remembered access
 * token, each tracked member in the memory store and each idle connection, compared with a bare `node:http` server. Runs
 * `dist` if it is built, else the sources.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SignJWT } from 'jose';
import { readArguments } from '../scripts/arguments.ts';
import { writeResult } from '../scripts/results.ts';
import { loadProcessor } from './contestants.ts';
import { load } from './load.ts';
import { peakMemoryMiB } from './process-cpu.ts';
import { lineOf } from './programs.ts';

readArguments({
  name: 'npm run sizing',
  about: 'Measures the memory of one process, and what it is used for.',
});

const root = path.join(import.meta.dirname, '..');
const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-sizing-'));
const secret = 'a secret of no worth, long enough for HS256';
const body = JSON.stringify({ data: { type: 'carts', id: '1', attributes: { name: 'x'.repeat(300) } } });

const shop = createServer((_, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(body);
}).listen(0, '127.0.0.1');
await once(shop, 'listening');

const config = path.join(folder, 'shopward.yaml');
writeFileSync(
  config,
  `listen: { host: 127.0.0.1, port: 0, maxConnections: 12000 }
limits: { clientShare: 100 }
admin: false
store: { url: memory }
upstream: { url: "http://127.0.0.1:${(shop.address() as AddressInfo).port}" }
protectedResources: ${path.join(root, 'config/protected-resources.yaml')}
auth: { algorithms: [HS256], keys: { secret: "${secret}" } }
log: { level: error }
`,
);
const program = ['dist/main.js', 'src/main.ts'].find((name) => existsSync(path.join(root, name))) ?? '';
const child = spawn(process.execPath, [path.join(root, program), 'serve', '--config', config], {
  stdio: ['ignore', 'ignore', 'pipe'],
});
const [, port = ''] = await lineOf(child, /listening on http:\/\/127\.0\.0\.1:(\d+)/);

const bareServer = `require('node:http').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port); })`;
const bare = spawn(process.execPath, ['-e', bareServer], { stdio: ['ignore', 'pipe', 'ignore'] });
const [barePort = ''] = await lineOf(bare, /\d+/);

/** Resident bytes, after a pause in which the garbage collector gives memory back. */
async function residentBytes({ pid }: { readonly pid?: number | undefined } = child): Promise<number> {
  await sleep(3_000);
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
function get(target: string, token?: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    request({ host: '127.0.0.1', port, path: target, agent, headers }, (answer) => {
      answer.resume().once('end', resolve);
    })
      .once('error', reject)
      .end();
  });
}
const tokenOf = (subject: string) =>
  new SignJWT({ sub: subject })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(Buffer.from(secret));
/** Opens connections that send no request, some hundred at a time, so that none waits to be accepted. */
async function openIdle(count: number, to = port): Promise<void> {
  for (let opened = 0; opened < count; opened += 100) {
    const some = Array.from({ length: Math.min(100, count - opened) }, () =>
      connect(Number(to), '127.0.0.1').on('error', () => {}),
    );
    await Promise.all(some.map((socket) => once(socket, 'connect')));
    idle.push(...some);
  }
}
/** Runs 64 at a time. */
async function each(count: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: 64 }, worker));
}

const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
const kib = (bytes: number, count: number) => `${(bytes / count / 1024).toFixed(1)} KiB each`;
const rows: (readonly [string, string])[] = [];
const idle: Socket[] = [];
try {
  rows.push([`at rest (${program})`, mib(await residentBytes())]);
  await each(20_000, () => get('/stores'));
  const warm = await residentBytes();
  rows.push(['after 20,000 requests over 64 connections', mib(warm)]);
  const atRate = { method: 'GET', path: '/stores', fields: {}, status: 200, perSecond: 6_000 };
  await load(`http://127.0.0.1:${port}`, atRate, 64, 20, loadProcessor);
  rows.push(['peak, 20 s of 6,000 requests a second', mib(peakMemoryMiB(child.pid ?? 0) * 2 ** 20)]);
  await each(10_000, async (i) => get('/customers/DE--1', await tokenOf(`DE--${i}`)));
  const withTokens = await residentBytes();
  rows.push(['10,000 remembered access tokens', kib(withTokens - warm, 10_000)]);
  const one = await tokenOf('DE--1');
  await each(10_000, (i) => get(`/carts/${i}`, one));
  const withMembers = await residentBytes();
  rows.push(['10,000 tracked members in memory', kib(withMembers - withTokens, 10_000)]);
  for (const count of [1_000, 10_000]) {
    await openIdle(count - idle.length);
    rows.push([`${count} idle connections`, kib((await residentBytes()) - withMembers, count)]);
  }
  rows.push(['at the end', mib(await residentBytes())]);
  for (const socket of idle) socket.destroy();
  const beforeBare = await residentBytes(bare);
  await openIdle(5_000, barePort);
  rows.push([
    '5000 idle connections of a bare node:http server',
    kib((await residentBytes(bare)) - beforeBare, 5_000),
  ]);
  console.log('| memory of one process | |\n|---|---|');
  for (const row of rows) console.log(`| ${row.join(' | ')} |`);
  writeResult('sizing', { title: 'Memory of one process', command: 'npm run sizing', figures: rows });
} finally {
  child.kill('SIGKILL');
  bare.kill('SIGKILL');
  agent.destroy();
  shop.close();
  rmSync(folder, { recursive: true });
}
process.exit(0);
