/**
 * node bench/start.ts: from the start of the process to 200 at /readyz, with the shipped configuration and with the
 * demo's, built and from source. Key sets come from this process; the shop is never asked.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { readArguments } from '../scripts/arguments.ts';
import { keys } from './contestants.ts';
import { cpuMicroseconds } from './process-cpu.ts';
import { lineOf } from './programs.ts';

const { starts } = readArguments<{ starts: number }>({
  name: 'node bench/start.ts',
  about: 'From the start of the process to 200 at /readyz, built and from source.',
  options: [['--starts <n>', 'of each', 15]],
});

const root = path.join(import.meta.dirname, '..');
const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-start-'));
const jwks = createServer((_, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ keys: [keys.publicKey.export({ format: 'jwk' })] }));
}).listen(0, '127.0.0.1');
await new Promise((resolve) => jwks.once('listening', resolve));
const { port } = jwks.address() as AddressInfo;

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

async function start(program: string, config: string): Promise<{ wallMs: number; cpuMs: number }> {
  const before = performance.now();
  const child = spawn(process.execPath, [program, 'serve', '--config', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [, adminUrl = ''] = await lineOf(child, /admin on (\S+)/);
  while ((await status(`${adminUrl}/readyz`)) !== 200);
  const wallMs = performance.now() - before;
  const cpuMs = cpuMicroseconds([child.pid ?? 0]) / 1000;
  await new Promise((resolve) => child.once('exit', resolve).kill('SIGKILL'));
  return { wallMs, cpuMs };
}

function status(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (answer) => resolve(answer.resume().statusCode)).on('error', reject);
  });
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b).map(Math.round);
  return `${sorted[sorted.length >> 1]} (${sorted[0]}-${sorted.at(-1)})`;
}

try {
  const programs = ['dist/main.js', 'src/main.ts'].filter((name) => existsSync(path.join(root, name)));
  console.log('| start to ready, ms: median (least-most) | wall | CPU |\n|---|---|---|');
  for (const [name, text] of Object.entries(configurations)) {
    const config = path.join(folder, `${name}.yaml`);
    writeFileSync(config, text);
    for (const program of programs) {
      const runs: { wallMs: number; cpuMs: number }[] = [];
      for (let i = 0; i < starts; i++) runs.push(await start(path.join(root, program), config));
      const wall = spread(runs.map(({ wallMs }) => wallMs));
      console.log(`| ${program}, ${name} | ${wall} | ${spread(runs.map(({ cpuMs }) => cpuMs))} |`);
    }
  }
} finally {
  jwks.close();
  rmSync(folder, { recursive: true });
}
