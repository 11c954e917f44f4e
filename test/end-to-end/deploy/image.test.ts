import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { startEchoUpstream } from '../../harness/echo-upstream.ts';
import { freePort } from '../../harness/free-port.ts';
import { issueToken } from '../../harness/shopward.ts';
import { makeSigner, publicPem } from '../../unit/access/signing.ts';
import { type BuiltImage, buildImage, findBuildah } from './image-builder.ts';
import { makeReadOnly, copyNode, serveUnprivileged } from './unprivileged.ts';

/** Tests the image that buildah builds from a local base, without a network. */
const root = path.resolve(import.meta.dirname, '../../..');
const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-image-'));
/** A copy of the image's folders. */
const inside = (location: string) => path.join(folder, location);
const image = inside('/app');

const buildah = findBuildah();
const inImage = test.skipIf(buildah === undefined);
let built: BuiltImage | undefined;

beforeAll(() => {
  if (buildah === undefined) return;
  built = buildImage(buildah, root);
  for (const location of ['/app', '/etc/shopward']) {
    cpSync(built.root + location, inside(location), { recursive: true, verbatimSymlinks: true });
  }
}, 600_000);
afterAll(() => {
  built?.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Every file with its time of change. */
function filesOf(location: string): string[] {
  return globSync('**', { cwd: location }).map(
    (file) => `${file} ${statSync(path.join(location, file)).mtimeMs}`,
  );
}

function runInImage(...args: string[]): string {
  return execFileSync(process.execPath, ['dist/main.js', ...args], { cwd: image, encoding: 'utf8' });
}

inImage('the image runs the compiled command line with production dependencies only', () => {
  expect(runInImage('--version')).toMatch(/^shopward \d+\.\d+\.\d+/);
  expect(() => readFileSync(path.join(image, 'node_modules/vitest/package.json'))).toThrow('ENOENT');
  // The console takes causes and cures from this page.
  expect(readFileSync(path.join(image, 'docs/reasons.md'), 'utf8')).toContain('## Who asks');
});

inImage('the configuration that the image ships passes its own check', () => {
  const file = inside('/etc/shopward/shopward.yaml');
  const out = execFileSync(process.execPath, ['dist/main.js', 'check', '--offline', '--config', file], {
    cwd: image,
    encoding: 'utf8',
    env: {
      ...process.env,
      UPSTREAM_URL: 'http://127.0.0.1:9000',
      JWKS_URL: 'http://127.0.0.1:9000/jwks.json',
    },
  });
  expect(out).not.toMatch(/error:/);
});

inImage('serves as a user who does not own its files, and writes none', async ({ onTestFinished }) => {
  const upstream = await startEchoUpstream();
  const signer = makeSigner('RS256');
  const etc = inside('/etc/shopward');
  writeFileSync(path.join(etc, 'public.pem'), publicPem(signer));
  const config = path.join(etc, 'test.yaml');
  writeFileSync(
    config,
    stringify({
      listen: { host: '127.0.0.1', port: 0, drainDelay: '0s' },
      // The health check finds the admin port here, as in the container.
      admin: { host: '127.0.0.1', port: await freePort() },
      upstream: { url: `http://127.0.0.1:${upstream.port}` },
      protectedResources: 'protected-resources.yaml',
      auth: { keys: { files: ['public.pem'] } },
    }),
  );
  const node = copyNode(folder);
  makeReadOnly(folder);
  const before = filesOf(folder);
  const { child, port, said } = await serveUnprivileged(node, image, config);
  onTestFinished(() => void child.kill('SIGKILL'));
  const get = async (location: string, headers = {}) =>
    (await fetch(`http://127.0.0.1:${port}${location}`, { headers })).status;

  expect(await get('/stores')).toBe(200);
  expect(await get('/orders')).toBe(401);
  expect(await get('/orders', { Authorization: `Bearer ${issueToken(signer)}` })).toBe(200);
  expectHealthy(config);
  child.kill('SIGTERM');
  await once(child, 'close');
  expect(child.exitCode, said()).toBe(0);
  expect(said()).not.toMatch(/EACCES|EPERM|EROFS/);
  expect(filesOf(folder)).toEqual(before);
  await upstream.close();
});

/** The health check of the Dockerfile finds the proxy by its configuration. */
function expectHealthy(config: string): void {
  const health = (JSON.parse(/HEALTHCHECK[^[]*(\[.*\])/.exec(dockerfile)?.[1] ?? '[]') as string[]).slice(1);
  expect(health).toEqual(['dist/main.js', 'health']);
  execFileSync(process.execPath, [...health, '--config', config], { cwd: image, env: {} });
}

const dockerfile = readFileSync(path.join(root, 'Dockerfile'), 'utf8').replace(/\\\n/g, ' ');

inImage('the built image has its settings and runs unprivileged', () => {
  expect(built?.config).toMatchObject({
    User: 'node',
    Entrypoint: ['node', 'dist/main.js'],
    Cmd: ['serve', '--config', '/etc/shopward/shopward.yaml'],
    ExposedPorts: { '8080/tcp': {}, '8081/tcp': {} },
    Healthcheck: { Test: ['CMD', 'node', 'dist/main.js', 'health'] },
  });
  expect(built?.run('node', 'dist/main.js', '--version')).toMatch(/^shopward \d+\.\d+\.\d+/);
  expect(built?.run('node', '-p', 'process.getuid()').trim()).toBe('1000');
});

test('no package but node has an install script, so a build without scripts uses the same tools', () => {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { hasInstallScript?: true }>;
  };
  const scripted = Object.keys(packages).filter((name) => packages[name]?.hasInstallScript);
  // The script of node fetches the program, which the image has from its base.
  expect(scripted).toEqual(['node_modules/node']);
});

test('the last stage runs as node, has a health check and does not copy the whole folder', () => {
  const last = dockerfile.slice(dockerfile.lastIndexOf('FROM '));
  expect(last).toContain('USER node');
  expect(last).toMatch(/HEALTHCHECK[\s\S]*"health"/);
  expect(last).not.toMatch(/^COPY \. /m);
});
