/**
 * Writes the software bill of materials of the packages that run (CycloneDX JSON, production dependencies only), as npm
 * reads it from package-lock.json. It has neither serial number nor time, so that one lock file always gives the same
 * bytes. npm's `--omit dev` leaves out packages that run, so this script reads the `dev` flags of the lock file.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readArguments } from './arguments.ts';

interface Bom {
  serialNumber?: string;
  readonly metadata: { timestamp?: string; readonly component: Named };
  components: Named[];
  dependencies: { readonly ref: string; dependsOn: string[] }[];
}
interface Named {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
}
interface Lock {
  readonly packages: Readonly<Record<string, { readonly version: string; readonly dev?: boolean }>>;
}

const { words } = readArguments({
  name: 'npm run sbom --',
  about: 'Prints the software bill of materials of the packages that run, as CycloneDX JSON.',
  words: { name: '[file]', meaning: 'where it is written; default: standard output' },
});
const root = path.join(import.meta.dirname, '..');
const text = execFileSync('npm', ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'], {
  cwd: root,
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'ignore'],
  maxBuffer: 64 * 1024 * 1024,
});
const bom = JSON.parse(text) as Bom;
delete bom.serialNumber;
delete bom.metadata.timestamp;

const lock = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as Lock;
const running = new Set(
  Object.entries(lock.packages)
    .filter(([folder, { dev }]) => folder !== '' && dev !== true)
    .map(([folder, { version }]) => `${folder.replace(/^.*node_modules\//, '')}@${version}`),
);
bom.components = bom.components.filter(({ name, version }) => running.has(`${name}@${version}`));
const kept = new Set([bom.metadata.component, ...bom.components].map((one) => one['bom-ref']));
bom.dependencies = bom.dependencies
  .filter(({ ref }) => kept.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => kept.has(one)) }));

const [file] = words;
const output = `${JSON.stringify(bom, undefined, 2)}\n`;
if (file === undefined) process.stdout.write(output);
else writeFileSync(file, output);
