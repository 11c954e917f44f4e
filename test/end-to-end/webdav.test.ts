import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request as forward } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { listen } from '../harness/listen.ts';
import { needProgram } from '../harness/programs.ts';
import { callShop, outcomeOf, type ShopCall } from '../harness/shop-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

/** Apache with mod_dav: no JSON, and files have no media type unless their name says one. */
async function startApache(): Promise<{ port: number; url: string; close(): Promise<void> }> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'shopward-dav-'));
  const port = await freePort();
  const root = path.join(folder, 'root');
  for (const each of [root, path.join(root, 'files'), folder]) {
    await mkdir(each, { recursive: true });
    // Apache gives up root's rights.
    await chmod(each, 0o777);
  }
  const modules = ['mpm_event', 'authz_core', 'dav', 'dav_fs'];
  const lines = [
    'ServerRoot /usr/lib/apache2',
    `PidFile ${folder}/pid`,
    `Listen 127.0.0.1:${port}`,
    'ServerName 127.0.0.1',
    ...modules.map((name) => `LoadModule ${name}_module modules/mod_${name}.so`),
    `DocumentRoot ${root}`,
    `DavLockDB ${folder}/lock`,
    `ErrorLog ${folder}/error.log`,
    `<Directory ${root}>\nDav On\nRequire all granted\n</Directory>`,
  ];
  const file = path.join(folder, 'apache.conf');
  await writeFile(file, `${lines.join('\n')}\n`);
  const apache = spawn(needProgram('apache2'), ['-f', file, '-X'], { stdio: 'ignore' });
  const ended = once(apache, 'exit');
  const url = `http://127.0.0.1:${port}`;
  await eventually('Apache', async () => (await fetch(url).catch(() => undefined))?.status);
  return {
    port,
    url,
    async close() {
      apache.kill();
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A front that sends what shopward does not accept to Apache itself: MKCOL, COPY, LOCK, and changes of collections. */
async function startFront(shopwardPort: number, apachePort: number) {
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    const isTaken = /^(?:GET|HEAD|PUT|DELETE|OPTIONS|PROPFIND)$/.test(method);
    const isOfCollection = method !== 'GET' && method !== 'PROPFIND' && url.endsWith('/');
    const isSent = isTaken && !isOfCollection;
    const own = headers.destination?.toString().replace(/^http:\/\/[^/]*/, `http://127.0.0.1:${apachePort}`);
    const sent = forward(
      {
        ...{ host: '127.0.0.1', port: isSent ? shopwardPort : apachePort, method, path: url },
        headers: {
          ...headers,
          host: `127.0.0.1:${apachePort}`,
          ...(own !== undefined && { destination: own }),
        },
      },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.rawHeaders);
        answer.pipe(response);
      },
    );
    sent.on('error', () => response.destroy());
    request.pipe(sent);
  });
  return listen(server);
}

/** `suite name: result` of each litmus test. */
async function litmus(port: number): Promise<string[]> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'shopward-litmus-'));
  const env = { ...process.env, TESTS: 'basic props http' };
  const child = spawn(needProgram('litmus'), ['-k', `http://127.0.0.1:${port}/`], { cwd: folder, env });
  let text = '';
  for await (const chunk of child.stdout) text += chunk;
  await rm(folder, { recursive: true, force: true });
  // A longer test overwrites its own line with its progress.
  return [...text.matchAll(/^ *\d+\. (\w+)\.+ (?:.*\r.*\.+ )?(\w+)/gm)].map(
    ([, name, result]) => `${name}: ${result}`,
  );
}

let apache: Awaited<ReturnType<typeof startApache>>;
let shopward: RunningShopward;

beforeAll(async () => {
  apache = await startApache();
  shopward = await startShopwardHere({
    upstream: apache.url,
    rows: ['ANY /files/{name}'],
    config: {
      request: { profile: 'plain', methods: ['PROPFIND'] },
      entityTags: {
        resources: [
          { collection: '/files', member: '/files/{name}', methods: ['PUT', 'DELETE'] },
          { collection: '/litmus', member: '/litmus/{name}', methods: ['PATCH'] },
        ],
      },
    },
  });
});
afterAll(async () => {
  await shopward?.stop();
  await apache?.close();
});

describe('Apache with mod_dav', () => {
  const call = (line: string, options: ShopCall = {}) =>
    callShop(shopward.port, line, { token: shopward.issueToken(), ...options });
  const put = (name: string, text: string, options: ShopCall = {}) =>
    call(`PUT /files/${name}`, { body: text, ...options });

  it.each(['plain', 'page.html', 'data.json'])(
    'creates, reads, changes and deletes %s with its tags',
    async (name) => {
      expect(outcomeOf(await put(name, 'one'))).toBe('428 005');
      const created = await put(name, 'one', { ifNoneMatch: '*' });
      expect(created.status).toBe(201);
      const tag = created.field('etag') ?? '';
      expect(outcomeOf(await put(name, 'other', { ifNoneMatch: '*' }))).toBe('412 006');
      const read = await call(`GET /files/${name}`);
      expect([read.status, read.body.toString()]).toEqual([200, 'one']);
      const again = await call(`GET /files/${name}`, { ifNoneMatch: read.field('etag') ?? '' });
      expect(again.status).toBe(304);
      // PROPFIND is safe, so it changes no tag.
      expect((await call(`PROPFIND /files/${name}`, { fields: ['Depth: 0'] })).status).toBe(207);
      const changed = await put(name, 'two', { ifMatch: tag });
      expect(changed.status).toBe(204);
      expect(outcomeOf(await put(name, 'stale', { ifMatch: tag }))).toBe('412 006');
      const remove = await call(`DELETE /files/${name}`, { ifMatch: changed.field('etag') ?? '' });
      expect(remove.status).toBe(204);
      expect((await put(name, 'three', { ifNoneMatch: '*' })).status).toBe(201);
    },
  );

  it('PUT with If-None-Match: * does not replace a file that shopward has not seen', async () => {
    await fetch(`${apache.url}/files/unseen`, { method: 'PUT', body: 'kept' });
    expect((await put('unseen', 'other', { ifNoneMatch: '*' })).status).toBe(412);
    const read = await call('GET /files/unseen');
    expect(read.body.toString()).toBe('kept');
    expect((await put('unseen', 'changed', { ifMatch: read.field('etag') ?? '' })).status).toBe(204);
  });

  it('litmus has the same results through shopward as directly', async () => {
    const front = await startFront(shopward.port, apache.port);
    try {
      const through = await litmus(front.port);
      const directly = await litmus(apache.port);
      expect(directly.length).toBeGreaterThan(45);
      expect(directly.filter((line) => !line.endsWith(': pass'))).toEqual([]);
      expect(through).toEqual(directly);
    } finally {
      front.close();
    }
  });
});
