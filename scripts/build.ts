/**
 * Writes dist: what the package and the image run. Our own modules, some three hundred, become a few dozen files, for a
 * start spends more on finding and opening modules than on running them (docs/operations.md, Sizing); packages stay what
 * and where npm installs them, so that their audit, their licences and an override hold. What is not TypeScript is copied.
 */
import { chmodSync, cpSync, globSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { type Plugin, rolldown } from 'rolldown';
import { readArguments } from './arguments.ts';

readArguments({ name: 'npm run build', about: 'Writes dist: what the package and the image run.' });

const root = path.join(import.meta.dirname, '..');
const source = path.join(root, 'src');
/** Where modules go that are no file of their own any more. */
const chunks = 'chunks';

rmSync('dist', { recursive: true, force: true });
await bundle(['main.ts', ...findThreads()]);
for (const asset of globSync('src/**/*.{lua,html,css,svg,js}')) {
  cpSync(asset, path.join('dist', path.relative('src', asset)));
}
// The console's charts: served from the package itself, with their licence, and by nobody else.
for (const name of ['dist/uPlot.esm.js', 'dist/uPlot.min.css', 'LICENSE']) {
  const target = name === 'LICENSE' ? 'uPlot.LICENSE' : path.basename(name);
  cpSync(path.join('node_modules/uplot', name), path.join('dist/admin/console', target));
}
chmodSync('dist/main.js', 0o755);

/** Files that a thread or a process of its own starts with, as those who start them name them. */
function findThreads(): string[] {
  return globSync('src/**/*.ts').flatMap((file) => {
    const [, name] = /\? '\.\/([\w-]+)\.ts' : '\.\/\1\.js',\s+import\.meta\.url/.exec(read(file)) ?? [];
    return name === undefined ? [] : [path.relative('src', path.join(path.dirname(file), `${name}.ts`))];
  });
}

async function bundle(entries: readonly string[]): Promise<void> {
  const build = await rolldown({
    cwd: root,
    input: Object.fromEntries(entries.map((entry) => [entry.replace(/\.ts$/, ''), path.join(source, entry)])),
    platform: 'node',
    external: (id) => !id.startsWith('.') && !path.isAbsolute(id),
    plugins: [keepPlaces()],
  });
  await build.write({
    dir: 'dist',
    format: 'esm',
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: `${chunks}/[name].js`,
  });
  await build.close();
}

/** Whatever file a module ends up in, it finds what lay beside it as if it were still at its own place. */
function keepPlaces(): Plugin {
  return {
    name: 'keep-places',
    transform(code, id) {
      if (!code.includes('import.meta.url')) return undefined;
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
