import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeFolder } from '../config/config-folder.ts';
import { findMain } from '../../harness/built-shopward.ts';
import { eventually } from '../../harness/eventually.ts';
import { freePort } from '../../harness/free-port.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import { nextCertificate, testCertificate, testKey } from '../../harness/tls-fixture.ts';

const secret = 's'.repeat(40);

/** A Redis with a certificate of a private CA, and a folder with a configuration that uses it. */
async function openStage() {
  const folder = makeFolder({
    'cert.pem': testCertificate,
    'key.pem': testKey,
    'other.pem': nextCertificate,
  });
  const file = (name: string) => path.join(folder, name);
  const settings = {
    ...{ 'tls-cert-file': file('cert.pem'), 'tls-key-file': file('key.pem') },
    ...{ 'tls-ca-cert-file': file('cert.pem'), 'tls-auth-clients': 'no' },
  };
  const redis = await startRedis({ tls: true, settings });
  onTestFinished(() => redis.close());
  const [port, adminPort] = [await freePort(), await freePort()];
  const configure = (ca: string) =>
    writeFileSync(
      file('shopward.yaml'),
      JSON.stringify({
        ...{ listen: { port }, admin: { port: adminPort }, upstream: { url: 'http://127.0.0.1:9' } },
        ...{ auth: { algorithms: ['HS256'], keys: { secret } }, refreshTokens: { digestKey: secret } },
        store: { url: redis.url, tls: { ca } },
      }),
    );
  writeFileSync(file('protected-resources.yaml'), 'groups: { A: [GET /a] }\ncomplete: true\n');
  configure('cert.pem');
  return { folder, configure, adminPort };
}

function run(folder: string, words: readonly string[]): Promise<{ code: number; text: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [findMain(), ...words], { cwd: folder }, (fault, stdout, stderr) =>
      resolve({ code: Number(fault?.code ?? 0), text: stdout + stderr }),
    );
  });
}

it('every verb that opens the store trusts its private CA, as serve does', async () => {
  const { folder, configure, adminPort } = await openStage();
  const config = ['--config', 'shopward.yaml'];
  for (const [words, text] of [
    [['tokens', 'list'], /^0 refresh tokens$/m],
    [['tokens', 'revoke', '--subject', 'DE--1'], /^all refresh tokens of subject [\w-]+ are revoked$/m],
    [['tokens', 'purge-expired'], /^deleted 0 expired refresh tokens$/m],
  ] as const)
    expect(await run(folder, [...words, ...config])).toEqual({
      code: 0,
      text: expect.stringMatching(text),
    });

  const serve = spawn(process.execPath, [findMain(), 'serve', ...config], { cwd: folder, stdio: 'ignore' });
  onTestFinished(() => void serve.kill('SIGKILL'));
  const state = await eventually('store in use', async () => {
    const reply = await fetch(`http://127.0.0.1:${adminPort}/api/state`).catch(() => undefined);
    const { parts = [] } = ((await reply?.json()) ?? {}) as { parts?: { id: string; status: string }[] };
    return parts.find(({ id, status }) => id === 'store' && status === 'ok');
  });
  expect(state.status).toBe('ok');
  const ended = once(serve, 'exit');
  serve.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);

  configure('other.pem');
  const refused = await run(folder, ['tokens', 'list', ...config]);
  expect(refused).toEqual({
    code: 1,
    text: expect.stringMatching(/\(certificate: [A-Z_]+\): look at store\.url, store\.tls/),
  });
}, 60_000);
