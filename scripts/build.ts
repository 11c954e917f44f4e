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
chmodSync('dist/main.js', 0o755);
