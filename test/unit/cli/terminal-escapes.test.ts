import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listen } from '../../harness/listen.ts';
import { runHere } from './command-line-here.ts';

/** Sets a title, clears the screen, hides text, reverses the direction of text, and forges a line. */
const hostile = 'x\u001b]0;owned\u0007\u001b[2J\u009b31m\u0085\u202e\u2028\rall is well';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-terminal-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Both streams of a command. */
async function run(...args: string[]): Promise<string> {
  const { stdout, stderr } = await runHere(args, { cwd: folder });
  return stdout + stderr;
}

async function writeConfig(name: string): Promise<string> {
  await writeFile(path.join(folder, `list-${name}`), 'groups: { A: [GET /carts] }\ncomplete: true\n');
  const auth = 'auth: { keys: { secret: "a secret of no worth, long enough" }, algorithms: [HS256] }';
  await writeFile(path.join(folder, name), `protectedResources: list-${name}\n${auth}\n`);
  return path.join(folder, name);
}

function expectHarmless(output: string): void {
  expect(output).toMatch(/\\u001b|\\u009b|all is well/);
  expect(output).not.toMatch(/[^\P{Cc}\n\t]|[\u2028\u2029\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/u);
}

test('verify escapes the text of a server', async () => {
  const server = createServer((_, response) =>
    response.writeHead(401).end(JSON.stringify({ errors: [{ code: `${hostile}\nok  list  all rows` }] })),
  );
  const { url, close } = await listen(server);
  try {
    const config = await writeConfig('verified.yaml');
    const output = await run('verify', url, '--config', config);
    expectHarmless(output);
    expect(output).not.toMatch(/^ok {2}list/m);
  } finally {
    await close();
  }
});

test('protected import escapes the text of a document', async () => {
  const document = path.join(folder, 'api.json');
  const operation = { responses: {}, security: [{ [hostile]: [] }] };
  const paths = { [`/${hostile}\n/second`]: { get: operation }, '/good': { get: operation } };
  await writeFile(document, JSON.stringify({ openapi: '3.0.0', info: { title: hostile }, paths }));
  expectHarmless(await run('protected', 'import', document));
});

test.each([
  ['a target', ['explain', 'GET', `/carts/${hostile}`]],
  ['a record', ['explain', JSON.stringify({ method: 'GET', path: `/carts/${hostile}`, reason: hostile })]],
  ['a pasted command', ['explain', `curl 'http://shop.example/carts/${hostile}'`]],
])('explain escapes %s', async (_, args) => {
  expectHarmless(await run(...args, '--config', await writeConfig('explained.yaml')));
});

test('check escapes the text of a list', async () => {
  const list = path.join(folder, 'list.yaml');
  const group = JSON.stringify(`group ${hostile}`);
  await writeFile(
    list,
    `groups:\n  ${group}:\n    - GET /carts\n    - GET /carts\n    - ${JSON.stringify(`get /${hostile}`)}\ncomplete: true\n`,
  );
  await writeFile(
    path.join(folder, 'shopward.yaml'),
    `protectedResources: list.yaml\n${JSON.stringify(hostile)}: 1\nauth: { keys: { secret: "a secret of no worth, long enough" }, algorithms: [HS256] }\n`,
  );
  expectHarmless(await run('check', '--config', path.join(folder, 'shopward.yaml')));
});
