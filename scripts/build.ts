/**
 * Writes dist: what the package and the image run. Some three hundred modules of ours and as many of packages become a few
 * files, for a start spends more on finding and opening modules than on running them (docs/deployment.md, Sizing). What
 * is in them of packages, and under which licences, is said in a file beside them. What is not TypeScript is copied.
 */
import { chmodSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type OutputOptions, type Plugin, rolldown } from 'rolldown';
import { readArguments } from './arguments.ts';

const { to } = readArguments<{ to: string }>({
  name: 'npm run build --',
  about: 'Writes dist: what the package and the image run.',
  options: [['--to <folder>', 'where', 'dist']],
});

const root = path.join(import.meta.dirname, '..');
const source = path.join(root, 'src');
/** Where modules go that are no file of their own any more. */
const chunks = 'chunks';
/** pino starts a thread from a file beside this one, where the log is pretty. */
const prettyLog = 'pino/lib/transport.js';
/**
 * Packages that stay where npm installs them: what starts threads from files of its own, and what is not loaded at a start.
 */
const installed = /^(?:pino\/lib\/transport\.js|pino-pretty|commander)(?:\/|$)/;
/** Each with all that it imports, for a start opens few files: what every verb needs, then what serves. */
const wholeChunks = [
  { name: 'configuration', test: /src\/cli\/load-settings\.ts$/, priority: 2 },
  { name: 'serving', test: /src\/(?:app|cli\/(?:file-validators|serve))\.ts$/, priority: 1 },
];

const emptied = path.resolve(to);
if (`${source}${path.sep}`.startsWith(`${emptied}${path.sep}`) || emptied.startsWith(source + path.sep))
  throw new Error(`${to} holds the sources, and would be emptied: name a folder for what is built alone`);
rmSync(to, { recursive: true, force: true });
/** A file of its own: this thread lives as long as its process, and would load all that serves, 15 MiB. */
const watch = 'cluster/event-loop-watch-thread.ts';
const others = findThreads().filter((name) => name !== watch);
const ids = await bundle(['main.ts', ...others], { groups: wholeChunks });
ids.push(...(await bundle([watch], false)));
writeFileSync(path.join(to, 'THIRD-PARTY-LICENSES.txt'), describePackages(ids));
for (const asset of globSync('src/**/*.{lua,html,css,svg,js,wasm,LICENSE}')) {
  cpSync(asset, path.join(to, path.relative('src', asset)));
}
// The console's charts: served from the package itself, with their licence, and by nobody else.
for (const name of ['dist/uPlot.esm.js', 'dist/uPlot.min.css', 'LICENSE']) {
  const target = name === 'LICENSE' ? 'uPlot.LICENSE' : path.basename(name);
  cpSync(path.join('node_modules/uplot', name), path.join(to, 'admin/console', target));
}
chmodSync(path.join(to, 'main.js'), 0o755);

/** Files that a thread or a process of its own starts with, as those who start them name them. */
function findThreads(): string[] {
  return globSync('src/**/*.ts').flatMap((file) => {
    const [, name] = /`\.\/([\w-]+)\$\{extname\(import\.meta\.url\)\}`/.exec(read(file)) ?? [];
    return name === undefined ? [] : [path.relative('src', path.join(path.dirname(file), `${name}.ts`))];
  });
}

/** Returns the modules that went in. */
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
      // What an SDK registers itself with is the operator's.
      (id.startsWith('@opentelemetry/') && importer?.startsWith(source) === true),
    plugins: [keepPlaces(), leaveOut()],
    // A worker imports at once what `serve` imports only for one process.
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

/** Name, version, licence and its text, of each package that these modules are from. */
function describePackages(moduleIds: readonly string[]): string {
  const folders = moduleIds.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id) ?? []);
  const sections = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(read(path.join(folder, 'package.json')));
    const files = globSync('{LICENSE,LICENCE,license,licence,NOTICE}{,.md,.txt}', { cwd: folder });
    if (files.length === 0) throw new Error(`${name} is bundled, and its licence is not to be found`);
    const texts = files.map((file) => read(path.join(folder, file)).trim());
    return `== ${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`;
  });
  return `Packages whose code is in these files, and their licences.\n\n${sections.join('\n')}`;
}

/** What packages load at once, and shopward never uses, or not at a start. */
function leaveOut(): Plugin {
  return {
    name: 'leave-out',
    load(id) {
      // prom-client asks it for the exemplars of its CPU metrics, which are off.
      if (id.includes('/node_modules/@opentelemetry/api/')) return 'module.exports = {};';
      if (!id.endsWith(`/node_modules/${prettyLog}`)) return undefined;
      return `module.exports = (...options) => require('${prettyLog}')(...options);`;
    },
  };
}

/** Whatever file a module ends up in, it finds what lay beside it as if it were still at its own place. */
function keepPlaces(): Plugin {
  return {
    name: 'keep-places',
    transform(code, id) {
      if (!code.includes('import.meta.url')) return undefined;
      if (!id.startsWith(source) && id.includes('/node_modules/'))
        throw new Error(`${id} looks for files beside itself: add its package to \`installed\``);
      const place = path.posix.relative(chunks, path.relative(source, id).replace(/\.ts$/, '.js'));
      // Lines stay where they are.
      return {
        code: code.replaceAll('import.meta.url', `new URL('${place}', import.meta.url).href`),
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
