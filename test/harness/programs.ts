import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** A third-party program that tests or the bench need, and where to find it. */
interface Program {
  /** Names to look for in the PATH; the first one found is used. For a library: absolute paths of a file. */
  readonly files: readonly string[];
  /** Debian packages. If a release lacks the first set, the next one is installed. */
  readonly packages: readonly (readonly string[])[];
  /** Environment variable with another path. */
  readonly variable: string;
}

const programs = {
  'redis-server': program('redis-server', 'redis-server', 'REDIS_SERVER'),
  // The headless shell first: without the user interface the same engine takes half the CPU.
  chromium: {
    files: ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'],
    packages: [['chromium-headless-shell'], ['chromium']],
    variable: 'CHROMIUM',
  },
  nginx: program('nginx', 'nginx-light', 'NGINX'),
  haproxy: program('haproxy', 'haproxy', 'HAPROXY'),
  caddy: program('caddy', 'caddy', 'CADDY'),
  varnish: program('varnishd', 'varnish', 'VARNISHD'),
  php: program('php', 'php-cli', 'PHP'),
  // Found by one file of Symfony's routing component.
  symfony: {
    files: ['/usr/share/php/Symfony/Component/Routing/Matcher/CompiledUrlMatcher.php'],
    packages: [['php-symfony-http-foundation', 'php-symfony-routing']],
    variable: 'SYMFONY_MATCHER',
  },
  python3: program('python3', 'python3', 'PYTHON'),
  ruby: program('ruby', 'ruby', 'RUBY'),
  rackup: program('rackup', 'ruby-rack', 'RACKUP'),
  go: program('go', 'golang-go', 'GO'),
  // Found by one file of each Perl library.
  'cgi-pm': { files: ['/usr/share/perl5/CGI.pm'], packages: [['libcgi-pm-perl']], variable: 'CGI_PM' },
  plack: {
    files: ['/usr/share/perl5/Plack/Request.pm'],
    packages: [['libplack-perl']],
    variable: 'PLACK_REQUEST',
  },
  java: program('java', 'default-jre-headless', 'JAVA'),
  tomcat: {
    files: ['/usr/share/tomcat10/bin/bootstrap.jar', '/usr/share/tomcat9/bin/bootstrap.jar'],
    packages: [
      ['tomcat10-common', 'libtomcat10-java'],
      ['tomcat9-common', 'libtomcat9-java'],
    ],
    variable: 'TOMCAT_BOOTSTRAP',
  },
  curl: program('curl', 'curl', 'CURL'),
  prometheus: program('prometheus', 'prometheus', 'PROMETHEUS'),
  promtool: program('promtool', 'prometheus', 'PROMTOOL'),
  buildah: program('buildah', 'buildah', 'BUILDAH'),
  'docker-compose': program('docker-compose', 'docker-compose', 'DOCKER_COMPOSE'),
  unzip: program('unzip', 'unzip', 'UNZIP'),
  wrk: program('wrk', 'wrk', 'WRK'),
  // Includes the modules for WebDAV.
  apache2: program('apache2', 'apache2', 'APACHE'),
  // For Lua in Apache.
  'lua-socket': {
    files: ['/usr/share/lua/5.3/socket/http.lua'],
    packages: [['lua-socket']],
    variable: 'LUA_SOCKET',
  },
  litmus: program('litmus', 'litmus', 'LITMUS'),
} satisfies Record<string, Program>;

export type ProgramName = keyof typeof programs;

function program(file: string, debianPackage: string, variable: string): Program {
  return { files: [file], packages: [[debianPackage]], variable };
}

/** Path of a program, installed from Debian packages if missing (as root). Undefined if that fails; prints why. */
export function findProgram(name: ProgramName): string | undefined {
  const wanted: Program = programs[name];
  const found = present(wanted) ?? (mayInstall() ? installed(name, wanted) : undefined);
  if (found === undefined) say(`no ${name}, its part is left out: ${advice(name)}`);
  return found;
}

/** Like `findProgram` for a program that is required: throws one line that says what to do. */
export function needProgram(name: ProgramName): string {
  const found = findProgram(name);
  if (found === undefined) throw new Error(`no ${name}: ${advice(name)}`);
  return found;
}

export function searchPath(file: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(path.delimiter), '/usr/bin', '/usr/sbin'];
  return folders.map((folder) => path.join(folder, file)).find(isExecutable);
}

/**
 * Installs all missing programs before any test runs: an installation takes much CPU, and longer than a test may wait.
 * `findProgram` later reports what could not be installed.
 */
export function installPrograms(): void {
  const missing = Object.values<Program>(programs).filter((each) => present(each) === undefined);
  if (missing.length === 0 || !mayInstall()) return;
  const packages = missing.flatMap((each) => each.packages[0] ?? []);
  say(`installing what the tests run beside shopward, from Debian's packages: ${packages.join(' ')}`);
  // One package that this release lacks makes apt-get fail for all, so install them one by one.
  if (!install(packages)) for (const each of missing) each.packages.some(install);
}

function present({ files, variable }: Program): string | undefined {
  const given = process.env[variable];
  if (given !== undefined && given !== '') return given;
  for (const file of files) {
    const found = path.isAbsolute(file) ? (existsSync(file) ? file : undefined) : searchPath(file);
    if (found !== undefined) return found;
  }
  return undefined;
}

function installed(name: ProgramName, wanted: Program): string | undefined {
  say(`no ${name} found, installing it from Debian's packages`);
  wanted.packages.some(install);
  return present(wanted);
}

function mayInstall(): boolean {
  return process.getuid?.() === 0 && isExecutable('/usr/bin/apt-get');
}

let isUpdated = false;

/**
 * Uses a lock, because test files run concurrently and apt-get does not wait for the lists of another one. Package
 * lists are updated once, and only if the first attempt fails.
 */
export function install(packages: readonly string[]): boolean {
  const apt = (...args: string[]) => {
    const lock = path.join(os.tmpdir(), 'shopward-install.lock');
    // If no mirror answers, the tests must still start.
    const bounds = ['DPkg::Lock::Timeout=300', 'Acquire::http::Timeout=20', 'Acquire::Retries=0'];
    const options = bounds.flatMap((bound) => ['-o', bound]);
    // Run level 1 keeps packages from starting their servers.
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
    return spawnSync('flock', [lock, 'apt-get', '-qq', ...options, ...args], { env, encoding: 'utf8' });
  };
  const tryIt = () => apt('install', '-y', '--no-install-recommends', ...packages);
  let ended = tryIt();
  if (ended.status !== 0 && !isUpdated) {
    isUpdated = true;
    apt('update');
    ended = tryIt();
  }
  if (ended.status !== 0) say(ended.stderr.trimEnd());
  return ended.status === 0;
}

function advice(name: ProgramName): string {
  const { packages, variable }: Program = programs[name];
  return `install it (Debian: apt-get install ${packages[0]?.join(' ')}) or set ${variable}`;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
