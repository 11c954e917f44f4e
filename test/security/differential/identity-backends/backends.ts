import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { fastify } from 'fastify';
import { freePort } from '../../../harness/free-port.ts';
import { findProgram } from '../../../harness/programs.ts';
import { awaitPort } from '../upstreams.ts';

/** A server that answers every request with the fields that its program gets, by their CGI names (RFC 3875). */
export interface Backend {
  readonly port: number;
  close(): Promise<void>;
}

const php = findProgram('php');
const python = findProgram('python3');

/** Starts each backend; undefined if its program is missing. */
export const backends: Readonly<Record<string, (() => Promise<Backend>) | undefined>> = {
  'PHP, which folds - and . into _': php === undefined ? undefined : () => startPhp(php),
  'Python by WSGI, which folds - into _': python === undefined ? undefined : () => startPython(python),
  'fastify, whose program folds as CGI does': startFastify,
};

const fileOf = (name: string) => path.join(import.meta.dirname, name);

async function startPhp(program: string): Promise<Backend> {
  const port = await freePort();
  const child = spawn(program, ['-n', '-q', '-S', `127.0.0.1:${port}`, fileOf('router.php')], {
    stdio: 'ignore',
  });
  await awaitPort(port, child);
  return { port, close: () => end(child) };
}

async function startPython(program: string): Promise<Backend> {
  const child = spawn(program, [fileOf('server.py')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed] = (await once(child.stdout, 'data')) as [Buffer];
  return { port: Number(printed.toString()), close: () => end(child) };
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

async function startFastify(): Promise<Backend> {
  const app = fastify({ forceCloseConnections: true });
  app.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume().on('end', () => done(null));
  });
  app.all('*', (request) => {
    const seen: Record<string, string> = {};
    const sent = [...Object.entries(request.headers), ...Object.entries(request.raw.trailers)];
    for (const [name, value] of sent) {
      const folded = `HTTP_${name.replace(/[^A-Za-z0-9]/g, '_').toUpperCase()}`;
      seen[folded] = seen[folded] === undefined ? String(value) : `${seen[folded]},${value}`;
    }
    return seen;
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
}
