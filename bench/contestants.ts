import { type ChildProcess, execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { findProgram } from '../test/harness/programs.ts';
import { lineOf, startPinned } from './programs.ts';
import { upstreamBodies } from './upstream-bodies.ts';

export interface Contestant {
  readonly name: string;
  readonly url: string;
  /** Processes whose CPU time counts. */
  readonly pids: readonly number[];
}

export const proxyProcessor = 0;
export const loadProcessor = 1;

const here = import.meta.dirname;
export const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

export const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
export const publicKeyFile = path.join(folder, 'public.pem');
writeFileSync(publicKeyFile, keys.publicKey.export({ type: 'spki', format: 'pem' }));

async function listening(
  name: string,
  child: ChildProcess,
  pattern = /listening on (\d+)/,
): Promise<Contestant> {
  const match = await lineOf(child, pattern);
  return contestant(name, Number(match[1]), child);
}

function contestant(name: string, port: number, child: ChildProcess): Contestant {
  return { name, url: `http://127.0.0.1:${port}`, pids: [child.pid as number] };
}

const script = (name: string) => path.join(here, 'contestants', name);

export async function startUpstream(): Promise<Contestant> {
  const nginx = findProgram('nginx');
  if (!nginx) {
    console.error('bench: nginx is not available; the upstream is a small Node server');
    return listening('upstream', startPinned(loadProcessor, process.execPath, [script('upstream.ts')]));
  }
  const root = path.join(folder, 'www');
  for (const [file, body] of Object.entries(upstreamBodies)) {
    const target = path.join(root, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, body);
  }
  return startNginx(
    nginx,
    'upstream',
    loadProcessor,
    (port) => `
    server { listen 127.0.0.1:${port}; root ${root}; default_type application/vnd.api+json; etag off;
      error_page 405 =200 $uri; location /carts/ { try_files /carts/1 =404; error_page 405 =200 /carts/1; } client_body_buffer_size 64k; client_max_body_size 8m; }`,
  );
}

/** Starts one of the files in `contestants/` with this Node. */
export function startNode(name: string, file: string, args: readonly string[]): Promise<Contestant> {
  return listening(name, startPinned(proxyProcessor, process.execPath, [script(file), ...args]));
}

/** `replicaOf`: the port of its primary. */
export async function startRedis(replicaOf?: number): Promise<{ readonly url: string } | undefined> {
  const redis = findProgram('redis-server');
  if (!redis) return undefined;
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder];
  if (replicaOf !== undefined) args.push('--replicaof', `127.0.0.1 ${replicaOf}`);
  const child = startPinned(loadProcessor, redis, args);
  await lineOf(
    child,
    replicaOf === undefined ? /Ready to accept connections/ : /sync: Finished with success/,
  );
  return { url: `redis://127.0.0.1:${port}` };
}

export interface ShopwardSettings {
  /** Rows of the protected list. */
  readonly rows?: readonly string[];
  /** Default: `warn`, since no other contestant writes a line for each request. */
  readonly logLevel?: 'warn' | 'info';
  /** YAML to add to the configuration. */
  readonly more?: string;
  /** Root of the checkout to run, with its `node_modules`; it is built first. Default: this checkout. */
  readonly checkout?: string;
}

export async function startShopward(
  name: string,
  upstream: string,
  {
    rows = ['GET /orders/{id}'],
    logLevel = 'warn',
    more = '',
    checkout = path.join(here, '..'),
  }: ShopwardSettings = {},
): Promise<Contestant> {
  const home = mkdtempSync(path.join(folder, 'shopward-'));
  const list = `groups:\n  Bench:\n${rows.map((row) => `    - ${row}\n`).join('')}complete: true\n`;
  writeFileSync(path.join(home, 'protected-resources.yaml'), list);
  writeFileSync(
    path.join(home, 'shopward.yaml'),
    `listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstream: { url: '${upstream}' }
auth: { keys: { files: ['${publicKeyFile}'] } }
log: { level: ${logLevel} }
${more}`,
  );
  const args = [built(checkout), 'serve', '--config', path.join(home, 'shopward.yaml')];
  const child = startPinned(proxyProcessor, process.execPath, args, { NODE_ENV: 'production' });
  return listening(name, child, /listening on http:\/\/127\.0\.0\.1:(\d+)/);
}

/** An nginx that writes the same fields as shopward, to the shop and to the client. */
export async function startNginxProxy(upstream: string): Promise<Contestant | undefined> {
  const nginx = findProgram('nginx');
  if (!nginx) return undefined;
  return startNginx(
    nginx,
    'nginx',
    proxyProcessor,
    (port) => `
    upstream shop { server ${upstream.slice('http://'.length)}; keepalive 256; }
    server { listen 127.0.0.1:${port}; client_max_body_size 8m;
      location / { proxy_pass http://shop; proxy_http_version 1.1; proxy_set_header Connection "";
        proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Request-Id $request_id;
        add_header X-Request-Id $request_id; } }`,
  );
}

export async function startHaproxy(upstream: string): Promise<Contestant | undefined> {
  const haproxy = findProgram('haproxy');
  if (!haproxy) return undefined;
  const port = await freePort();
  const file = path.join(folder, 'haproxy.cfg');
  writeFileSync(
    file,
    `global
  nbthread 1
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
frontend shop
  bind 127.0.0.1:${port}
  acl protected path_beg /orders/
  http-request set-var(txn.alg) http_auth_bearer,jwt_header_query('$.alg') if protected
  http-request deny deny_status 401 if protected !{ var(txn.alg) -m str RS256 }
  http-request deny deny_status 401 if protected !{ http_auth_bearer,jwt_verify(txn.alg,"${publicKeyFile}") -m int 1 }
  default_backend shop
backend shop
  http-reuse always
  server shop ${upstream.slice('http://'.length)}
`,
  );
  const child = startPinned(proxyProcessor, haproxy, ['-db', '-f', file]);
  await answering(port);
  return contestant('HAProxy', port, child);
}

const mains = new Map<string, string>();

/** Builds the checkout and returns its main file, which the package and the image run. */
function built(checkout: string): string {
  const known = mains.get(checkout);
  if (known !== undefined) return known;
  execFileSync(process.execPath, ['scripts/build.ts'], { cwd: checkout, stdio: 'ignore' });
  const main = path.join(checkout, 'dist/main.js');
  mains.set(checkout, main);
  return main;
}

async function startNginx(
  nginx: string,
  name: string,
  processor: number,
  http: (port: number) => string,
): Promise<Contestant> {
  const port = await freePort();
  const home = mkdtempSync(path.join(folder, 'nginx-'));
  const file = path.join(home, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; worker_processes 1; master_process off; pid ${home}/pid; error_log stderr crit;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 1000000000; client_body_temp_path ${home}/body; proxy_temp_path ${home}/proxy;
  fastcgi_temp_path ${home}/f; uwsgi_temp_path ${home}/u; scgi_temp_path ${home}/s; ${http(port)} }`,
  );
  const child = startPinned(processor, nginx, ['-c', file, '-p', home]);
  await answering(port);
  return contestant(name, port, child);
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

async function answering(port: number): Promise<void> {
  for (let i = 0; i < 100; i++) {
    const ok = await fetch(`http://127.0.0.1:${port}/small`).then(
      (answer) => answer.ok,
      () => false,
    );
    if (ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`bench: nothing answers on port ${port}`);
}
