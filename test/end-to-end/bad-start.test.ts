import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runServe } from '../../src/cli/serve.ts';
import { listOf } from '../harness/shopward.ts';
import { makeSigner, publicPem } from '../unit/access/signing.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-bad-start-'));
  await writeFile(path.join(folder, 'public.pem'), publicPem(makeSigner('RS256')));
  await writeFile(path.join(folder, 'list.yaml'), listOf(['GET /orders']));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const good = `listen: { host: 127.0.0.1, port: 0 }
admin: { port: 0 }
upstream: { url: "http://127.0.0.1:9" }
protectedResources: list.yaml
auth: { keys: { files: [public.pem] } }
`;

/** In this process: test/end-to-end/deploy/exit-codes.test.ts shows that a process ends with the code of its verb. */
async function tryToStart(text: string, env: Record<string, string> = {}) {
  const config = path.join(folder, 'shopward.yaml');
  await writeFile(config, text);
  const lines: string[] = [];
  const io = { out: () => {}, err: (line: string) => void lines.push(line), cwd: folder, env };
  return { code: await runServe({ config }, io), stderr: lines.join('\n') };
}

describe('a bad configuration ends with 78 and names every problem', () => {
  it('several at once, each with file, line and column', async () => {
    const { code, stderr } = await tryToStart(
      `${good.replace('list.yaml', 'missing.yaml')}modes: enforce\nlimits: { requestBody: 2 parsecs }\ntrustedProxies: [not-an-address]\nstore: { url: "ftp://x" }\n`,
    );
    expect(code).toBe(78);
    const problems = stderr.split('\n').filter((line) => / error: /.test(line));
    expect(problems.map((line) => /shopward\.yaml:(\d+:\d+): error: /.exec(line)?.[1])).toEqual(
      expect.arrayContaining(['4:21', '6:1', '7:24', '8:18', '9:15']),
    );
    expect(problems).toHaveLength(5);
  });

  it.each([
    ['text that is not YAML', 'listen: [', /error:/],
    ['two documents', `${good}---\n${good}`, /error:/],
    ['an empty file', '', /error:/],
    ['no keys', good.replace(/^auth.*$/m, 'auth: {}'), /auth/],
    ['a file without a key', good.replace('public.pem', 'list.yaml'), /list\.yaml/],
    ['a variable that is not set', good.replace('http://127.0.0.1:9', '${NOT_SET}'), /NOT_SET/],
    ['an upstream with dot segments', good.replace(':9"', ':9/../api"'), /upstream/],
    ['a misspelled key', `${good}protectedResource: x\n`, /protectedResources/],
    [
      'admin off loopback without a token',
      good.replace('{ port: 0 }\nup', '{ host: 0.0.0.0, port: 0 }\nup'),
      /token/,
    ],
  ])('%s', async (_, config, text) => {
    const { code, stderr } = await tryToStart(config);
    expect(stderr).toMatch(text);
    expect(stderr).not.toMatch(/\n {4}at /);
    expect(code).toBe(78);
  });

  it.each([
    ['that is not complete', 'groups:\n  Test:\n    - GET /orders\n', /complete/],
    ['without rows', 'groups: {}\ncomplete: true\n', /row/],
    ['with the same row twice', listOf(['GET /orders', 'GET /orders']), /the same row/],
    ['with a row that can never match', listOf(['GET /a/../b']), /never|dot/],
    ['that is cut off in a row', 'groups:\n  Test:\n    - GET /orders\n    - DEL', /error:/],
  ])('a protected list %s', async (_, list, text) => {
    await writeFile(path.join(folder, 'bad.yaml'), list);
    const { code, stderr } = await tryToStart(good.replace('list.yaml', 'bad.yaml'));
    expect(stderr).toMatch(text);
    expect(stderr).toMatch(/bad\.yaml:\d+:\d+: error: /);
    expect(code).toBe(78);
  });

  it('a secret is not printed', async () => {
    const { code, stderr } = await tryToStart(
      good.replace('files: [public.pem]', 'secret: "${JWT_SECRET}"').replace('9"', '9/${JWT_SECRET}"'),
      { JWT_SECRET: 'c4nary' },
    );
    expect(code).toBe(78);
    expect(stderr).not.toContain('c4nary');
  });
});
