import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findMain } from '../../harness/built-shopward.ts';
import { makeClone } from './clone.ts';

/**
 * Packs a clone with `npm pack` and installs the package into an empty folder, as a shop team does. The package contains the
 * build that the other tests run; release.test.ts tests that packing builds first.
 */
const root = path.resolve(import.meta.dirname, '../../..');
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
  const clone = path.join(folder, 'clone');
  makeClone(root, clone);
  const dist = path.dirname(findMain());
  const isBuilt = path.basename(dist) === 'dist';
  if (isBuilt) cpSync(dist, path.join(clone, 'dist'), { recursive: true });
  mkdirSync(shop, { recursive: true });
  const pack = ['pack', '--json', '--pack-destination', folder, ...(isBuilt ? ['--ignore-scripts'] : [])];
  const [packed] = JSON.parse(npm(clone, ...pack)) as { filename: string }[];
  tarball = path.join(folder, path.basename(packed?.filename ?? ''));
  writeFileSync(path.join(shop, 'package.json'), '{ "name": "shop", "private": true }');
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund'];
  npm(shop, 'install', ...quietly, tarball);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the command runs', () => {
  expect(shopward('--version')).toContain('shopward ');
  expect(shopward('--help')).toContain('explain');
});

test('on an older Node the command prints the version that it needs', () => {
  const asNode20 = `Object.defineProperty(process.versions, 'node', { value: '20.20.2' });
    import(${JSON.stringify(path.join(installed, 'dist/main.js'))})`;
  const { status, stderr } = spawnSync(process.execPath, ['-e', asNode20], { encoding: 'utf8' });
  expect(stderr).toMatch(/^shopward needs Node 24 or later; this is v[\d.]+\. .*npm install node@26.*\n$/);
  expect(status).toBe(78);
});

test('the shipped configuration and list pass the check', () => {
  const config = path.join(installed, 'config/shopward.yaml');
  expect(shopward('check', '--offline', '--config', config)).toContain('checked ');
  expect(shopward('explain', '--config', config, 'GET', '/carts')).toContain('/carts');
});

test('check names the packages that telemetry.otlp needs and an installation lacks', () => {
  const config = path.join(shop, 'otlp.yaml');
  writeFileSync(
    config,
    `protectedResources: ${installed}/config/protected-resources.yaml
auth: { keys: { jwks: 'https://shop.example/jwks.json' } }
telemetry: { otlp: { endpoint: 'http://127.0.0.1:4318' } }
`,
  );
  const command = path.join(shop, 'node_modules/.bin/shopward');
  const { status, stdout } = spawnSync(command, ['check', '--offline', '--config', config], {
    encoding: 'utf8',
  });
  expect(stdout).toContain(
    'otlp.yaml:3:20: error: telemetry.otlp needs packages that are not installed beside shopward: npm install @opentelemetry/',
  );
  expect(status).toBe(1);
});

test('the package has licence, documents, schemas and manifests, and no tests', () => {
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

test('the entry file of each thread and worker is where its caller looks for it', () => {
  const named = globSync('src/**/*.ts', { cwd: root }).flatMap((file) =>
    [
      ...readFileSync(path.join(root, file), 'utf8').matchAll(
        /`\.\/([\w-]+)\$\{extname\(import\.meta\.url\)\}`/g,
      ),
    ].map(([, name]) => path.join(path.dirname(path.relative('src', file)), `${name}.js`)),
  );
  expect(named).toHaveLength(4);
  for (const file of named) expect(existsSync(path.join(installed, 'dist', file)), file).toBe(true);
});

/** The bundle; a comment with its file name is above the code of each module. */
const bundledCode = () => {
  const files = globSync('dist/**/*.js', { cwd: installed, exclude: ['dist/admin/console/**'] });
  expect(files.length).toBeLessThan(90);
  return files.map((file) => readFileSync(path.join(installed, file), 'utf8')).join('\n');
};

test('the licence file names each bundled package with its locked version and its licence', () => {
  const sections = bundledCode();
  expect(sections).toMatch(/^\/\/ src\/app\.ts$/m);
  const folders = [...sections.matchAll(/^\/\/ .*node_modules\/((?:@[^/]+\/)?[^/]+)\//gm)].map(
    ([, name]) => name,
  );
  const licences = readFileSync(path.join(installed, 'dist/THIRD-PARTY-LICENSES.txt'), 'utf8');
  const named = [...licences.matchAll(/^== (\S+) (\S+) \(([^)]+)\)$/gm)];
  const names = named.map(([, name]) => name);
  // The bundler writes no comment for a package of one module that it inlines.
  expect(names).toEqual([...new Set([...folders, '@fastify/proxy-addr'])].sort());
  const lock = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; dev?: true }>;
  };
  for (const [, name, version] of named) {
    // Not a dev dependency, so the audit and the bill of materials cover it.
    expect(lock.packages[`node_modules/${name}`], name).toMatchObject({ version });
    expect(lock.packages[`node_modules/${name}`]?.dev, name).toBeUndefined();
  }
  expect(
    licences.match(/Permission (?:is hereby granted|to use)|Apache License|Blue Oak/g)?.length,
  ).toBeGreaterThanOrEqual(named.length);
});

