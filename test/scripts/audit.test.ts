import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';

const script = path.join(import.meta.dirname, '../../scripts/audit.ts');
const endings: (() => void)[] = [];
afterEach(() => {
  for (const end of endings.splice(0)) end();
});

/** A registry that answers a question for advisories so, and knows nothing else. */
async function startRegistry(status: number, answer: string): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    const isAsked = request.url === '/-/npm/v1/security/advisories/bulk';
    response.writeHead(isAsked ? status : 404, { 'Content-Type': 'application/json' });
    response.end(isAsked ? answer : '{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  endings.push(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

function audit(registry: string, ...args: string[]): Promise<{ code: number; said: string }> {
  const cache = mkdtempSync(path.join(tmpdir(), 'shopward-audit-'));
  endings.push(() => rmSync(cache, { recursive: true, force: true }));
  const env = {
    ...process.env,
    npm_config_registry: registry,
    npm_config_cache: cache,
    npm_config_fetch_retries: '0',
  };
  return new Promise((resolve) => {
    execFile(process.execPath, [script, ...args], { env, encoding: 'utf8' }, (error, said) =>
      resolve({ code: Number(error?.code ?? 0), said }),
    );
  });
}

const weak = JSON.stringify({
  pino: [
    { id: 1, url: 'https://advisories.example/1', title: 'Weak', severity: 'high', vulnerable_versions: '*' },
  ],
});

test.each([
  ['nothing known', 200, '{}', [], 0, /^audited: \d\d+ packages, 0 known weaknesses$/m],
  [
    'a weakness',
    200,
    weak,
    [],
    1,
    /^high: pino: Weak \(https:\S+\)\naudited: \d+ packages, 1 known weaknesses$/m,
  ],
  ['no such endpoint', 405, '', [], 0, /^not audited: .*\(405 Method Not Allowed\); nothing is known/m],
  ['no such endpoint, but an answer is required', 405, '', ['--required'], 2, /^not audited: /m],
  ['nonsense', 200, '<html>', ['--required'], 2, /^not audited: /m],
] as const)('%s', async (_, status, answer, args, code, said) => {
  const result = await audit(await startRegistry(status, answer), ...args);
  expect(result.said).toMatch(said);
  expect(result.code).toBe(code);
});

test('a registry that is away', async () => {
  const registry = await startRegistry(200, '{}');
  for (const end of endings.splice(0)) end();
  expect(await audit(registry)).toEqual({ code: 0, said: expect.stringMatching(/^not audited: /) });
});
