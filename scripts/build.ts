/**
 * Writes dist, which the package and the image run. Bundles the modules of src and hundreds of modules of packages into a
 * few files, because a start spends more time on finding and opening modules than on running them (docs/deployment.md,
 * Sizing). THIRD-PARTY-LICENSES.txt names the bundled packages with their licences. Files other than TypeScript are copied.
 */
import { chmodSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type OutputOptions, type Plugin, rolldown } from 'rolldown';
import { readArguments } from './arguments.ts';

const { to } = readArguments<{ to: string }>({
  name: 'npm run build --',
  about: 'Writes dist: what the package and the image run.',
  options: [['--to <folder>', 'where it is written', 'dist']],
});

const root = path.join(import.meta.dirname, '..');
const source = path.join(root, 'src');
/** Folder for bundled modules that have no file of their own. */
const chunks = 'chunks';
/** For readable logs pino starts a thread from this file. */
const prettyLog = 'pino/lib/transport.js';
/** Packages that stay where npm installs them: they start threads from their own files, or are not loaded at a start. */
const installed = /^(?:pino\/lib\/transport\.js|pino-pretty|commander)(?:\/|$)/;
/**
 * Two chunks with all their imports, since a start should open few files: what every verb needs, and what `serve` needs.
 */
const wholeChunks = [
  { name: 'configuration', test: /src\/cli\/load-settings\.ts$/, priority: 2 },
  { name: 'serving', test: /src\/(?:app|cli\/(?:file-validators|serve))\.ts$/, priority: 1 },
];

const emptied = path.resolve(to);
if (`${source}${path.sep}`.startsWith(`${emptied}${path.sep}`) || emptied.startsWith(source + path.sep))
  throw new Error(`${to} contains the sources, and would be emptied: name a folder for the build only`);
rmSync(to, { recursive: true, force: true });
/** A bundle of its own: the thread lives as long as its process, and would otherwise load the code of `serve`, 15 MiB. */
const watch = 'cluster/event-loop-watch-thread.ts';
const others = findThreads().filter((name) => name !== watch);
const ids = await bundle(['main.ts', ...others], { groups: wholeChunks });
ids.push(...(await bundle([watch], false)));
writeFileSync(path.join(to, 'THIRD-PARTY-LICENSES.txt'), describePackages(ids));
for (const asset of globSync('src/**/*.{lua,html,css,svg,js,wasm,LICENSE}')) {
  cpSync(asset, path.join(to, path.relative('src', asset)));
}
// The console's charts are served from the package uPlot, with its licence.
for (const name of ['dist/uPlot.esm.js', 'dist/uPlot.min.css', 'LICENSE']) {
  const target = name === 'LICENSE' ? 'uPlot.LICENSE' : path.basename(name);
  cpSync(path.join('node_modules/uplot', name), path.join(to, 'admin/console', target));
}
chmodSync(path.join(to, 'main.js'), 0o755);

/** Entry files of threads and child processes, found where the sources name them. */
function findThreads(): string[] {
  return globSync('src/**/*.ts').flatMap((file) => {
    const [, name] = /`\.\/([\w-]+)\$\{extname\(import\.meta\.url\)\}`/.exec(read(file)) ?? [];
    return name === undefined ? [] : [path.relative('src', path.join(path.dirname(file), `${name}.ts`))];
  });
}

/** Bundles the entries. Returns the ids of the bundled modules. */
async function bundle(
  entries: readonly string[],
  codeSplitting: NonNullable<OutputOptions['codeSplitting']>,
): Promise<string[]> {
  const build = await rolldown({
    cwd: root,
    input: Object.fromEntries(entries.map((entry) => [entry.replace(/\.ts$/, ''), path.join(source, entry)])),
    platform: 'node',
    external: (id, importer) =>
      id.startsWith('node:') ||
      installed.test(id) ||
      // The operator installs these packages, because an SDK registers itself in them.
      (id.startsWith('@opentelemetry/') && importer?.startsWith(source) === true),
    plugins: [keepUrls(), leaveOut()],
    // A worker imports statically what `serve` imports only for a single process.
    checks: { ineffectiveDynamicImport: false },
  });
  const { output } = await build.write({
    dir: to,
    format: 'esm',
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: `${chunks}/[name].js`,
    codeSplitting,
  });
  await build.close();
  return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
}

/** Name, version and licence text of each package that these modules belong to. */
function describePackages(moduleIds: readonly string[]): string {
  const folders = moduleIds.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id) ?? []);
  const sections = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(read(path.join(folder, 'package.json')));
    const files = globSync('{LICENSE,LICENCE,license,licence,NOTICE}{,.md,.txt}', { cwd: folder });
    if (files.length === 0) throw new Error(`${name} is bundled, but its licence file is missing`);
    const texts = files.map((file) => read(path.join(folder, file)).trim());
    return `== ${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`;
  });
  return `Packages whose code is in these files, and their licences.\n\n${sections.join('\n')}`;
}

/** Replaces modules that packages load at once and shopward does not need at a start. */
function leaveOut(): Plugin {
  return {
    name: 'leave-out',
    load(id) {
      // prom-client loads it for the exemplars of its CPU metrics, which are off.
      if (id.includes('/node_modules/@opentelemetry/api/')) return 'module.exports = {};';
      if (!id.endsWith(`/node_modules/${prettyLog}`)) return undefined;
      return `module.exports = (...options) => require('${prettyLog}')(...options);`;
    },
  };
}

/** A bundled module finds files beside its source, wherever the bundle puts it. */
function keepUrls(): Plugin {
  return {
    name: 'keep-urls',
    transform(code, id) {
      if (!code.includes('import.meta.url')) return undefined;
      if (!id.startsWith(source) && id.includes('/node_modules/'))
        throw new Error(`${id} looks for files beside itself: add its package to \`installed\``);
      const location = path.posix.relative(chunks, path.relative(source, id).replace(/\.ts$/, '.js'));
      // The replacement keeps line numbers.
      return {
        code: code.replaceAll('import.meta.url', `new URL('${location}', import.meta.url).href`),
        map: null,
      };
    },
    generateBundle(_options, files) {
      for (const file of Object.values(files)) {
        if (file.type !== 'chunk') continue;
        const isMoved = file.fileName.startsWith(`${chunks}/`);
        const other = isMoved ? /\bimport\.meta\.(?!url\b|resolve\b)/ : /\bimport\.meta\./;
        const lost = file.moduleIds.find((id) => id.startsWith(source) && other.test(read(id)));
        if (lost !== undefined) throw new Error(`${lost} would look for files beside ${file.fileName}`);
      }
    },
  };
}

function read(file: string): string {
  return readFileSync(file, 'utf8');
}
