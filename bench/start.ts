/**
 * node bench/start.ts: the time from the start of a process to 200 at /readyz, with the shipped and the demo's
 * configuration, built and from source; then the cost of a health check of a running proxy, and of `check` of a long list.
 * This process serves the key sets; the shop gets no request.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { readArguments } from '../scripts/arguments.ts';
import { type PromiseResult, writeResult } from '../scripts/results.ts';
import { cpuMicroseconds } from './process-cpu.ts';
import { lineOf } from './programs.ts';

const { starts } = readArguments<{ starts: number }>({
  name: 'node bench/start.ts',
  about: 'Measures the time from the start to 200 at /readyz, a health check, and the check of a long list.',
  options: [['--starts <n>', 'starts of each program', 15]],
});

// Imported after the arguments are read, because `--help` does not need it.
const { keys } = await import('./contestants.ts');

const root = path.join(import.meta.dirname, '..');
const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-start-'));
const jwks = createServer((_, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ keys: [keys.publicKey.export({ format: 'jwk' })] }));
}).listen(0, '127.0.0.1');
await new Promise((resolve) => jwks.once('listening', resolve));
const { port } = jwks.address() as AddressInfo;

const lastWord = path.join(folder, 'last-word.cjs');
writeFileSync(
  lastWord,
  `process.on('exit', () => { const { user, system } = process.cpuUsage(); process.stderr.write('CPU ' + (user + system) + '\\n'); });\n`,
);

const list = path.join(root, 'config/protected-resources.yaml');
const shared = `
listen: { host: 127.0.0.1, port: 0 }
admin: { port: 0 }
protectedResources: ${list}
`;
const configurations = {
  shipped: `${shared}auth: { keys: { jwks: "http://127.0.0.1:${port}/" } }\n`,
  demo: `${shared}publicUrl: http://127.0.0.1
upstream: { url: "http://127.0.0.1:${port}" }
store: { url: memory }
auth: { keys: { jwks: "http://127.0.0.1:${port}/" }, subject: sub.customer_reference }
`,
};

interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

async function start(
  program: string,
  config: string,
  { keepsCompiled = true, isStoppedCleanly = false } = {},
): Promise<Cost> {
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  const before = performance.now();
  const child = spawn(process.execPath, [program, 'serve', '--config', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: keepsCompiled ? env : { ...env, NODE_DISABLE_COMPILE_CACHE: '1' },
  });
  const [, adminUrl = ''] = await lineOf(child, /admin on (\S+)/);
  while ((await status(`${adminUrl}/readyz`)) !== 200);
  const wallMs = performance.now() - before;
  const cpuMs = cpuMicroseconds([child.pid ?? 0]) / 1000;
  await new Promise((resolve) => child.once('exit', resolve).kill(isStoppedCleanly ? 'SIGTERM' : 'SIGKILL'));
  return { wallMs, cpuMs };
}

/** Runs a command that ends by itself. It reports its own CPU time, which cannot be read after its end. */
function runToEnd(args: readonly string[]): Cost {
  const before = performance.now();
  const { stderr, error } = spawnSync(process.execPath, ['-r', lastWord, ...args], {
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
  });
  const [, cpu] = /CPU (\d+)\n$/.exec(stderr) ?? [];
  if (cpu === undefined) throw error ?? new Error(`${args.join(' ')}: ${stderr}`);
  return { wallMs: performance.now() - before, cpuMs: Number(cpu) / 1000 };
}

/** Runs health checks of a running proxy, on a port that the configuration can name. */
async function healthOf(program: string): Promise<readonly Cost[]> {
  const adminPort = 20_000 + (process.pid % 20_000);
  const config = path.join(folder, 'health.yaml');
  writeFileSync(
    config,
    configurations.shipped.replace('admin: { port: 0 }', `admin: { port: ${adminPort} }`),
  );
  const child = spawn(process.execPath, [program, 'serve', '--config', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await lineOf(child, /admin on (\S+)/);
  const costs = Array.from({ length: starts }, () => runToEnd([program, 'health', '--config', config]));
  await new Promise((resolve) => child.once('exit', resolve).kill('SIGKILL'));
  return costs;
}

/** 60,000 rows with a note each: the slowest kind to read. */
function checkOf(program: string): readonly Cost[] {
  const rows = Array.from({ length: 60_000 }, (_, i) => `    - GET /things-${i}/{id}/parts/{part_id}\n`);
  const longList = path.join(folder, 'long.yaml');
  writeFileSync(longList, `groups:\n  Bench:\n${rows.join('')}complete: true\n`);
  const config = path.join(folder, 'check.yaml');
  writeFileSync(config, configurations.shipped.replace(list, longList));
  return Array.from({ length: 3 }, () => runToEnd([program, 'check', '--offline', '--config', config]));
}

function status(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (answer) => resolve(answer.resume().statusCode)).on('error', reject);
  });
}

function spread(values: readonly number[]): string {
  return `${Math.round(medianOf(values))} (${Math.round(Math.min(...values))}-${Math.round(Math.max(...values))})`;
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

try {
  const programs = ['dist/main.js', 'src/main.ts'].filter((name) => existsSync(path.join(root, name)));
  const figures: (readonly [string, string])[] = [];
  const promises: PromiseResult[] = [];
  const say = (what: string, costs: readonly Cost[], most?: Partial<Cost>) => {
    const [wall, cpu] = [costs.map(({ wallMs }) => wallMs), costs.map(({ cpuMs }) => cpuMs)];
    console.log(`| ${what} | ${spread(wall)} | ${spread(cpu)} |`);
    figures.push([what, `${spread(wall)} ms, ${spread(cpu)} ms of CPU`]);
    for (const [values, limit, unit] of [
      [wall, most?.wallMs, 'ms'],
      [cpu, most?.cpuMs, 'ms of CPU'],
    ] as const) {
      if (limit === undefined) continue;
      const isMet = medianOf(values) < limit;
      promises.push({
        promise: `${what}: under ${limit} ${unit}`,
        measured: `${spread(values)} ${unit}`,
        isMet,
      });
    }
  };
  console.log('| start to ready, ms: median (least-most) | wall | CPU |\n|---|---|---|');
  for (const [name, text] of Object.entries(configurations)) {
    const config = path.join(folder, `${name}.yaml`);
    writeFileSync(config, text);
    for (const program of programs) {
      const file = path.join(root, program);
      const firsts: Cost[] = [];
      for (let i = 0; i < starts; i++) firsts.push(await start(file, config, { keepsCompiled: false }));
      const most = program.endsWith('.js') && name === 'shipped' ? { wallMs: 250 } : undefined;
      say(`start to ready, ${program}, ${name}`, firsts, most);
      // From the sources no compiled code is kept.
      if (program.endsWith('.ts')) continue;
      await start(file, config, { isStoppedCleanly: true });
      const laters: Cost[] = [];
      for (let i = 0; i < starts; i++) laters.push(await start(file, config));
      say(`start to ready, ${program}, ${name}, with what an earlier start has compiled`, laters);
    }
  }
  const [built = ''] = programs;
  say(`${built} health`, await healthOf(path.join(root, built)), { cpuMs: 400 });
  say(
    'an empty Node process',
    Array.from({ length: starts }, () => runToEnd(['-e', '0'])),
  );
  say(`${built} check, 60,000 rows`, checkOf(path.join(root, built)), { wallMs: 2000 });
  writeResult('start', {
    title: 'Start, health check, long list',
    command: 'node bench/start.ts',
    promises,
    figures,
  });
} finally {
  jwks.close();
  rmSync(folder, { recursive: true });
}
