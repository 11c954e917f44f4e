import { X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ConnectionOptions, connect } from 'node:tls';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { certificateNotice } from '../../src/config/certificates.ts';
import { type EchoUpstream, startEchoUpstream } from '../harness/echo-upstream.ts';
import { childrenOf } from '../harness/children-of.ts';
import { eventually } from '../harness/eventually.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { startRedis } from '../harness/redis-processes.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { type RunningShopward, type Shopward, startShopward } from '../harness/shopward.ts';
import { refuseHere, startShopwardHere } from '../harness/shopward-here.ts';
import {
  expiredCertificate,
  expiredPair,
  nextCertificate,
  nextKey,
  nextPair,
  testCertificate,
  testKey,
  testPair,
} from '../harness/tls-fixture.ts';
import { startJwksServer } from '../unit/access/jwks-server.ts';
import { makeHmacToken, makeSigner } from '../unit/access/signing.ts';

const secrets = ['first-secret-of-forty-characters-or-more-x', 'second-secret-of-forty-characters-or-more'];
const adminTokens = ['first-token-of-operators', 'second-token-of-operators'];

let upstream: EchoUpstream;
let folder: string;
let shopward: RunningShopward;

beforeAll(async () => {
  upstream = await startEchoUpstream();
});
afterAll(() => upstream?.close());
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-secrets-'));
});
afterEach(async () => {
  await shopward?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Writes files as kubelet writes a Secret: into a new folder, to which `..data` then points. */
let generation = 0;
async function mount(files: Readonly<Record<string, string>>): Promise<void> {
  const name = `..2026_${generation++}`;
  await mkdir(path.join(folder, name));
  for (const [file, text] of Object.entries(files)) await writeFile(path.join(folder, name, file), text);
  await symlink(name, path.join(folder, '..data_tmp'));
  await rename(path.join(folder, '..data_tmp'), path.join(folder, '..data'));
  for (const file of Object.keys(files)) {
    await symlink(path.join('..data', file), path.join(folder, file)).catch(() => {});
  }
}

/** Replaces a file by a rename, as editors and deployment tools do. */
async function replace(file: string, text: string): Promise<void> {
  await writeFile(path.join(folder, `${file}.new`), text);
  await rename(path.join(folder, `${file}.new`), path.join(folder, file));
}

const settings = (config: object) => ({
  upstream: `http://127.0.0.1:${upstream.port}`,
  rows: ['GET /secret'],
  config,
});
const start = (config: object) => startShopwardHere(settings(config));
/** A process, for tests that need signals or workers. */
async function startProcess(config: object): Promise<Shopward> {
  const one = await startShopward(settings(config));
  shopward = one;
  return one;
}
const fromFile = (name: string) => `\${file:${path.join(folder, name)}}`;

const ask = async (secret: string, shop = shopward) => {
  const now = Math.floor(Date.now() / 1000);
  const token = makeHmacToken(secret, { sub: 'DE--21', iat: now - 1, exp: now + 600 });
  const fields = `Host: shop.example\r\nAuthorization: Bearer ${token}\r\n`;
  return (await exchangeRaw(shop.port, `GET /secret HTTP/1.1\r\n${fields}\r\n`)).status;
};
const until = (what: string, isSo: () => Promise<boolean>) =>
  eventually(what, async () => (await isSo()) || undefined);

async function admin(page: string, token: string): Promise<Response> {
  return await fetch(shopward.adminUrl + page, { headers: { Authorization: `Bearer ${token}` } });
}

const hmac = () => ({
  auth: { algorithms: ['HS256'], keys: { secret: fromFile('jwt') } },
  admin: { token: fromFile('admin') },
});

describe('files with secrets', () => {
  it('a rotated secret is reloaded, and tokens signed with the old one are refused', async () => {
    await mount({ jwt: `${secrets[0]}\n`, admin: adminTokens[0] ?? '' });
    shopward = await start(hmac());
    expect([await ask(secrets[0] ?? ''), await ask(secrets[1] ?? '')]).toEqual([200, 401]);
    await mount({ jwt: `${secrets[1]}\n`, admin: adminTokens[1] ?? '' });
    await until('the new secret', async () => (await ask(secrets[1] ?? '')) === 200);
    expect(await ask(secrets[0] ?? '')).toBe(401);
    await until('the new admin token', async () => (await admin('/metrics', adminTokens[1] ?? '')).ok);
    expect((await admin('/metrics', adminTokens[0] ?? '')).status).toBe(401);
    for (const secret of [...secrets, ...adminTokens]) expect(shopward.output()).not.toContain(secret);
  });

  it('an invalid secret is reported in log, metrics, /readyz and console, and the last good one stays in force', async () => {
    await writeFile(path.join(folder, 'jwt'), secrets[0] ?? '');
    await writeFile(path.join(folder, 'admin'), adminTokens[0] ?? '');
    shopward = await start(hmac());
    await replace('jwt', 'short-c4nary');
    const line = await shopward.waitForLog(({ event }) => event === 'secrets-refused');
    const text = 'must have at least 32 bytes for HS256';
    expect(line).toMatchObject({ level: 'error', problems: [expect.stringContaining(text)] });
    expect(line.problems).toEqual([
      expect.stringMatching(/shopward\.yaml:\d+:\d+: error: auth\.keys\.secret/),
    ]);
    expect(await ask(secrets[0] ?? '')).toBe(200);
    const token = adminTokens[0] ?? '';
    expect(await (await admin('/metrics', token)).text()).toContain(
      'shopward_secrets_last_reload_success 0\n',
    );
    const readyz = await admin('/readyz', token);
    expect([readyz.status, await readyz.text()]).toEqual([200, expect.stringContaining('not in force: ')]);
    expect(await (await admin('/api/state', token)).text()).toContain(text);

    await replace('jwt', secrets[1] ?? '');
    await until('the good secret', async () => (await ask(secrets[1] ?? '')) === 200);
    expect(await (await admin('/metrics', token)).text()).toContain(
      'shopward_secrets_last_reload_success 1\n',
    );
    expect(await (await admin('/readyz', token)).json()).toEqual({ status: 'ready', reasons: [] });
    expect(shopward.output()).not.toContain('c4nary');
  });

  it('a changed secret that needs a restart is named in the log', async () => {
    await writeFile(path.join(folder, 'digest'), 'a-key-of-digests-1');
    shopward = await start({ refreshTokens: { digestKey: fromFile('digest') } });
    await replace('digest', 'a-key-of-digests-2');
    const line = await shopward.waitForLog(({ event }) => event === 'restart-needed');
    expect(line).toMatchObject({ level: 'warn', settings: ['refreshTokens.digestKey'] });
    expect(shopward.output()).not.toContain('a-key-of-digests');
  });

  it('SIGHUP reloads the secrets; a removed file is refused, and the last good secret stays', async () => {
    await writeFile(path.join(folder, 'jwt'), secrets[0] ?? '');
    await writeFile(path.join(folder, 'admin'), adminTokens[0] ?? '');
    const { signal } = await startProcess(hmac());
    await rm(path.join(folder, 'jwt'));
    signal('SIGHUP');
    const { problems } = await shopward.waitForLog(({ event }) => event === 'secrets-refused');
    expect(problems).toEqual([expect.stringContaining('there is no such file')]);
    expect(await ask(secrets[0] ?? '')).toBe(200);
    await writeFile(path.join(folder, 'jwt'), secrets[1] ?? '');
    signal('SIGHUP');
    await until('the new secret', async () => (await ask(secrets[1] ?? '')) === 200);
  });
});

describe('a key set', () => {
  it('is fetched at SIGHUP, although no refresh is due', async () => {
    const first = makeSigner('RS256', 'first');
    const second = makeSigner('RS256', 'second');
    const keyServer = await startJwksServer(first);
    try {
      const { signal } = await startProcess({ auth: { keys: { jwks: keyServer.url } } });
      await until('the first keys', async () => keyServer.hits > 0);
      await shopward.waitForLog(({ event }) => event === 'keys-reloaded');
      keyServer.serve(first, second);
      signal('SIGHUP');
      await until('both keys', async () =>
        shopward.log().some(({ event, keys }) => event === 'keys-reloaded' && keys === 2),
      );
    } finally {
      await keyServer.close();
    }
  });
});

describe('workers', () => {
  let redis: RedisProcess;
  beforeAll(async () => {
    redis = await startRedisProcess();
  });
  afterAll(() => redis?.close());

  it('a rotated secret reaches all workers', async () => {
    await writeFile(path.join(folder, 'jwt'), secrets[0] ?? '');
    await writeFile(path.join(folder, 'admin'), adminTokens[0] ?? '');
    const store = { url: `redis://127.0.0.1:${redis.port}` };
    const { pid } = await startProcess({ ...hmac(), workers: 2, store });
    // The kernel chooses the worker of each connection, so there are enough to reach both.
    const statuses = async (secret: string) =>
      (await Promise.all(Array.from({ length: 32 }, () => ask(secret)))).join();
    const all = (status: number) => Array(32).fill(status).join();
    expect(await statuses(secrets[0] ?? '')).toBe(all(200));
    await replace('jwt', secrets[1] ?? '');
    await until('the new secret', async () => (await statuses(secrets[1] ?? '')) === all(200));
    expect(await statuses(secrets[0] ?? '')).toBe(all(401));
    const { worker } = await shopward.waitForLog(({ event }) => event === 'request');
    expect(worker).toBeTypeOf('number');
    await replace('admin', adminTokens[1] ?? '');
    await until('the new admin token', async () => (await admin('/metrics', adminTokens[1] ?? '')).ok);
    const reloads = () => shopward.log().filter(({ event }) => event === 'secrets-reloaded').length;
    await eventually('the line of the second reload', () => reloads() === 2 || undefined);
    // A worker that starts later has the new secret, too.
    process.kill(childrenOf({ pid })[0] ?? Number.NaN, 'SIGKILL');
    await shopward.waitForLog(({ event }) => event === 'worker-replaced');
    expect(await statuses(secrets[1] ?? '')).toBe(all(200));
  });
});

describe('listen.tls', () => {
  const files = () => ({ cert: path.join(folder, 'cert'), key: path.join(folder, 'key') });
  const serialOf = (pem: string) => new X509Certificate(pem).serialNumber;
  const served = (port: number) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().serialNumber);
        socket.destroy();
      }).on('error', reject);
    });

  it('a renewed certificate is served to new connections, a certificate with the key of another is refused', async () => {
    await mount(testPair);
    shopward = await start({ listen: { tls: files() } });
    expect(await served(shopward.port)).toBe(serialOf(testCertificate));
    await mount({ cert: nextCertificate, key: testKey });
    const { problems } = await shopward.waitForLog(({ event }) => event === 'secrets-refused');
    expect(problems).toEqual([expect.stringContaining('the private key is not that of the certificate')]);
    expect(await served(shopward.port)).toBe(serialOf(testCertificate));
    await mount(nextPair);
    await until('the new one', async () => (await served(shopward.port)) === serialOf(nextCertificate));
    expect(shopward.output()).not.toContain('PRIVATE KEY');
  });

  it('refuses ciphers without forward secrecy or AEAD, and versions before TLS 1.2 or minVersion', async () => {
    await mount(testPair);
    shopward = await start({ listen: { tls: files() } });
    const agreed = (options: ConnectionOptions) =>
      new Promise<string>((resolve) => {
        const target = { port: shopward.port, host: '127.0.0.1', rejectUnauthorized: false };
        const socket = connect({ ...target, ...options }, () => {
          resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
          socket.destroy();
        }).on('error', () => resolve('refused'));
      });
    const cipher = (ciphers: string): ConnectionOptions => ({ ciphers, maxVersion: 'TLSv1.2' });
    expect(await agreed({})).toMatch(/^TLSv1\.3 /);
    expect(await agreed(cipher('ECDHE-ECDSA-AES128-GCM-SHA256'))).toBe(
      'TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256',
    );
    expect(await agreed(cipher('ECDHE-ECDSA-AES128-SHA:AES128-SHA:@SECLEVEL=0'))).toBe('refused');
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
    expect(await agreed(old)).toBe('refused');
    await shopward.stop();

    shopward = await start({ listen: { tls: { ...files(), minVersion: 'TLSv1.3' } } });
    expect(await agreed(cipher('ECDHE-ECDSA-AES128-GCM-SHA256'))).toBe('refused');
    // A renewed certificate does not change the minimum version.
    await mount(nextPair);
    await until('the new one', async () => (await served(shopward.port)) === serialOf(nextCertificate));
    expect(await agreed(cipher('ECDHE-ECDSA-AES128-GCM-SHA256'))).toBe('refused');
  });

  it('an expired certificate is served, and reported in the output, /readyz and metrics', async () => {
    await mount(expiredPair);
    shopward = await start({ listen: { tls: files() } });
    expect(await served(shopward.port)).toBe(serialOf(expiredCertificate));
    expect(shopward.output()).toMatch(/: warning: listen\.tls names \S+: the certificate has expired/);
    const { reasons } = (await (await fetch(`${shopward.adminUrl}/readyz`)).json()) as { reasons: string[] };
    expect(reasons).toContain('listen.tls: the certificate has expired (2021-01-01)');
    expect(await (await fetch(`${shopward.adminUrl}/metrics`)).text()).toContain(
      `shopward_certificate_expiry_timestamp_seconds{setting="listen.tls"} ${Date.UTC(2021, 0, 1) / 1000}`,
    );
  });

  it.each([
    [15, undefined],
    [14.5, undefined],
    [13.5, 'the certificate expires in 13 days (2030-01-14)'],
    [1.5, 'the certificate expires in 1 day (2030-01-02)'],
    [0, 'the certificate has expired (2030-01-01)'],
    [Number.NaN, undefined],
  ])('notice for a certificate that ends in %d days', (days, notice) => {
    const now = Date.UTC(2030, 0, 1);
    expect(certificateNotice(now + days * 86_400_000, now)).toBe(notice);
  });

  it('exits with 78 and the line of the setting if the key is not that of the certificate', async () => {
    await mount({ cert: testCertificate, key: nextKey });
    const { code, output } = await refuseHere(settings({ listen: { tls: files() } }));
    expect(code).toBe(78);
    expect(output).toMatch(
      /shopward\.yaml:\d+:\d+: error: listen\.tls names \S+ and \S+: the private key is not that of the certificate/,
    );
  });
});