test('packages that find files beside themselves, or that an operator installs, are not bundled', () => {
  const folders = bundledCode().match(
    /^\/\/.*node_modules\/(?:pino-pretty|thread-stream|undici|commander)\//gm,
  );
  expect(folders).toBeNull();
  // prom-client needs this API for exemplars only, which are off. The operator installs it with an SDK.
  expect(bundledCode()).not.toMatch(/\bProxyTracerProvider\b/);
  expect(bundledCode()).toContain('import("@opentelemetry/api")');
});

/** Starts the installed proxy, stops it with SIGTERM once it serves and `use` is done, and returns its output. */
async function startAndStop(
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
  use: (adminUrl: string) => Promise<void> = async () => {},
) {
  const config = path.join(shop, 'shopward.yaml');
  const list = path.join(installed, 'config/protected-resources.yaml');
  writeFileSync(
    config,
    `{ listen: { host: 127.0.0.1, port: 0, drainDelay: 0s }, admin: { port: 0 }, upstream: { url: 'http://127.0.0.1:9' },
       protectedResources: '${list}', auth: { keys: { jwks: 'http://127.0.0.1:9/' } } }`,
  );
  const main = path.join(installed, 'dist/main.js');
  const child = spawn(process.execPath, [...args, main, 'serve', '--config', config], {
    env: { PATH: process.env.PATH, ...env },
  });
  const printed = { stdout: '', stderr: '' };
  let used: Promise<void> | undefined;
  child.stdout.on('data', (text) => {
    printed.stdout += text;
  });
  child.stderr.on('data', (text) => {
    printed.stderr += text;
    const [, adminUrl] = /is listening on .*, admin on (\S+)\n/.exec(printed.stderr) ?? [];
    if (adminUrl !== undefined) used ??= use(adminUrl).finally(() => child.kill());
  });
  const [code] = await once(child, 'close');
  await used;
  expect({ ...printed, code }).toMatchObject({ code: 0 });
  return printed;
}

test('a start opens a few files, not one for each module', async () => {
  const hooks = `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { process.stderr.write(url + '\\n'); return next(url, context); } });`;
  const preload = `data:text/javascript,${encodeURIComponent(hooks)}`;
  const { stderr } = await startAndStop(['--import', preload]);
  const files = stderr.split('\n').filter((line) => line.startsWith('file:'));
  expect(files.length).toBeGreaterThan(3);
  expect(files.length).toBeLessThan(12);
});

test('the thread that watches the event loop loads nothing of the code that serves', () => {
  const thread = readFileSync(path.join(installed, 'dist/cluster/event-loop-watch-thread.js'), 'utf8');
  const imports = [...thread.matchAll(/^import .* from "(.*)";$/gm)].map(([, from]) => from);
  expect(imports).toContain('node:inspector');
  expect(imports.filter((from) => !from?.startsWith('node:'))).toEqual([]);
});

test('404 for a page of docs/ that was removed after the start', async () => {
  const page = path.join(installed, 'docs/removed.md');
  writeFileSync(page, '# Removed');
  const statuses: number[] = [];
  await startAndStop([], {}, async (adminUrl) => {
    rmSync(page);
    for (const name of ['removed', 'operations'])
      statuses.push((await fetch(new URL(`docs/${name}.md`, adminUrl))).status);
  });
  expect(statuses).toEqual([404, 200]);
});

