import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { findMain } from '../../harness/built-shopward.ts';
import { eventually } from '../../harness/eventually.ts';
import { findProgram } from '../../harness/programs.ts';
import { startRedisProcess } from '../../harness/redis-server.ts';
import { bareEnvironment } from '../../harness/shopward.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const deploy = path.join(root, 'deploy');
const file = path.join(deploy, 'compose.yaml');
const compose = parse(readFileSync(file, 'utf8'));
const { shopward } = compose.services;
const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-compose-'));
afterAll(() => rmSync(folder, { recursive: true }));

const program = findProgram('docker-compose');

test.skipIf(program === undefined)('docker-compose accepts the file', () => {
  const out = execFileSync(program ?? '', ['-f', file, 'config'], { encoding: 'utf8', stdio: 'pipe' });
  expect(Object.keys(parse(out).services).toSorted()).toEqual(['redis', 'shop', 'shopward']);
});

/** The path in the repository that is mounted at a path of the container. */
function onHost(inContainer: string): string | undefined {
  for (const volume of shopward.volumes as string[]) {
    const [from = '', to = ''] = volume.split(':');
    if (inContainer.startsWith(`${to}/`)) return path.join(deploy, from, inContainer.slice(to.length));
  }
  return undefined;
}

test('the mounted configuration passes shopward check with its variables and its secret', () => {
  // The image and its health check read this file by default.
  const config = onHost('/etc/shopward/shopward.yaml') ?? '';
  const token = path.join(folder, 'admin-token');
  writeFileSync(token, `${'x'.repeat(64)}\n`);
  expect(shopward.secrets).toEqual(['admin-token']);
  const text = readFileSync(config, 'utf8')
    .replace('/run/secrets/admin-token', token)
    .replace('/config/protected-resources.yaml', (location) => onHost(location) ?? location);
  writeFileSync(path.join(folder, 'shopward.yaml'), text);
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [findMain(), 'check', '--offline', '--config', path.join(folder, 'shopward.yaml')],
    { encoding: 'utf8', env: { ...bareEnvironment, ...shopward.environment } },
  );
  expect(stderr).toBe('');
  expect(stdout).toContain('checked ');
  expect(status).toBe(0);
});

test('the ports are those of the configuration, and the console is published on loopback only', () => {
  const { listen, admin } = parse(readFileSync(onHost('/etc/shopward/shopward.yaml') ?? '', 'utf8'));
  expect(shopward.ports).toEqual([`8080:${listen.port}`, `127.0.0.1:8081:${admin.port}`]);
  // Docker forwards to the address of the container, which a loopback listener does not get.
  expect([listen.host, admin.host]).toEqual(['0.0.0.0', '0.0.0.0']);
  expect(compose.services.redis.ports ?? compose.services.shop.ports).toBeUndefined();
});

test('every mounted folder exists; git and npm ignore the token', () => {
  const named = new Set(Object.keys(compose.volumes));
  for (const { volumes = [] } of Object.values<{ volumes?: string[] }>(compose.services)) {
    for (const volume of volumes.filter((one) => !named.has(one.split(':')[0] ?? '')))
      expect(existsSync(path.join(deploy, volume.split(':')[0] ?? '')), volume).toBe(true);
  }
  const token = path.posix.join('deploy', compose.secrets['admin-token'].file);
  expect(readFileSync(path.join(root, '.gitignore'), 'utf8').split('\n')).toContain(token);
  expect(JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).files).toContain(`!${token}`);
});

test('Redis keeps its data over a restart, and evicts nothing', async () => {
  const [name, ...args] = compose.services.redis.command as string[];
  expect(name).toBe('redis-server');
  const settings = Object.fromEntries(
    args.flatMap((arg, i) => (arg.startsWith('--') ? [[arg.slice(2), args[i + 1] ?? '']] : [])),
  );
  const redis = await startRedisProcess({ settings });
  onTestFinished(() => redis.close());
  const client = new Redis(redis.port, '127.0.0.1', { lazyConnect: true });
  onTestFinished(() => client.disconnect());
  const settingOf = async (setting: string) => ((await client.config('GET', setting)) as string[])[1];
  expect([await settingOf('appendonly'), await settingOf('maxmemory-policy')]).toEqual(['yes', 'noeviction']);
  await client.set('a', '1');
  // A write to the append-only file waits for an fsync that is in progress.
  const isWritten = async () => /^aof_buffer_length:0\r$/m.test(await client.info('persistence'));
  await eventually('the write', async () => (await isWritten()) || undefined);
  await redis.restart();
  expect(await client.get('a')).toBe('1');
  // The volume outlives the container.
  expect(compose.services.redis.volumes).toEqual([`${Object.keys(compose.volumes)[0]}:/data`]);
});