it('new connections to Redis use a changed password and CA; until then /readyz names the setting', async () => {
  const pems = { 'cert.pem': testCertificate, 'key.pem': testKey, 'next.pem': nextCertificate };
  for (const [name, text] of Object.entries({ ...pems, 'next-key.pem': nextKey, 'ca.pem': testCertificate }))
    await writeFile(path.join(folder, name), text);
  await writeFile(path.join(folder, 'password'), 'sesame-one');
  const of = (name: string) => path.join(folder, name);
  const files = { 'tls-cert-file': of('cert.pem'), 'tls-key-file': of('key.pem') };
  const redis = await startRedis({
    tls: true,
    settings: {
      ...files,
      'tls-ca-cert-file': of('cert.pem'),
      'tls-auth-clients': 'no',
      requirepass: 'sesame-one',
    },
  });
  const direct = new Redis(Number(new URL(redis.url).port), '127.0.0.1', {
    password: 'sesame-one',
    tls: { rejectUnauthorized: false },
  });
  try {
    const url = `rediss://:${fromFile('password')}@127.0.0.1:${new URL(redis.url).port}`;
    shopward = await start({ store: { url, tls: { ca: of('ca.pem') } } });
    const readiness = async () => (await fetch(`${shopward.adminUrl}/readyz`)).text();
    const others = async () =>
      String(await direct.call('CLIENT', 'LIST'))
        .split('\n')
        .filter((line) => /cmd=(?!client)/.test(line));
    const cut = async () => {
      // Closes the connections of the proxy; SKIPME keeps the test's own.
      await direct.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    };
    await until('a connection', async () => (await others()).length > 0);
    await direct.call('CONFIG', 'SET', 'requirepass', 'sesame-two');
    await cut();
    await until('the setting', async () => /WRONGPASS.*store\.url/.test(await readiness()));
    await replace('password', 'sesame-two');
    await until('the new password', async () => (await others()).length > 0);
    await direct.call('CONFIG', 'SET', 'tls-cert-file', of('next.pem'), 'tls-key-file', of('next-key.pem'));
    await cut();
    await until('the setting', async () => /certificate.*store\.tls\.ca/.test(await readiness()));
    await replace('ca.pem', nextCertificate);
    await until('the new authority', async () => (await others()).length > 0);
    expect(shopward.output()).not.toContain('sesame');
  } finally {
    direct.disconnect();
    await redis.close();
  }
});
