/**
 * Two steps of a release (.github/workflows/release.yml), which run on any machine. `check TAG` exits 1 unless the tag, the
 * package, its lock file, the chart and the changelog have the same version. `pack FOLDER` writes the package, its bill of
 * materials and the changelog's section into the folder.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readArguments } from './arguments.ts';

const root = path.join(import.meta.dirname, '..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
const { version } = JSON.parse(read('package.json')) as { version: string };

/** The changelog's section for this version; empty if there is no such section. */
function notes(): string {
  const sections = read('CHANGELOG.md').split(/^## /m);
  const section = sections.find((text) => /^\S+/.exec(text)?.[0].replace(/[[\]]/g, '') === version);
  return section?.slice(section.indexOf('\n')).trim() ?? '';
}

function check(tag: string): void {
  const chart = read('deploy/helm/shopward/Chart.yaml');
  const lock = JSON.parse(read('package-lock.json')) as { version: string };
  const found: Readonly<Record<string, string | undefined>> = {
    'the tag': tag.replace(/^v/, ''),
    'package-lock.json': lock.version,
    "the chart's version": /^version: (\S+)$/m.exec(chart)?.[1],
    "the chart's appVersion": /^appVersion: (\S+)$/m.exec(chart)?.[1],
    'CHANGELOG.md': notes() === '' ? 'no section for it' : version,
  };
  for (const [where, what] of Object.entries(found)) {
    if (what === version) continue;
    process.stderr.write(`package.json has version ${version}, ${where} has ${what}\n`);
    process.exitCode = 1;
  }
}

function pack(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const npm = (...args: string[]) => execFileSync('npm', args, { cwd: root, encoding: 'utf8' });
  const [packed] = JSON.parse(npm('pack', '--json', '--pack-destination', path.resolve(folder))) as {
    filename: string;
  }[];
  // The chart's archive would have the same name, so leave out the version.
  renameSync(
    path.join(folder, path.basename(packed?.filename ?? '')),
    path.join(folder, 'shopward-package.tgz'),
  );
  npm('run', '--silent', 'sbom', '--', path.resolve(folder, 'sbom.cdx.json'));
  writeFileSync(path.join(folder, 'notes.md'), `${notes()}\n`);
}

const { words } = readArguments({
  name: 'node scripts/release.ts',
  about:
    'check TAG: all files have one version. pack FOLDER: writes the package, its bill of materials and the notes.',
  words: { name: '<step...>', meaning: 'check TAG or pack FOLDER' },
});
const [step, argument = ''] = words;
if (step === 'check') check(argument);
else if (step === 'pack') pack(argument);
else {
  process.stderr.write(`error: unknown step '${step}'; known: check, pack\n`);
  process.exitCode = 2;
}
