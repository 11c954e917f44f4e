import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * A program to run beside a test: `variable` of the environment, else the PATH, else installed from Debian's packages
 * when we are root. Undefined where it cannot be had; that is said in one line.
 */
export function findProgram(name: string, debianPackage: string, variable: string): string | undefined {
  const given = process.env[variable];
  if (given !== undefined && given !== '') return given;
  const find = () => searchPath(name);
  return find() ?? install(find, name, [debianPackage], `set ${variable}`);
}

/** A file of a library beside a test, installed like a program; `variable` of the environment says where else it is. */
export function findLibrary(
  file: string,
  debianPackages: readonly string[],
  variable: string,
): string | undefined {
  const given = process.env[variable];
  if (given !== undefined && given !== '') return given;
  const find = () => (existsSync(file) ? file : undefined);
  return find() ?? install(find, file, debianPackages, `set ${variable}`);
}

export function searchPath(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin', '/usr/sbin'];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function install(
  find: () => string | undefined,
  name: string,
  debianPackages: readonly string[],
  otherwise: string,
): string | undefined {
  const packages = debianPackages.join(' ');
  const say = (text: string) => process.stderr.write(`test: ${text}\n`);
  if (process.getuid?.() === 0 && isExecutable('/usr/bin/apt-get')) {
    say(`no ${name} found, installing ${packages} from Debian's packages (apt-get)`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
    try {
      for (const command of [['update'], ['install', '-y', '--no-install-recommends', ...debianPackages]]) {
        execFileSync('apt-get', ['-q', ...command], { env, stdio: ['ignore', 'ignore', 'inherit'] });
      }
    } catch {
      // Said below.
    }
  }
  const installed = find();
  if (installed === undefined) say(`no ${name}, its part is left out: install ${packages} or ${otherwise}`);
  return installed;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
