import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { findProgram, searchPath } from '../harness/programs.ts';

export interface BuiltImage {
  /** Where its files can be looked at. */
  readonly root: string;
  /** What it says of how it is run (User, Entrypoint, Healthcheck, ...). */
  readonly config: unknown;
  /** Runs a command in a container of it, as its user. */
  run(...command: string[]): string;
  remove(): void;
}

/** buildah, if it can build here at all: it needs root, and namespaces of its own to be without a network in. */
export function findBuildah(): string | undefined {
  const canIsolate = process.getuid?.() === 0 && spawnSync('unshare', ['-n', 'true']).status === 0;
  if (!canIsolate) process.stderr.write('test: no image is built, which needs root and `unshare -n`\n');
  return canIsolate ? findProgram('buildah') : undefined;
}

/**
 * Builds the Dockerfile as it stands, from a base of this machine's own node, npm and sh, with npm's cache in the place of
 * the registry, and in a network namespace that has no interface.
 */
export function buildImage(buildah: string, root: string): BuiltImage {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-buildah-'));
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
  const build = ['build', '--isolation', 'chroot', '--format', 'docker'];
  const cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim();
  makeBase(path.join(folder, 'base'));
  writeFileSync(path.join(folder, 'Base'), 'FROM scratch\nCOPY base /\nENV PATH=/usr/bin:/bin\n');
  say(...build, '-t', 'base', '-f', path.join(folder, 'Base'), folder);
  say(
    ...build,
    '-v',
    `${cache}:/npm-cache`,
    '--build-arg',
    'NODE_IMAGE=localhost/base',
    '-t',
    'shopward',
    root,
  );
  const container = say('from', 'localhost/shopward');
  return {
    root: say('mount', container),
    config: JSON.parse(say('inspect', '--type', 'image', 'localhost/shopward')).Docker.config,
    run: (...command) => say('run', '--isolation', 'chroot', container, '--', ...command),
    remove() {
      say('umount', container);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The bundler's own binding, a library that npm has installed for this machine. */
const bindings = globSync(path.join(import.meta.dirname, '../../node_modules/@rolldown/binding-*/*.node'));

/** The programs that the Dockerfile's lines call, with the libraries that they and the bundler are linked to. */
function makeBase(base: string): void {
  const place = (from: string, to: string) =>
    cpSync(from, path.join(base, to), { recursive: true, dereference: true });
  const programs = {
    '/usr/bin/node': realpathSync(process.execPath),
    '/bin/sh': realpathSync('/bin/sh'),
    '/usr/bin/env': '/usr/bin/env',
  };
  for (const [to, from] of Object.entries(programs)) place(from, to);
  for (const from of [...Object.values(programs), ...bindings]) {
    const linked = spawnSync('ldd', [from], { encoding: 'utf8' }).stdout.match(/\/\S+/g) ?? [];
    for (const library of linked) if (!existsSync(path.join(base, library))) place(library, library);
  }
  // npm is a link to its npm-cli.js, in a folder that has all it needs.
  place(path.dirname(path.dirname(realpathSync(searchPath('npm') ?? ''))), '/usr/lib/npm');
  const npm = path.join(base, 'usr/bin/npm');
  writeFileSync(npm, '#!/bin/sh\nexec node /usr/lib/npm/bin/npm-cli.js "$@"\n');
  chmodSync(npm, 0o755);
  for (const name of ['etc', 'root', 'dev', 'proc', 'sys', 'tmp'])
    mkdirSync(path.join(base, name), { recursive: true });
  writeFileSync(
    path.join(base, 'etc/passwd'),
    'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n',
  );
  writeFileSync(path.join(base, 'etc/group'), 'root:x:0:\nnode:x:1000:\n');
  writeFileSync(path.join(base, 'root/.npmrc'), 'offline=true\ncache=/npm-cache\n');
}
