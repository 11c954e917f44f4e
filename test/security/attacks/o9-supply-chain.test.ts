import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

interface Locked {
  readonly version: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
}
interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const root = path.join(import.meta.dirname, '../../..');
const read = <T>(file: string): T => JSON.parse(readFileSync(path.join(root, file), 'utf8')) as T;
const { packages } = read<{ packages: Readonly<Record<string, Locked>> }>('package-lock.json');
const { scripts, dependencies = {} } = read<Manifest>('package.json');
const running = Object.entries(packages).filter(([folder, { dev }]) => folder !== '' && dev !== true);

/** O9: each production dependency has a hash in the lock file, and no install script. */
describe('O9: production dependencies', () => {
  it('are in the lock file, at least as many as package.json names', () => {
    expect(running.length).toBeGreaterThanOrEqual(Object.keys(dependencies).length);
  });

  it.each(running)('%s has a SHA-512 in the lock file', (_folder, { resolved, integrity }) => {
    // Without an address npm uses the configured registry. Neither git nor http is allowed.
    if (resolved !== undefined) expect(resolved).toMatch(/^https:\/\/[^/]+\/.*\.tgz$/);
    expect(integrity).toMatch(/^sha512-/);
  });

  it.each(running)('%s has no install script', (folder, { hasInstallScript, version }) => {
    expect(hasInstallScript).toBe(undefined);
    const manifest = read<Manifest>(path.join(folder, 'package.json'));
    expect(manifest.version).toBe(version);
    const names = ['preinstall', 'install', 'postinstall', 'prepare'];
    expect(names.slice(0, 3).filter((name) => manifest.scripts?.[name] !== undefined)).toEqual([]);
    // npm runs node-gyp for a package with this file, even without a script.
    expect(existsSync(path.join(root, folder, 'binding.gyp'))).toBe(false);
  });

  it('are pinned to exact versions, and the package itself has no install script', () => {
    expect(Object.values(dependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
    expect(Object.keys(scripts ?? {}).filter((name) => /^(pre|post)?install$|^prepare$/.test(name))).toEqual(
      [],
    );
  });

  it('are listed in the bill of materials, whose text is the same each time', () => {
    const write = () =>
      execFileSync(process.execPath, [path.join(root, 'scripts/sbom.ts')], { encoding: 'utf8' });
    const text = write();
    const { bomFormat, components } = JSON.parse(text) as {
      bomFormat: string;
      components: { name: string; version: string; purl: string; hashes?: unknown[] }[];
    };
    expect(bomFormat).toBe('CycloneDX');
    const listed = components.map(({ name, version }) => `${name}@${version}`);
    const locked = running.map(
      ([folder, { version }]) => `${folder.replace(/^.*node_modules\//, '')}@${version}`,
    );
    expect(new Set(listed)).toEqual(new Set(locked));
    expect(components.filter(({ hashes, purl }) => !hashes?.length || !purl.startsWith('pkg:npm/'))).toEqual(
      [],
    );
    expect(write()).toBe(text);
  });
});

describe('O9: the image', () => {
  const dockerfile = readFileSync(path.join(root, 'Dockerfile'), 'utf8');

  it('is built by npm ci --ignore-scripts, and does not run as root', () => {
    const installs = dockerfile.split('\n').filter((line) => /\bnpm (ci|i|install)\b/.test(line));
    expect(installs.length).toBeGreaterThan(0);
    expect(installs.filter((line) => !line.includes('npm ci') || !line.includes('--ignore-scripts'))).toEqual(
      [],
    );
    expect(dockerfile.match(/^USER .*$/gm)?.at(-1)).toMatch(/^USER (?!root|0)/);
  });
});
