import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'vitest';
import { stringify } from 'yaml';
import { makeSigner, makeToken, publicPem, type Signer } from '../unit/access/signing.ts';
import { compiledFolder, findMain } from './built-shopward.ts';
import { freePort } from './free-port.ts';

export interface ShopwardOptions {
  /** Origin of the upstream. */
  readonly upstream: string;
  /** Merged into the configuration, map by map. Arrays and scalars replace, `undefined` removes. */
  readonly config?: object;
  /** Rows of a list for the test, written as in the list file. */
  readonly rows?: readonly (string | object)[];
  /** A list file of the repository instead of `rows`. Default: `config/protected-resources.yaml`. */
  readonly listFile?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Command and arguments that start the command after them, such as `sh -c 'ulimit -n 64; exec "$@"' sh`. */
  readonly launcher?: readonly string[];
  /** Whether to wait until requests are served. Default true. */
  readonly awaitListening?: boolean;
}

/** One JSON line of the log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** A running `serve` on free ports, with its own configuration folder. */
export interface RunningShopward {
  readonly url: string;
  readonly port: number;
  readonly adminUrl: string;
  readonly adminPort: number;
  readonly folder: string;
  readonly configFile: string;
  readonly listFile: string;
  /** Complete lines of the log so far, without the first `skipped`. */
  log(skipped?: number): readonly LogLine[];
  /** The first line for which `isWanted` is true, past or future, without the first `skipped`. */
  waitForLog(isWanted: (line: LogLine) => boolean, skipped?: number): Promise<LogLine>;
  /** All output of both streams. */
  output(): string;
  /** A valid access token. `claims` replace the default ones, `undefined` removes one. */
  issueToken(claims?: object, header?: object): string;
  /** Owner of the key that the proxy trusts; all proxies of this worker share it. */
  readonly signer: Signer;
  /** Drains without an error. */
  stop(): Promise<void>;
}

