import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, globSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { findProgram, searchPath } from '../../harness/programs.ts';

export interface BuiltImage {
  /** Folder where the files of the image are mounted. */
  readonly root: string;
  /** Configuration of the image (User, Entrypoint, Healthcheck, ...). */
  readonly config: unknown;
  /** Runs a command in a container of the image, as the user of the image. */
  run(...command: string[]): string;
  remove(): void;
}

/** Path of buildah; undefined without it, without root, or if `unshare -n` fails. */
export function findBuildah(): string | undefined {
  const canIsolate = process.getuid?.() === 0 && spawnSync('unshare', ['-n', 'true']).status === 0;
  if (!canIsolate) process.stderr.write('test: no image is built, which needs root and `unshare -n`\n');
  return canIsolate ? findProgram('buildah') : undefined;
}

/**
 * Builds the Dockerfile unchanged, on a base with this machine's node, npm, sh and build tools, with npm's cache instead
 * of the registry, in a network namespace without an interface.
 */
export function buildImage(buildah: string, root: string): BuiltImage {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-buildah-'));
  const isMounted = keepInMemory(folder);
  const remove = () => {
    if (isMounted) execFileSync('umount', ['--lazy', folder]);
    rmSync(folder, { recursive: true, force: true });
  };
  const storage = [
    '--storage-driver',
    'vfs',
    '--root',
    path.join(folder, 'store'),
    '--runroot',
    path.join(folder, 'run'),
  ];
  const say = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('unshare', ['-n', buildah, ...storage, ...args], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`buildah ${args[0]}: ${stdout.slice(-2000)}${stderr.slice(-2000)}`);
    return stdout.trim();
  };
  try {
    return build(say, folder, root, remove);
  } catch (fault) {
    remove();
    throw fault;
  }
}

function build(
  say: (...args: string[]) => string,
  folder: string,
  root: string,
  remove: () => void,
): BuiltImage {
  const options = ['build', '--isolation', 'chroot', '--format', 'docker'];
  const cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim();
  const programs = lendPrograms();
  makeBase(path.join(folder, 'base'));
  writeFileSync(path.join(folder, 'Base'), 'FROM scratch\nCOPY base /\nENV PATH=/usr/bin:/bin\n');
  say(...options, '-t', 'base', '-f', path.join(folder, 'Base'), folder);
  const packages = path.join(root, 'node_modules');
  const mounts = [...programs, '-v', `${cache}:/npm-cache`, '-v', `${packages}:${lentPackages}:ro`];
  say(...options, ...mounts, '--build-arg', 'NODE_IMAGE=localhost/base', '-t', 'shopward', root);
  const container = say('from', 'localhost/shopward');
  // buildah looks up a bare program name before the volumes are mounted, but accepts an absolute path.
  const run = [
    'run',
    '--isolation',
    'chroot',
    ...programs,
    container,
    '--',
    '/bin/sh',
    '-c',
    'exec "$@"',
    'sh',
  ];
  return {
    root: say('mount', container),
    config: JSON.parse(say('inspect', '--type', 'image', 'localhost/shopward')).Docker.config,
    run: (...command) => say(...run, ...command),
    remove() {
      say('umount', container);
      remove();
    },
  };
}

/** Free memory that is required: four times the most that a build needs. */
const enoughBytes = 2 * 1024 ** 3;

/**
 * Keeps the files of a build in memory if enough is free: npm unpacks 13,000 files, which takes twice as long on a disk
 * that has just deleted as many.
 */
function keepInMemory(folder: string): boolean {
  if (os.freemem() < enoughBytes) return false;
  return spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', folder]).status === 0;
}

/** The bundler's own binding, a library that npm has installed for this machine. */
const bindings = globSync(path.join(import.meta.dirname, '../../../node_modules/@rolldown/binding-*/*.node'));

/**
 * Options that mount the programs that the Dockerfile calls, and the libraries that they and the bundler are linked to.
 * If they were in the base image, each stage of the build would copy their 170 MB.
 */
function lendPrograms(): string[] {
  const programs = {
    '/usr/bin/node': realpathSync(process.execPath),
    '/bin/sh': realpathSync('/bin/sh'),
    '/usr/bin/env': '/usr/bin/env',
  };
  const lent = new Map(Object.entries(programs));
  for (const file of [...Object.values(programs), ...bindings]) {
    const linked = spawnSync('ldd', [file], { encoding: 'utf8' }).stdout.match(/\/\S+/g) ?? [];
    for (const library of linked) lent.set(library, library);
  }
  // `npm` is a link to npm-cli.js, whose folder contains all that it needs.
  lent.set('/usr/lib/npm', path.dirname(path.dirname(realpathSync(searchPath('npm') ?? ''))));
  return [...lent].flatMap(([at, location]) => ['-v', `${location}:${at}:ro`]);
}

/** Mount point of the node_modules of this repository. */
const lentPackages = '/lent/node_modules';

/**
 * npm installs the packages of the final image as the Dockerfile says. `npm ci` for the build stage links to the packages of
 * this repository instead, so that no layer contains half a gigabyte of tools.
 */
const npmOrLink = `#!/bin/sh
case " $* " in
  *" --omit=dev "*) ;;
  " ci "*) exec node -e 'require("node:fs").symlinkSync("${lentPackages}", "node_modules")' ;;
esac
exec node /usr/lib/npm/bin/npm-cli.js "$@"
`;

/** Makes the folders and files that the base image needs besides programs. */
function makeBase(base: string): void {
  for (const name of ['etc', 'root', 'dev', 'proc', 'sys', 'tmp', 'usr/bin'])
    mkdirSync(path.join(base, name), { recursive: true });
  const npm = path.join(base, 'usr/bin/npm');
  writeFileSync(npm, npmOrLink);
  chmodSync(npm, 0o755);
  writeFileSync(
    path.join(base, 'etc/passwd'),
    'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n',
  );
  writeFileSync(path.join(base, 'etc/group'), 'root:x:0:\nnode:x:1000:\n');
  writeFileSync(path.join(base, 'root/.npmrc'), 'offline=true\ncache=/npm-cache\n');
}