test('SHOPWARD_LOG=pretty prints a pretty log from the installed package', async () => {
  const { stdout } = await startAndStop([], { SHOPWARD_LOG: 'pretty' });
  expect(stdout).toMatch(/^\[\d\d:\d\d:\d\d\] .*INFO.*: .*draining/m);
});

test('a start keeps compiled code for the next one, in a folder with mode 0700', async () => {
  const kept = path.join(installed, 'dist/compiled');
  const entries = () => globSync('*/*', { cwd: kept }).toSorted();
  rmSync(kept, { recursive: true, force: true });
  await startAndStop();
  expect(statSync(kept).mode & 0o777).toBe(0o700);
  const first = entries();
  expect(first.length).toBeGreaterThan(3);
  // The second start reads the entry and does not write it, so its old time stays.
  const old = path.join(kept, first[0] ?? '');
  utimesSync(old, 1000, 1000);
  await startAndStop();
  expect({ entries: entries(), writtenAtMs: statSync(old).mtimeMs }).toEqual({
    entries: first,
    writtenAtMs: 1_000_000,
  });
});

test('a start keeps nothing in a folder open to others, behind a link, or with NODE_COMPILE_CACHE or NODE_DISABLE_COMPILE_CACHE', async () => {
  const kept = path.join(installed, 'dist/compiled');
  const other = path.join(folder, 'of-another');
  const begin = (make: () => void) => {
    rmSync(kept, { recursive: true, force: true });
    make();
  };
  mkdirSync(other);
  for (const mode of [0o770, 0o755]) {
    begin(() => mkdirSync(kept));
    chmodSync(kept, mode);
    await startAndStop();
    expect(globSync('*', { cwd: kept })).toEqual([]);
  }
  // A user who can write the program's folder can replace the kept code.
  const program = path.dirname(kept);
  begin(() => chmodSync(program, 0o775));
  await startAndStop();
  chmodSync(program, 0o755);
  if (process.geteuid?.() === 0) {
    chownSync(program, 1, 1);
    await startAndStop();
    chownSync(program, 0, 0);
  }
  expect(existsSync(kept)).toBe(false);
  begin(() => symlinkSync(other, kept));
  await startAndStop();
  expect(globSync('*', { cwd: other })).toEqual([]);
  begin(() => {});
  await startAndStop([], { NODE_DISABLE_COMPILE_CACHE: '1' });
  await startAndStop([], { NODE_COMPILE_CACHE: other });
  expect(existsSync(kept)).toBe(false);
  expect(globSync('*', { cwd: other })).toHaveLength(1);
});

test('the chart library of the console is part of the package, with its licence, and not installed separately', () => {
  const page = path.join(installed, 'dist/admin/console');
  for (const file of ['uPlot.esm.js', 'uPlot.min.css', 'uPlot.LICENSE', 'index.html', 'main.js']) {
    expect(globSync(path.join(page, file)), file).toHaveLength(1);
  }
  expect(readFileSync(path.join(page, 'uPlot.LICENSE'), 'utf8')).toContain('Permission is hereby granted');
  expect(globSync(path.join(shop, 'node_modules/uplot'))).toEqual([]);
});

test('npx runs the packed file in an empty folder', () => {
  const empty = path.join(folder, 'empty');
  mkdirSync(empty);
  const out = execFileSync(
    'npx',
    ['--yes', '--prefer-offline', `--package=${tarball}`, 'shopward', '--version'],
    { cwd: empty, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
  );
  expect(out).toContain('shopward ');
  expect(globSync('*', { cwd: empty })).toEqual([]);
});

/** Anchors of the titles: lower case, without punctuation, spaces as hyphens, repeated ones numbered. */
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

test('every link of the documents leads to an existing file and title', () => {
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
      const [location = '', anchor] = target.split('#');
      const at =
        location === '' ? path.join(installed, file) : path.join(installed, path.dirname(file), location);
      if (!existsSync(at)) dead.push(`${file}: ${target}`);
      else if (anchor && at.endsWith('.md') && !anchorsOf(at).has(anchor)) dead.push(`${file}: ${target}`);
    }
  }
  expect(links).toBeGreaterThan(40);
  expect(dead).toEqual([]);
});
