import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findMain } from '../../harness/built-shopward.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import { bareEnvironment, collect, listOf } from '../../harness/shopward.ts';
import { makeSigner, publicPem } from '../../unit/access/signing.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const main = findMain();
const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-exit-codes-'));
const unit = readFileSync(path.join(root, 'deploy/systemd/shopward.service'), 'utf8');
const page = readFileSync(path.join(root, 'docs/operations.md'), 'utf8');

let taker: Server;
let takenPort = 0;
let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  writeFileSync(path.join(folder, 'public.pem'), publicPem(makeSigner('RS256')));
  writeFileSync(path.join(folder, 'list.yaml'), listOf(['GET /orders']));
  taker = createServer().listen(0, '127.0.0.1');
  await once(taker, 'listening');
  takenPort = (taker.address() as { port: number }).port;
  redis = await startRedis({});
});
afterAll(async () => {
  taker.close();
  await redis.close();
  rmSync(folder, { recursive: true });
});

interface Start {
  readonly listen?: string;
  readonly admin?: string;
  readonly more?: string;
  readonly args?: readonly string[];
  readonly uid?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** What standard error must say. */
  readonly says?: RegExp;
}

function start({
  listen = '{ host: 127.0.0.1, port: 0 }',
  admin = '{ port: 0 }',
  more = '',
  ...rest
}: Start) {
  const file = path.join(folder, 'shopward.yaml');
  writeFileSync(
    file,
    `listen: ${listen}\nadmin: ${admin}\nupstream: { url: "http://127.0.0.1:9" }\nprotectedResources: list.yaml\n` +
      `auth: { keys: { files: [public.pem] } }\n${more}\n`,
  );
  const { args = ['serve', '--config', file], uid, env } = rest;
  const child = spawn(process.execPath, [main, ...args], {
    cwd: folder,
    env: { ...bareEnvironment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(uid !== undefined && { uid, gid: uid, env: { PATH: process.env.PATH, HOME: '/nonexistent' } }),
  });
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8');
  return child;
}

/** Sends a signal once it listens, and another once it drains: equal pending signals merge. Returns how it ended. */
async function endOf(
  child: ChildProcess,
  signals: readonly NodeJS.Signals[] = [],
  says = /^/,
): Promise<number | string> {
  const [log, streams] = [collect(), collect()];
  child.stdout?.on('data', log.out);
  child.stderr?.on('data', streams.err);
  const ended = once(child, 'close');
  for (const [i, signal] of signals.entries()) {
    const [printed, wanted] = i === 0 ? [streams, 'listening on'] : [log, '"event":"draining"'];
    await printed.waitFor(wanted, () => printed.output().includes(wanted) || undefined);
    child.kill(signal);
  }
  const [code, signal] = await ended;
  expect(streams.output()).toMatch(says);
  expect(streams.output()).not.toMatch(/\n {4}at /);
  return code ?? signal;
}

const badCommand = /error: .*\n(.*\n)*.*--help/;
const inUse = (port: number) => new RegExp(`shopward cannot start: .*EADDRINUSE.*127\\.0\\.0\\.1:${port}`);

/** Provokes each exit code of docs/operations.md, and compares its row with the systemd unit. */
test.each<[why: string, code: number | string, how: () => Start, signals?: NodeJS.Signals[]]>([
  ['SIGTERM', 0, () => ({ listen: '{ port: 0, drainDelay: 0s }' }), ['SIGTERM']],
  ['a second signal', 1, () => ({ listen: '{ port: 0, drainDelay: 30s }' }), ['SIGTERM', 'SIGTERM']],
  ['an unknown verb', 2, () => ({ args: ['serv'], says: badCommand })],
  ['an unknown option', 2, () => ({ args: ['serve', '--conf', 'x'], says: badCommand })],
  ['an option without its value', 2, () => ({ args: ['serve', '--config'], says: badCommand })],
  [
    'a public port in use',
    75,
    () => ({ listen: `{ host: 127.0.0.1, port: ${takenPort} }`, says: inUse(takenPort) }),
  ],
  ['an admin port in use', 75, () => ({ admin: `{ port: ${takenPort} }`, says: inUse(takenPort) })],
  [
    'a public port in use, with workers',
    75,
    () => ({
      listen: `{ host: 127.0.0.1, port: ${takenPort} }`,
      more: `workers: 2\nstore: { url: "${redis.url}" }`,
    }),
  ],
  ['an address that the machine does not have', 75, () => ({ listen: '{ host: 192.0.2.1, port: 0 }' })],
  ['a misspelled key', 78, () => ({ more: 'modee: enforce', says: /shopward\.yaml:\d+:\d+: error: / })],
  ['a missing file', 78, () => ({ args: ['serve', '--config', 'nowhere.yaml'], says: /nowhere\.yaml/ })],
  [
    'an unsafe option of Node',
    78,
    () => ({ env: { NODE_OPTIONS: '--insecure-http-parser' }, says: /insecure-http-parser/ }),
  ],
  [
    'no check of certificates',
    78,
    () => ({ env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' }, says: /NODE_TLS_REJECT_UNAUTHORIZED/ }),
  ],
  ['SIGKILL', 'SIGKILL', () => ({}), ['SIGKILL']],
])('%s ends with %s, and the unit restarts as the table says', async (_, code, how, signals) => {
  const { says, ...options } = how();
  expect(await endOf(start(options), signals, says)).toBe(code);
  expect(restarts(code)).toBe(saidToRestart(code));
});

test('a Redis that may evict keys ends with 1, and the unit restarts as the table says', async () => {
  const evicting = await startRedis({ settings: { 'maxmemory-policy': 'allkeys-lru' } });
  const code = await endOf(start({ more: `store: { url: "${evicting.url}" }` }), [], /noeviction/);
  await evicting.close();
  expect(code).toBe(1);
  expect(restarts(code)).toBe(saidToRestart(code));
});

test.each<[what: string, args: readonly string[], says: RegExp]>([
  ['results that cannot be written', ['--help'], /^error: ENOSPC: no space left on device, write\n$/],
  [
    'a folder that is a file',
    ['init', '--blank', '--dir', 'list.yaml'],
    /^error: ENOTDIR: not a directory, .*list\.yaml.*\n$/,
  ],
])('%s: one line and exit code 1', (_, args, says) => {
  const full = openSync('/dev/full', 'w');
  const { status, stderr } = spawnSync(process.execPath, [main, ...args], {
    cwd: folder,
    stdio: ['ignore', full, 'pipe'],
  });
  closeSync(full);
  expect([status, stderr.toString()]).toEqual([1, expect.stringMatching(says)]);
});

/** User id of `nobody` on Debian; needed only by root. */
const somebody = process.getuid?.() === 0 ? 65_534 : undefined;
const lowPorts = readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').trim();
const canTry =
  Number(lowPorts) > 81 &&
  spawnSync(process.execPath, [main, '--version'], { ...(somebody && { uid: somebody }) }).status === 0;

test.skipIf(!canTry)('a port that needs privileges ends with 78', async () => {
  spawnSync('chmod', ['-R', 'a+rX', folder]);
  const child = start({ listen: '{ host: 127.0.0.1, port: 81 }', ...(somebody && { uid: somebody }) });
  expect(await endOf(child)).toBe(78);
  expect(restarts(78)).toBe(false);
});

/** systemd.service(5), Restart=on-failure: restarts after unclean codes and signals, except RestartPreventExitStatus. */
function restarts(code: number | string): boolean {
  const setting = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
  expect(setting('Restart')).toBe('on-failure');
  // The default limit, five starts in ten seconds, would make the last failure final, whatever its code.
  expect(setting('StartLimitIntervalSec')).toBe('0');
  if (['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGPIPE', 0].includes(code)) return false;
  return !setting('RestartPreventExitStatus').split(' ').includes(String(code));
}

function saidToRestart(code: number | string): boolean {
  const row = typeof code === 'string' ? 'a signal' : code;
  const said = new RegExp(`^\\|${row}\\|.*\\|([^|]*)\\|$`, 'm').exec(page)?.[1];
  expect(['stays stopped', 'starts again after 2 s']).toContain(said);
  return said !== 'stays stopped';
}

test('the unit has no ExecStartPre, which would be retried for ever after a failure', () => {
  expect(unit).not.toMatch(/^ExecStartPre/m);
});
