import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect as tcpConnect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { needProgram } from './programs.ts';

export interface RedisProcessOptions {
  /** Further `--name value` pairs of the command line. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Content of a configuration file, instead of settings. (Sentinel rewrites its file.) */
  readonly configFile?: (directory: string, port: number) => string;
  readonly sentinel?: boolean;
  /** A fixed port. Default: a free one. */
  readonly port?: number;
  /** Added to its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** The port speaks TLS, so a TCP connection alone shows that it is ready. */
  readonly tls?: boolean;
}

/** Starts a process and waits until it answers. If another process takes the port first, it tries a new one. */
export async function startRedisProcess(options: RedisProcessOptions = {}): Promise<RedisProcess> {
  for (let attempt = 1; ; attempt += 1) {
    const started = new RedisProcess(options, options.port ?? (await freePort()));
    try {
      await started.start();
      return started;
    } catch (cause) {
      await started.close();
      if (attempt === 5) throw cause;
    }
  }
}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A real redis-server process of a test, on a free loopback port, with its own directory. */
export class RedisProcess {
  readonly port: number;
  readonly directory: string;
  readonly #options: RedisProcessOptions;
  #child: ChildProcess | undefined;

  constructor(options: RedisProcessOptions, port: number) {
    this.#options = options;
    this.port = port;
    this.directory = mkdtempSync(join(tmpdir(), 'shopward-redis-'));
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  async start(): Promise<void> {
    const child = spawn(needProgram('redis-server'), this.#arguments(), {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...this.#options.env },
    });
    let said = '';
    let isListening = false;
    child.stdout.on('data', (chunk) => {
      said = (said + chunk).slice(-2000);
      // Another process could be answering on the port, so its own output must confirm it.
      isListening ||= /Ready to accept connections|Sentinel ID is/.test(said);
    });
    this.#child = child;
    running.add(child);
    child.once('exit', () => running.delete(child));
    const deadline = Date.now() + 60_000;
    while (!isListening || !(await isAnswering(this.port, this.#options.tls === true))) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`redis-server ended at start: ${said}`);
      if (Date.now() > deadline) throw new Error(`redis-server does not answer: ${said}`);
      await sleep(20);
    }
  }

  /** SIGSTOP: connections stay open, but are not answered. */
  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** SIGKILL; waits for the end of the process. Nothing is saved. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** Kills the process if it is running and starts it on the same port: empty, with a new replication id. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** Kills the process and removes its directory. */
  async close(): Promise<void> {
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }

  #arguments(): string[] {
    const { configFile, sentinel, settings, tls } = this.#options;
    if (configFile !== undefined) {
      return [configFile(this.directory, this.port), ...(sentinel === true ? ['--sentinel'] : [])];
    }
    const all = {
      [tls === true ? 'tls-port' : 'port']: this.port,
      ...(tls === true ? { port: 0 } : {}),
      bind: '127.0.0.1',
      dir: this.directory,
      save: '',
      appendonly: 'no',
      // A replica gets its data at once. Redis otherwise waits 5 s for further replicas.
      'repl-diskless-sync-delay': 0,
      ...settings,
    };
    return Object.entries(all).flatMap(([name, value]) => [`--${name}`, `${value}`]);
  }
}

function isAnswering(port: number, tcpOnly: boolean): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = tcpConnect({ host: '127.0.0.1', port });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(5000, () => end(false));
    socket.once('error', () => end(false));
    socket.once('connect', () => (tcpOnly ? end(true) : socket.write('PING\r\n')));
    // -NOAUTH also shows that Redis is ready.
    socket.once('data', (answer) => end(/^(\+PONG|-NOAUTH)/.test(answer.toString('latin1'))));
  });
}
