import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { request as httpsRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterEach, expect, it } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { listOf, type Shopward, startShopward } from '../../harness/shopward.ts';
import { testCertificate, testKey } from '../../harness/tls-fixture.ts';

/** A good client is served while others misbehave, and the memory of the process stays bounded. */
let upstream: RecordingUpstream;
let shopward: Shopward;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await shopward?.kill();
  await upstream?.close();
});

async function start(config: object = {}, script = () => answer('ok')): Promise<void> {
  upstream = await startRecordingUpstream(script);
  shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config,
    rows: ['GET /secret'],
  });
}

const get = (target: string, fields = '') => `GET ${target} HTTP/1.1\r\nHost: shop.example\r\n${fields}\r\n`;
const statusOf = async (target: string) => (await exchangeRaw(shopward.port, get(target))).status;

function residentMiB(): number {
  const status = readFileSync(`/proc/${shopward.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

function open(port: number): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {}).resume();
  sockets.push(socket);
  return socket;
}

const serve = (over: object = {}) =>
  new Promise<number>((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      // Another peer than those that flood.
      localAddress: '127.0.0.2',
      port: shopward.port,
      path: '/open',
      ca: testCertificate,
      agent: false,
    };
    httpsRequest({ ...options, ...over }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    })
      .on('error', reject)
      .end();
  });

it('a client is served during incomplete TLS handshakes, floods of handshakes and odd protocols', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'shopward-neighbours-'));
  const [cert, key] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')];
  await writeFile(cert, testCertificate);
  await writeFile(key, testKey);
  await start({ listen: { tls: { cert, key } } });
  await rm(folder, { recursive: true });
  const before = residentMiB();
  // The head of a TLS record of 16 KiB, and its first octet.
  const half = Buffer.from([0x16, 0x03, 0x01, 0x40, 0x00, 0x01]);
  for (let i = 0; i < 200; i++) {
    const socket = open(shopward.port);
    socket.on('connect', () => socket.write(i % 3 === 0 ? half : i % 3 === 1 ? get('/open') : ''));
  }
  expect(await serve()).toBe(200);
  for (let round = 0; round < 5; round++) {
    const flood = Array.from({ length: 40 }, async (_, i) => {
      const socket = connectTls({
        host: '127.0.0.1',
        port: shopward.port,
        ca: testCertificate,
        ALPNProtocols: [['h2'], ['http/1.1'], ['x'.repeat(255)], ['h2', 'http/1.1']][i % 4] as string[],
        maxVersion: i % 2 === 0 ? 'TLSv1.2' : 'TLSv1.3',
      });
      sockets.push(socket);
      socket.on('error', () => {});
      await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]).catch(() => {});
      // Renegotiation costs the server CPU time, so clients must not be able to start it.
      if (i % 2 === 0 && !socket.destroyed) socket.renegotiate({}, () => {});
    });
    await Promise.all(flood);
    expect(await serve()).toBe(200);
  }
  expect(residentMiB() - before).toBeLessThan(200);
}, 180_000);

it('a client is served during 1,000 calls of the admin port and 100 connections to it that read nothing', async () => {
  await start();
  const routes = [
    ...'/livez /readyz /metrics / /api/state /api/rows /api/decisions/search /nothing'.split(' '),
  ];
  const before = residentMiB();
  for (let i = 0; i < 100; i++) {
    const socket = open(shopward.adminPort);
    socket.pause();
    socket.on('connect', () => socket.write(get('/metrics').replace('shop.example', '127.0.0.1').repeat(20)));
  }
  const calls = Array.from({ length: 1_000 }, (_, i) => {
    const socket = open(shopward.adminPort);
    const route = routes[i % routes.length] ?? '/';
    const head = get(route, i % 7 === 0 ? 'Origin: http://evil.example\r\n' : '');
    const host = i % 5 === 0 ? 'evil.example' : '127.0.0.1';
    socket.on('connect', () => socket.write(head.replace('shop.example', host)));
    return socket;
  });
  expect(await statusOf('/open')).toBe(200);
  for (const socket of calls) socket.destroy();
  for (const socket of sockets.splice(0)) socket.destroy();
  await eventually('the admin port', async () => {
    const { status } = await fetch(`${shopward.adminUrl}/livez`).catch(() => ({ status: 0 }));
    return status === 200 || undefined;
  });
  expect(await statusOf('/secret')).toBe(401);
  expect(residentMiB() - before).toBeLessThan(250);
}, 180_000);

it('401 while the list is cut off, empty, missing, a folder, a pipe or a link to itself', async () => {
  await start();
  const { listFile } = shopward;
  const good = listOf(['GET /secret', 'GET /more']);
  const steps: readonly (readonly [string, () => unknown])[] = [
    ['cut off', () => writeFile(listFile, good.slice(0, good.indexOf('GET /more')))],
    ['empty', () => writeFile(listFile, '')],
    ['gone', () => rm(listFile)],
    ['a folder', () => mkdir(listFile)],
    [
      'a pipe',
      async () => {
        await rm(listFile, { recursive: true });
        execFileSync('mkfifo', [listFile]);
      },
    ],
    [
      'a link to itself',
      async () => {
        await rm(listFile);
        await symlink(listFile, listFile);
      },
    ],
  ];
  for (const [what, step] of steps) {
    await step();
    shopward.signal('SIGHUP');
    await eventually(what, async () => (await statusOf('/open')) === 200 || undefined);
    expect(await statusOf('/secret'), what).toBe(401);
  }
  const aside = path.join(shopward.folder, 'good.yaml');
  await writeFile(aside, good);
  await rename(aside, listFile);
  await eventually('the good list', async () => (await statusOf('/more')) === 401 || undefined);
}, 180_000);

it('SIGTERM ends a process with WebSockets, with exit code 0', async () => {
  const accepted = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  await start({ upstream: { webSocket: true } }, () => accepted);
  for (let i = 0; i < 20; i++) {
    const socket = open(shopward.port);
    const fields =
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
    socket.on('connect', () => socket.write(get('/ws', fields)));
  }
  await eventually('the sockets', () => upstream.connections.length >= 1 || undefined);
  await shopward.stop();
  expect(shopward.exitCode).toBe(0);
}, 180_000);
