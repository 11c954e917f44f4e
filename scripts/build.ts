/** Writes dist: what the package and the image run. Compiles src and copies what is not TypeScript beside it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, globSync, rmSync } from 'node:fs';
import path from 'node:path';
import { readArguments } from './arguments.ts';

readArguments({ name: 'npm run build', about: 'Writes dist: what the package and the image run.' });

rmSync('dist', { recursive: true, force: true });
execFileSync('tsc', ['-p', 'tsconfig.build.json'], { stdio: 'inherit' });
for (const asset of globSync('src/**/*.{lua,html,css,svg,js}')) {
  cpSync(asset, path.join('dist', path.relative('src', asset)));
}
// The console's charts: served from the package itself, with their licence, and by nobody else.
for (const name of ['dist/uPlot.esm.js', 'dist/uPlot.min.css', 'LICENSE']) {
  const target = name === 'LICENSE' ? 'uPlot.LICENSE' : path.basename(name);
  cpSync(path.join('node_modules/uplot', name), path.join('dist/admin/console', target));
}
chmodSync('dist/main.js', 0o755);
