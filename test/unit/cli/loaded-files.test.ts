import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';

const root = path.join(import.meta.dirname, '../../..');

/** Prints each loaded file, each use of code from text, and at the end the loaded modules of Node. */
const hooks = `import { registerHooks } from 'node:module';
registerHooks({ load(url, context, next) {
  if (url.startsWith('file:')) process.stderr.write(url + '\\n');
  return next(url, context);
} });
globalThis.Function = new Proxy(Function, { construct(target, texts) {
  process.stderr.write('code from text\\n');
  return new target(...texts);
} });
process.on('exit', () => process.stderr.write(process.moduleLoadList.join('\\n') + '\\n'));`;

/** Files relative to the repository, and module names of Node. */
async function loadedBy(args: readonly string[], whileItRuns: (child: ChildProcess) => void = () => {}) {
  const preload = `data:text/javascript,${encodeURIComponent(hooks)}`;
  const child = spawn(process.execPath, ['--import', preload, 'src/main.ts', ...args], {
    cwd: root,
    env: { ...process.env, JWKS_URL: 'https://shop.example/keys' },
  });
  let printed = '';
  child.stderr.on('data', (text) => {
    printed += text;
    if (/is listening on/.test(text)) whileItRuns(child);
  });
  const [code] = await once(child, 'close');
  const lines = printed.split('\n');
  const files = lines.filter((line) => line.startsWith('file:'));
  return {
    code,
    files: files.map((url) => path.relative(root, fileURLToPath(url))),
    parts: lines.filter((line) => line.startsWith('NativeModule')),
    made: lines.filter((line) => line === 'code from text'),
  };
}

it('a health check loads the configuration, but no code of the proxy', async () => {
  const { files } = await loadedBy(['health', '--config', 'config/shopward.yaml']);
  expect(files).toContain('src/cli/admin-verbs.ts');
  expect(files).toContain('src/config/load.ts');
  const needless =
    /^src\/(?:app|proxy|server|cluster|access|url-resolver(?!\/envelope)|refresh-tokens|telemetry|upstream)\b/;
  // The configuration names refusals, so the rows of each feature are loaded.
  const rows = /\/refusal-rows\.ts$/;
  expect(files.filter((file) => needless.test(file) && !rows.test(file))).toEqual([]);
  const others = /^src\/cli\/(?:explain|verify|protected|serve|check|tokens)/;
  expect(files.filter((file) => others.test(file))).toEqual([]);
});

it('a serving proxy makes no code from text, and loads no other verb, no undici except llhttp and, without Redis, no Redis client', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'shopward-loaded-'));
  const file = path.join(folder, 'shopward.yaml');
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwks = http.createServer((_, response) => {
    response.end(JSON.stringify({ keys: [publicKey.export({ format: 'jwk' })] }));
  });
  await once(jwks.listen(0, '127.0.0.1'), 'listening');
  const isFetched = once(jwks, 'request');
  writeFileSync(
    file,
    stringify({
      listen: { host: '127.0.0.1', port: 0, drainDelay: '0s' },
      admin: { port: 0 },
      upstream: { url: 'http://127.0.0.1:9' },
      protectedResources: path.join(root, 'config/protected-resources.yaml'),
      auth: {
        algorithms: ['ES256'],
        keys: { jwks: `http://127.0.0.1:${(jwks.address() as AddressInfo).port}/` },
      },
    }),
  );
  const { code, files, parts, made } = await loadedBy(['serve', '--config', file], async (child) => {
    await isFetched;
    child.kill();
  });
  jwks.close();
  rmSync(folder, { recursive: true });
  expect(code).toBe(0);
  expect(parts).toContain('NativeModule http');
  expect(made).toEqual([]);
  // No parser of command lines, and nothing that only the console or `check` uses.
  const needless =
    /commander|^src\/cli\/(?!serve\.|command-io\.|file-validators\.|keep-compiled\.)|^src\/cluster\/primary/;
  expect(files.filter((each) => needless.test(each))).toEqual([]);
  expect([...files, ...parts].filter((each) => /undici(?!\/lib\/llhttp\/)|ioredis/.test(each))).toEqual([]);
});
