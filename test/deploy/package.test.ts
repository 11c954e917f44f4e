import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

/** What `npm pack` makes of a clone, installed into an empty folder, as a shop team would. */
const root = path.resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-package-'));
const shop = path.join(folder, 'shop');
const installed = path.join(shop, 'node_modules/shopward');

const npm = (cwd: string, ...args: string[]) =>
  execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const shopward = (...args: string[]) =>
  execFileSync(path.join(shop, 'node_modules/.bin/shopward'), args, {
    cwd: shop,
    encoding: 'utf8',
    env: { ...process.env, JWKS_URL: 'https://shop.example/jwks.json', UPSTREAM_URL: 'http://127.0.0.1:9' },
  });

beforeAll(() => {
  // The build writes dist, and other tests run from the clone at the same time.
  const clone = path.join(folder, 'clone');
  const tracked = execFileSync('git', ['ls-files', '-coz', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  for (const file of tracked.split('\0')) {
    if (/^(src|config|deploy|docs|scripts)\/|^[^/]+$/.test(file) && file !== '') {
      cpSync(path.join(root, file), path.join(clone, file));
    }
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(clone, 'node_modules'));
  mkdirSync(shop, { recursive: true });
  const [packed] = JSON.parse(npm(clone, 'pack', '--json', '--pack-destination', folder)) as {
    filename: string;
  }[];
  npm(shop, 'init', '-y');
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund'];
  npm(shop, 'install', ...quietly, path.join(folder, path.basename(packed?.filename ?? '')));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the command runs', () => {
  expect(shopward('version')).toContain('shopward ');
  expect(shopward('--help')).toContain('explain');
});

test('the shipped configuration and list pass the check', () => {
  const config = path.join(installed, 'config/shopward.yaml');
  expect(shopward('check', '--config', config)).toContain('checked ');
  expect(shopward('explain', '--config', config, 'GET', '/carts')).toContain('/carts');
});

test('licence, documents, schemas and manifests are there, and no tests', () => {
  for (const file of [
    'LICENSE',
    'README.md',
    'docs/configuration.md',
    'config/shopward.schema.json',
    'deploy',
  ]) {
    expect(globSync(path.join(installed, file)), file).toHaveLength(1);
  }
  expect(globSync(path.join(installed, '{test,src,demo,bench}'))).toEqual([]);
});

test('no link of its documents is dead', () => {
  const dead: string[] = [];
  for (const file of globSync('**/*.md', { cwd: installed, exclude: ['node_modules/**'] })) {
    const text = readFileSync(path.join(installed, file), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const at = path.join(installed, path.dirname(file), target);
      if (globSync(at).length === 0) dead.push(`${file}: ${target}`);
    }
  }
  expect(dead).toEqual([]);
});
