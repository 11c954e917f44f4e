import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { findMain } from '../../harness/built-shopward.ts';
import { ask } from './ask.ts';
import { checkScene, type Scene } from './scene.ts';
import { type OutageShop, startOutageShop } from './shop.ts';

const main = findMain();
/** Their lines exceed a pipe (64 KiB) and the log's buffer (1 MiB). */
const requests = 400;
const segments = Array(24).fill('x'.repeat(72)).join('/');

/** Faults of the log's destination. */
export async function runLogFaults(): Promise<Scene[]> {
  const shop = await startOutageShop();
  const scenes = await Promise.all([closedPipe(shop), unreadPipe(shop), fullDevice(shop), fullDisk(shop)]);
  shop.close();
  return scenes.flat();
}

/** The log's reader is gone (EPIPE). */
async function closedPipe(shop: OutageShop): Promise<Scene> {
  const running = await start(shop, 'pipe');
  running.child.stdout?.destroy();
  return conclude("the log's reader is gone", running);
}

/** The log's reader has stopped for good, and the pipe is full. */
async function unreadPipe(shop: OutageShop): Promise<Scene> {
  const running = await start(shop, 'pipe');
  running.child.stdout?.pause();
  return conclude("the log's reader has stopped", running);
}

/** Every write fails with ENOSPC, as on Linux's /dev/full. */
async function fullDevice(shop: OutageShop): Promise<Scene[]> {
  if (!existsSync('/dev/full')) return [];
  const device = openSync('/dev/full', 'w');
  const scene = await conclude('no line of the log can be written', await start(shop, device));
  closeSync(device);
  return [scene];
}

/** A disk that fills up while the log grows (ENOSPC); only root can make such a disk. */
async function fullDisk(shop: OutageShop): Promise<Scene[]> {
  const folder = mkdtempSync(join(tmpdir(), 'shopward-full-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    rmSync(folder, { recursive: true });
    return [];
  }
  const file = openSync(join(folder, 'log'), 'w');
  const scene = await conclude('the disk of the log fills up', await start(shop, file));
  closeSync(file);
  execFileSync('umount', [folder]);
  rmSync(folder, { recursive: true });
  return [scene];
}

interface Running {
  readonly child: ChildProcess;
  readonly port: number;
  readonly folder: string;
}

async function start(shop: OutageShop, stdout: 'pipe' | number): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), 'shopward-log-'));
  const config = {
    listen: { host: '127.0.0.1', port: 0, drainDelay: '0s' },
    admin: false,
    upstream: { url: `http://127.0.0.1:${shop.port}` },
    protectedResources: 'list.yaml',
    auth: { algorithms: ['HS256'], keys: { secret: 'a secret of no worth, long enough' } },
  };
  writeFileSync(join(folder, 'shopward.yaml'), stringify(config));
  writeFileSync(join(folder, 'list.yaml'), 'groups:\n  Test:\n    - GET /customers/{id}\ncomplete: true\n');
  const child = spawn(process.execPath, [main, 'serve', '--config', join(folder, 'shopward.yaml')], {
    stdio: ['ignore', stdout, 'pipe'],
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  for (;;) {
    const port = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1];
    if (port !== undefined) return { child, port: Number(port), folder };
    if (child.exitCode !== null) throw new Error(`shopward ended: ${said}`);
    await once(child.stderr ?? child, 'data');
  }
}

async function conclude(name: string, { child, port, folder }: Running): Promise<Scene> {
  const words: Record<string, number> = {};
  const agent = new Agent({ keepAlive: true });
  for (let i = 0; i < requests; i += 1) {
    const seen = await ask(port, { method: 'GET', path: `/stores/${i}/${segments}` }, agent);
    words[seen.words] = (words[seen.words] ?? 0) + 1;
    if (seen.words === 'hang' || seen.words === 'no answer') break;
  }
  agent.destroy();
  const isAlive = child.exitCode === null && child.signalCode === null;
  const gone = isAlive ? once(child, 'exit') : undefined;
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), 30_000);
  await gone;
  clearTimeout(late);
  rmSync(folder, { recursive: true });
  const seen = {
    requests: Object.entries(words)
      .map(([word, count]) => `${count} x ${word}`)
      .join(', '),
    process: isAlive ? 'goes on' : 'ended',
    'SIGTERM then': `exit ${child.exitCode ?? child.signalCode}`,
  };
  return checkScene(name, seen, {
    requests: `${requests} x 200`,
    process: 'goes on',
    'SIGTERM then': 'exit 0',
  });
}