/** The real `serve` in a separate process. */
export interface Shopward extends RunningShopward {
  readonly pid: number;
  /** Null while it runs, and if a signal ended it. */
  readonly exitCode: number | null;
  /** The signal that ended it. */
  readonly signalCode: NodeJS.Signals | null;
  readonly exited: Promise<number | null>;
  signal(name: NodeJS.Signals): void;
  /** SIGTERM; the drain must end with exit code 0. */
  stop(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
}

const root = path.join(import.meta.dirname, '../..');
/** Limit of every wait: only a hang takes longer, however busy the machine is. */
const patienceMs = 90_000;

/** Created once: all processes that a Vitest worker starts trust the same key. */
let signerOfWorker: Signer | undefined;

export async function startShopward(options: ShopwardOptions): Promise<Shopward> {
  const { folder, configFile, listFile, signer } = await prepare(options);
  const [command = '', ...args] = [
    ...(options.launcher ?? []),
    process.execPath,
    ...[findMain(), 'serve', '--config', configFile],
  ];
  const child = spawn(command, args, {
    cwd: folder,
    env: { ...bareEnvironment, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const endWithUs = () => child.kill('SIGKILL');
  process.once('exit', endWithUs);
  const streams = collect();
  child.stdout?.setEncoding('utf8').on('data', streams.out);
  child.stderr?.setEncoding('utf8').on('data', streams.err);
  const exited = once(child, 'close').then(async ([code]) => {
    process.off('exit', endWithUs);
    await rm(folder, { recursive: true, force: true });
    return code as number | null;
  });

  const waitFor = <T>(what: string, find: () => T | undefined) =>
    streams.waitFor(what, find, async () => {
      throw new Error(`shopward ended (${await exited}) before ${what}:\n${streams.output()}`);
    });

  let urls: readonly [string, string] = ['', ''];
  if (options.awaitListening ?? true) {
    try {
      urls = await waitFor('listening', () => findUrls(streams.output()));
    } catch (fault) {
      endWithUs();
      throw fault;
    }
  }
  const [url, adminUrl] = urls;

  return {
    url,
    port: portOf(url),
    adminUrl,
    adminPort: portOf(adminUrl),
    pid: child.pid ?? 0,
    folder,
    configFile,
    listFile,
    get exitCode() {
      return child.exitCode;
    },
    get signalCode() {
      return child.signalCode;
    },
    exited,
    log: streams.log,
    waitForLog: (isWanted, skipped) => waitFor('that log line', () => streams.log(skipped).find(isWanted)),
    output: streams.output,
    issueToken: (claims = {}, header = {}) => issueToken(signer, claims, header),
    signer,
    signal: (name) => void child.kill(name),
    stop: async () => {
      child.kill('SIGTERM');
      const late = setTimeout(endWithUs, patienceMs);
      const code = await exited;
      clearTimeout(late);
      expect(code, streams.output()).toBe(0);
      // Node's warning about leaked listeners. If we added that many on purpose, leaks would be hidden.
      expect(streams.output()).not.toContain('MaxListenersExceededWarning');
    },
    kill: async () => {
      endWithUs();
      await exited;
    },
  };
}

/** The configuration folder for a process or for `startShopwardHere`. */
export async function prepare(options: ShopwardOptions) {
  const folder = await mkdtemp(path.join(tmpdir(), 'shopward-test-'));
  signerOfWorker ??= makeSigner('RS256');
  const signer = signerOfWorker;
  const listFile = await writeList(folder, options);
  const configFile = path.join(folder, 'shopward.yaml');
  await writeFile(path.join(folder, 'public.pem'), publicPem(signer));
  // Between the choice of a free port and the first worker's listen(), a connection of another test could take the
  // port.
  const port = 'workers' in (options.config ?? {}) ? await freePort() : 0;
  const config = merge(
    {
      // No balancer needs time before a drain.
      listen: { host: '127.0.0.1', port, drainDelay: '0s' },
      admin: { host: '127.0.0.1', port: 0 },
      upstream: { url: options.upstream, connectTimeout: '30s' },
      protectedResources: listFile,
      auth: { keys: { files: ['public.pem'] } },
      // As in the shipped configuration.
      urlResolver: {},
      ...patientStore,
    },
    options.config ?? {},
  );
  await writeFile(configFile, stringify(config));
  return { folder, configFile, listFile, signer };
}

/** A token that the default configuration accepts. */
export function issueToken(signer: Signer, claims: object = {}, header: object = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const own = { sub: 'DE--21', iat: now - 10, nbf: now - 10, exp: now + 3600, jti: 'test' };
  return makeToken(signer, { ...own, ...claims }, header);
}

/** Tests of store deadlines set their own. In all other tests only a hang takes so long. */
const patientStore = { store: { timeout: '10s' }, entityTags: { lease: '60s', sendBy: '20s', wait: '30s' } };

/** Without proxies, debugging and Node flags of this machine. Compiled code is kept (vitest.config.ts). */
export const bareEnvironment = {
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  ...(compiledFolder() && { NODE_COMPILE_CACHE: compiledFolder() }),
};

async function writeList(folder: string, { rows, listFile }: ShopwardOptions): Promise<string> {
  const file = path.join(folder, 'protected-resources.yaml');
  const source = path.join(root, listFile ?? 'config/protected-resources.yaml');
  const text = rows === undefined ? await readFile(source, 'utf8') : listOf(rows);
  await writeFile(file, text);
  return file;
}

/** The text of a list file with these rows. */
export function listOf(rows: readonly (string | object)[]): string {
  return stringify({ groups: { Test: rows }, complete: true });
}

/** The output of a process, for readers that wait for it. */
export function collect() {
  let stdout = '';
  let stderr = '';
  /** The end of stdout that has no line break yet. */
  let rest = '';
  const lines: string[] = [];
  /** Each line is parsed once, on demand: a waiting reader looks at all lines again after each new one. */
  const parsed: LogLine[] = [];
  let wake: () => void = () => {};
  let next: Promise<void> | undefined;
  /** One promise for all waiting readers. */
  const more = () => {
    next ??= new Promise((resolve) => {
      wake = () => {
        next = undefined;
        resolve();
      };
    });
    return next;
  };
  const output = () => stdout + stderr;
  const log = (skipped = 0): readonly LogLine[] => {
    for (let i = skipped; i < lines.length; i += 1) {
      parsed[i] ??= Object.freeze(JSON.parse(lines[i] as string) as LogLine);
    }
    return parsed.slice(skipped);
  };
  const waitFor = async <T>(
    what: string,
    find: () => T | undefined,
    ended: () => Promise<never> = () => new Promise(() => {}),
  ): Promise<T> => {
    const deadline = AbortSignal.timeout(patienceMs);
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      await Promise.race([more(), ended(), rejected(deadline, `no ${what}:\n${output()}`)]);
    }
  };
  return {
    out(text: string) {
      stdout += text;
      const split = (rest + text).split('\n');
      rest = split.pop() ?? '';
      lines.push(...split);
      wake();
    },
    err(text: string) {
      stderr += text;
      wake();
    },
    output,
    log,
    waitFor,
    waitForLog: (isWanted: (line: LogLine) => boolean, skipped?: number) =>
      waitFor('that log line', () => log(skipped).find(isWanted)),
  };
}

function rejected(signal: AbortSignal, text: string): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(new Error(text));
    signal.addEventListener('abort', () => reject(new Error(text)), { once: true });
  });
}

function findUrls(output: string): readonly [string, string] | undefined {
  const line = /^shopward is listening on (\S+) for \S+(?:, admin on (\S+))?$/m.exec(output);
  return line === null ? undefined : [line[1] ?? '', line[2] ?? ''];
}

export function portOf(url: string): number {
  return url === '' ? 0 : Number(new URL(url).port);
}

type Plain = Readonly<Record<string, unknown>>;

function merge(under: Plain, over: object): Plain {
  const merged: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const before = merged[key];
    merged[key] = isMap(before) && isMap(value) && key !== 'keys' ? merge(before, value) : value;
  }
  return merged;
}

function isMap(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
