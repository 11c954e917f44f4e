import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

/** What `npm pack` makes of a clone, installed into an empty folder, as a shop team would. */
const root = path.resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-package-'));
const shop = path.join(folder, 'shop');
let tarball = '';
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
  tarball = path.join(folder, path.basename(packed?.filename ?? ''));
  npm(shop, 'init', '-y');
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund'];
  npm(shop, 'install', ...quietly, tarball);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the command runs', () => {
  expect(shopward('version')).toContain('shopward ');
  expect(shopward('--help')).toContain('explain');
});

test('an older Node gets the version that is needed', () => {
  const asNode20 = `Object.defineProperty(process.versions, 'node', { value: '20.20.2' });
    import(${JSON.stringify(path.join(installed, 'dist/main.js'))})`;
  const { status, stderr } = spawnSync(process.execPath, ['-e', asNode20], { encoding: 'utf8' });
  expect(stderr).toMatch(/^shopward needs Node 24 or later; this is v[\d.]+\. .*npm install node@26.*\n$/);
  expect(status).toBe(78);
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

test('what a thread or a worker starts with is a file of its own, where those who start it look', () => {
  const named = globSync('src/**/*.ts', { cwd: root }).flatMap((file) =>
    [
      ...readFileSync(path.join(root, file), 'utf8').matchAll(/'\.\/([\w-]+)\.js',?\s+import\.meta\.url/g),
    ].map(([, name]) => path.join(path.dirname(path.relative('src', file)), `${name}.js`)),
  );
  expect(named).toHaveLength(5);
  for (const file of named) expect(existsSync(path.join(installed, 'dist', file)), file).toBe(true);
});

test('modules are bundled, packages and their licences are not', () => {
  const files = globSync('dist/**/*.js', { cwd: installed, exclude: ['dist/admin/console/**'] });
  expect(files.length).toBeLessThan(90);
  const sections = files.map((file) => readFileSync(path.join(installed, file), 'utf8')).join('\n');
  // The bundler names each module above its code.
  expect(sections).toMatch(/^\/\/ src\/app\.ts$/m);
  expect(sections).not.toMatch(/^\/\/ .*node_modules/m);
});

test('the charts of the console are in the package itself, with their licence, and nowhere else', () => {
  const page = path.join(installed, 'dist/admin/console');
  for (const file of ['uPlot.esm.js', 'uPlot.min.css', 'uPlot.LICENSE', 'index.html', 'main.js']) {
    expect(globSync(path.join(page, file)), file).toHaveLength(1);
  }
  expect(readFileSync(path.join(page, 'uPlot.LICENSE'), 'utf8')).toContain('Permission is hereby granted');
  expect(globSync(path.join(shop, 'node_modules/uplot'))).toEqual([]);
});

test('npx runs the packed file in a folder that has nothing', () => {
  const empty = path.join(folder, 'empty');
  mkdirSync(empty);
  const out = execFileSync(
    'npx',
    ['--yes', '--prefer-offline', `--package=${tarball}`, 'shopward', 'version'],
    {
      cwd: empty,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  expect(out).toContain('shopward ');
  expect(globSync('*', { cwd: empty })).toEqual([]);
});

/** Titles as they are linked to: lower case, without punctuation, spaces as hyphens; a second one of a name is numbered. */
function anchorsOf(file: string): Set<string> {
  const anchors = new Set<string>();
  const text = readFileSync(file, 'utf8').replace(/^(```|~~~)[\s\S]*?^\1/gm, '');
  for (const [, title = ''] of text.matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const plain = title.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = plain.replace(/[^\p{L}\p{N}\- _]/gu, '').replaceAll(' ', '-');
    let numbered = anchor;
    for (let count = 1; anchors.has(numbered); count += 1) numbered = `${anchor}-${count}`;
    anchors.add(numbered);
  }
  for (const [, id = ''] of text.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id);
  return anchors;
}

test('no link of its documents is dead, and each leads to a title that is there', () => {
  const dead: string[] = [];
  let links = 0;
  const pages = globSync('**/*.{md,yaml,yml}', { cwd: installed, exclude: ['node_modules/**'] });
  for (const file of pages) {
    const text = readFileSync(path.join(installed, file), 'utf8').replace(/^(```|~~~)[\s\S]*?^\1/gm, '');
    // [text](target "title"), ![image](target), <img src="target">, and [label]: target
    const found = [
      ...text.matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g),
      ...text.matchAll(/<(?:img|a|source)\b[^>]*\b(?:src|href|srcset)="([^"]+)"/g),
      ...text.matchAll(/^\[[^\]]+\]: +(\S+)/gm),
    ];
    for (const [, target = ''] of file.endsWith('.md') ? found : []) {
      if (/^[a-z][a-z0-9+.-]*:/i.test(target)) continue;
      links += 1;
      const [place = '', anchor] = target.split('#');
      const at = place === '' ? path.join(installed, file) : path.join(installed, path.dirname(file), place);
      if (!existsSync(at)) dead.push(`${file}: ${target}`);
      else if (anchor && at.endsWith('.md') && !anchorsOf(at).has(anchor)) dead.push(`${file}: ${target}`);
    }
  }
  expect(links).toBeGreaterThan(40);
  expect(dead).toEqual([]);
});
