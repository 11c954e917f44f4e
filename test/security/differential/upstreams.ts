import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../harness/free-port.ts';
import { listen } from '../../harness/listen.ts';
import { findProgram } from '../../harness/programs.ts';
import type { Understood } from './shop-rule.ts';

/** A server that answers every request and reports how it understood it. */
export interface Understanding {
  readonly port: number;
  /** All requests so far, once one with the path `marker` has arrived. */
  understood(marker: string): Promise<readonly Understood[]>;
  close(): Promise<void>;
}

/** Starts each server; undefined if its program is missing. */
export const upstreams: Readonly<Record<string, (() => Promise<Understanding>) | undefined>> = {
  'node:http': startNode,
  nginx: withProgram(findProgram('nginx'), startNginx),
  'PHP as Symfony reads it': withProgram(findProgram('php'), startPhp),
};

function withProgram(program: string | undefined, start: (program: string) => Promise<Understanding>) {
  return program === undefined ? undefined : () => start(program);
}

async function startNode(): Promise<Understanding> {
  const all: Understood[] = [];
  const server = createServer({ maxHeaderSize: 1 << 20, insecureHTTPParser: true }, (incoming, response) => {
    const { method = '', url = '' } = incoming;
    const [bare = ''] = url.split(/[?#]/, 1);
    const paths = [bare];
    try {
      paths.push(new URL(url, 'http://shop.example').pathname);
    } catch {
      // A URL that cannot be parsed selects no route.
    }
    all.push({ method, paths, line: `${method} ${url}` });
    incoming.resume();
    response.end('ok');
  });
  return { ...(await listen(server)), understood: (marker) => awaitMarker(marker, () => all) };
}

async function startNginx(program: string): Promise<Understanding> {
  const folder = mkdtempSync(path.join(tmpdir(), 'shopward-nginx-'));
  const port = await freePort();
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const config = `
    daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
    events { worker_connections 512; }
    http {
      ${temp.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
      log_format seen escape=json '{"method":"$request_method","paths":["$uri","$request_uri"],"line":"$request"}';
      access_log ${folder}/access.log seen;
      large_client_header_buffers 8 128k; client_max_body_size 8m; underscores_in_headers on;
      server { listen 127.0.0.1:${port}; location / { return 200 ok; } }
    }`;
  writeFileSync(path.join(folder, 'nginx.conf'), config);
  const child = spawn(program, ['-p', folder, '-e', `${folder}/error.log`, '-c', `${folder}/nginx.conf`], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return await ofChild(child, port, folder, path.join(folder, 'access.log'));
}

async function startPhp(program: string): Promise<Understanding> {
  const folder = mkdtempSync(path.join(tmpdir(), 'shopward-php-'));
  const port = await freePort();
  const log = path.join(folder, 'seen.log');
  const router = path.join(import.meta.dirname, 'router.php');
  const child = spawn(program, ['-n', '-q', '-S', `127.0.0.1:${port}`, '-t', folder, router], {
    env: { PATH: process.env.PATH, DIFFERENTIAL_LOG: log },
    stdio: 'ignore',
  });
  return await ofChild(child, port, folder, log);
}

async function ofChild(
  child: ChildProcess,
  port: number,
  folder: string,
  log: string,
): Promise<Understanding> {
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const exited = once(child, 'exit');
  await awaitPort(port, child);
  return {
    port,
    understood: (marker) => awaitMarker(marker, () => readLog(log)),
    close: async () => {
      kill();
      await exited;
      process.off('exit', kill);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function readLog(file: string): Understood[] {
  let text = '';
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    // No request has arrived yet.
  }
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  return lines
    .filter((line) => line !== '')
    .map((line) => {
      const seen = JSON.parse(line) as Understood;
      return { ...seen, paths: seen.paths.map((one) => one.split(/[?#]/, 1)[0] ?? '') };
    });
}

async function awaitMarker(
  marker: string,
  read: () => readonly Understood[],
): Promise<readonly Understood[]> {
  for (const deadline = Date.now() + 60_000; ; await sleep(20)) {
    const all = read();
    if (all.some(({ paths }) => paths.includes(marker))) return all;
    if (Date.now() > deadline) throw new Error(`${marker} never arrived`);
  }
}

export async function awaitPort(port: number, child: ChildProcess): Promise<void> {
  for (const deadline = Date.now() + 60_000; ; await sleep(20)) {
    if (child.exitCode !== null) throw new Error('the upstream ended at start');
    const socket = connect(port, '127.0.0.1');
    const isUp = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    if (isUp) return;
    if (Date.now() > deadline) throw new Error('the upstream does not listen');
  }
}
