import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runServe } from '../../src/cli/serve.ts';
import { findMain } from '../harness/built-shopward.ts';
import { bareEnvironment, listOf } from '../harness/shopward.ts';
import { makeSigner, publicPem } from '../unit/access/signing.ts';

const main = findMain();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-bad-start-'));
  await writeFile(path.join(folder, 'public.pem'), publicPem(makeSigner('RS256')));
  await writeFile(path.join(folder, 'list.yaml'), listOf(['GET /orders']));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command until it ends. Kills it after 30 s. */
async function run(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const child = spawn(process.execPath, [main, ...args], {
    cwd: folder,
    env: { ...bareEnvironment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const tooLong = setTimeout(() => child.kill('SIGKILL'), 30_000);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const [code] = await once(child, 'close');
  clearTimeout(tooLong);
  return { code, stdout, stderr };
}

const good = `listen: { host: 127.0.0.1, port: 0 }
admin: { port: 0 }
upstream: { url: "http://127.0.0.1:9" }
protectedResources: list.yaml
auth: { keys: { files: [public.pem] } }
`;

async function serveWith(config: string, env?: Record<string, string>): Promise<Ended> {
  return run(['serve', '--config', await writeConfig(config)], env);
}

async function writeConfig(config: string): Promise<string> {
  const file = path.join(folder, 'shopward.yaml');
  await writeFile(file, config);
  return file;
}

/** The same in this process, which is faster. The exit code of a process is that of its verb. */
async function tryToStart(config: string, env: Record<string, string> = {}): Promise<Ended> {
  const lines: string[] = [];
  const io = { out: () => {}, err: (line: string) => void lines.push(line), cwd: folder, env };
  const code = await runServe({ config: await writeConfig(config) }, io);
  return { code, stdout: '', stderr: lines.join('\n') };
}

describe('a bad configuration ends with 78 and names every problem', () => {
  it('several at once, each with file, line and column', async () => {
    const { code, stdout, stderr } = await serveWith(
      `${good.replace('list.yaml', 'missing.yaml')}modes: enforce\nlimits: { requestBody: 2 parsecs }\ntrustedProxies: [not-an-address]\nstore: { url: "ftp://x" }\n`,
    );
    expect(code).toBe(78);
    expect(stdout).toBe('');
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
    const { code, stderr } = await serveWith(
      good.replace('files: [public.pem]', 'secret: "${JWT_SECRET}"').replace('9"', '9/${JWT_SECRET}"'),
      { JWT_SECRET: 'c4nary' },
    );
    expect(code).toBe(78);
    expect(stderr).not.toContain('c4nary');
  });

  it.each([
    [{ NODE_OPTIONS: '--insecure-http-parser' }, /insecure-http-parser/],
    [{ NODE_TLS_REJECT_UNAUTHORIZED: '0' }, /NODE_TLS_REJECT_UNAUTHORIZED/],
  ])('an unsafe runtime: %j', async (env, text) => {
    const { code, stderr } = await serveWith(good, env);
    expect(stderr).toMatch(text);
    expect(code).toBe(78);
  });
});

describe('a port in use', () => {
  it.each(['listen', 'admin'])('of %s is reported in one line', async (which) => {
    const taker = createServer().listen(0, '127.0.0.1');
    await once(taker, 'listening');
    const { port } = taker.address() as { port: number };
    const config =
      which === 'listen'
        ? good.replace('127.0.0.1, port: 0', `127.0.0.1, port: ${port}`)
        : good.replace('admin: { port: 0 }', `admin: { port: ${port} }`);
    const { code, stderr } = await serveWith(config);
    taker.close();
    expect(stderr).toMatch(new RegExp(`shopward cannot start: .*EADDRINUSE.*127\\.0\\.0\\.1:${port}`));
    expect(stderr).not.toMatch(/\n {4}at /);
    // Not 78, which is final for a supervisor: the port may be free in a moment.
    expect(code).toBe(75);
  });
});

describe('a bad command line ends with 2', () => {
  it.each([[['serv']], [['serve', '--conf', 'x']], [['serve', '--config']], [['--unknown']]])(
    '%j',
    async (args) => {
      const { code, stdout, stderr } = await run(args);
      expect(code).toBe(2);
      expect(stdout).toBe('');
      expect(stderr).toMatch(/error: .*\n(.*\n)*.*--help/);
    },
  );

  it('a missing configuration file ends with 78', async () => {
    const { code, stderr } = await run(['serve', '--config', 'nowhere.yaml']);
    expect(code).toBe(78);
    expect(stderr).toContain('nowhere.yaml');
  });

  it.each([[['--help']], [['--version']]])('%j ends with 0', async (args) => {
    const { code, stderr } = await run(args);
    expect([code, stderr]).toEqual([0, '']);
  });
});
