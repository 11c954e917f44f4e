import { createHash } from 'node:crypto';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { listen } from '../harness/listen.ts';
import { exchangeRaw, openRawConnection } from '../harness/raw-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import {
  expiredPair as ended,
  nextPair as others,
  nextCertificate,
  testPair as ours,
  testCertificate,
  testKey,
  nextKey,
  expiredCertificate,
} from '../harness/tls-fixture.ts';

/** A TLS shop that answers whether the client certificate is `testCertificate`, and whether it is `nextCertificate`. */
let server: Server;
let shop: Awaited<ReturnType<typeof listen>>;
let folder: string;
let names: string[] = [];
const running: RunningShopward[] = [];

function seenBy(socket: TLSSocket): string {
  names.push(String(socket.servername));
  const { raw } = socket.getPeerCertificate();
  if (raw === undefined) return 'no certificate';
  const pem = raw.toString('base64');
  return [testCertificate, nextCertificate].map((one) => one.replaceAll('\n', '').includes(pem)).join();
}

beforeAll(async () => {
  const clients = { requestCert: true, rejectUnauthorized: false, ca: [testCertificate, nextCertificate] };
  // Closes each connection after its answer, so that each request uses the current certificates.
  server = createServer({ ...ours, ...clients }, (incoming, response) => {
    response.setHeader('Connection', 'close').end(seenBy(incoming.socket as TLSSocket));
  });
  server.on('upgrade', (incoming, socket) => {
    const key = `${incoming.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash('sha1').update(key).digest('base64');
    const head = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n';
    socket.write(`${head}Sec-WebSocket-Accept: ${accept}\r\nX-Seen: ${seenBy(socket as TLSSocket)}\r\n\r\n`);
  });
  shop = await listen(server);
});
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-upstream-tls-'));
  server.setSecureContext({ ...ours, ca: [testCertificate, nextCertificate] });
  names = [];
});
afterEach(async () => {
  for (const one of running.splice(0)) await one.stop();
  await rm(folder, { recursive: true, force: true });
});
afterAll(() => shop.close());

async function put(name: string, text: string): Promise<string> {
  const file = path.join(folder, name);
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
  return file;
}

async function start(
  tls: object | undefined,
  more: object = {},
  host = '127.0.0.1',
): Promise<RunningShopward> {
  const one = await startShopwardHere({
    upstream: `https://${host}:${shop.port}`,
    config: { upstream: { webSocket: true, ...(tls && { tls }), ...more } },
  });
  running.push(one);
  return one;
}

const ask = ({ port }: RunningShopward, host = 'shop.example') =>
  exchangeRaw(port, `GET /a HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);

async function shake({ port }: RunningShopward, host = 'shop.example') {
  const connection = await openRawConnection(port);
  await connection.write(
    `GET /a HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  const response = await connection.readResponse();
  connection.close();
  return response;
}

describe('upstream.tls', () => {
  it('uses the CA and the client certificate, and reloads them when their files change', async () => {
    const files = {
      ca: await put('ca.pem', testCertificate),
      cert: await put('client.pem', testCertificate),
      key: await put('client.key', testKey),
    };
    const one = await start(files);
    expect(String((await ask(one)).body)).toBe('true,false');
    const joined = await shake(one);
    expect([joined.status, joined.field('x-seen')]).toEqual([101, 'true,false']);

    // A certificate without its key is refused and logged, and the last good pair stays.
    await put('client.pem', nextCertificate);
    await one.waitForLog(({ event }) => event === 'secrets-refused');
    expect(String((await ask(one)).body)).toBe('true,false');
    await put('client.key', nextKey);
    await eventually(
      'the other client certificate',
      async () => String((await ask(one)).body) === 'false,true' || undefined,
    );
    expect((await shake(one)).field('x-seen')).toBe('false,true');

    server.setSecureContext({ ...others, ca: [testCertificate, nextCertificate] });
    expect([(await ask(one)).status, (await shake(one)).status]).toEqual([502, 502]);
    await put('ca.pem', testCertificate + nextCertificate);
    await eventually('the other authority', async () => (await ask(one)).status === 200 || undefined);
    expect((await shake(one)).status).toBe(101);
  });

  it('502 for an unknown CA, an expired certificate or another name, and /readyz names the cause', async () => {
    const ca = await put('ca.pem', testCertificate + expiredCertificate);
    const untrusted = await start(undefined);
    const misnamed = await start({ ca, serverName: 'other.example' });
    const expired = await start({ ca, serverName: 'localhost' });
    expect((await ask(expired)).status).toBe(200);
    server.setSecureContext({ ...ended, ca: [testCertificate] });
    const seen: [RunningShopward, string][] = [
      [expired, 'CERT_HAS_EXPIRED'],
      [misnamed, 'ERR_TLS_CERT_ALTNAME_INVALID'],
      [untrusted, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ];
    for (const [one, fault] of seen) {
      if (one !== expired) server.setSecureContext({ ...ours, ca: [testCertificate] });
      const refused = await ask(one);
      expect([refused.status, String(refused.body)]).toEqual([
        502,
        expect.stringContaining('upstream-unreachable'),
      ]);
      // Only operators learn the cause.
      expect(String(refused.body)).not.toContain('certificate');
      expect((await shake(one)).status).toBe(502);
      await one.waitForLog((line) => line.status === 502 && line.fault === fault);
      const readyz = await fetch(`${one.adminUrl}/readyz`);
      expect([readyz.status, await readyz.text()]).toEqual([
        200,
        expect.stringContaining(`upstream: the last request failed: upstream-unreachable (${fault})`),
      ]);
    }
    expect((await ask(untrusted)).status).toBe(502);
  });

  it('sends the configured server name, never the Host of the client', async () => {
    const ca = await put('ca.pem', testCertificate);
    const byName = await start({ ca }, { forwardHost: true }, 'localhost');
    const byAddress = await start({ ca }, { forwardHost: true });
    const named = await start({ ca, serverName: 'localhost' }, { forwardHost: true });
    for (const [one, name] of [
      [byName, 'localhost'],
      [byAddress, 'false'],
      [named, 'localhost'],
    ] as const) {
      names = [];
      expect([(await ask(one, 'evil.example')).status, (await shake(one, 'evil.example')).status]).toEqual([
        200, 101,
      ]);
      expect(names).toEqual([name, name]);
    }
  });
});
