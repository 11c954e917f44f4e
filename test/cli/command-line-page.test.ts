import { execFile } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { makeFolder } from '../config/config-folder.ts';
import { bareEnvironment } from '../harness/shopward.ts';

const root = path.join(import.meta.dirname, '../..');
const page = readFileSync(path.join(root, 'docs/command-line.md'), 'utf8');

const openApi = `openapi: 3.0.0
info: { title: Shop API, version: "202512" }
paths:
  /carts: { get: &secured { tags: [carts], security: [{ B: [] }] }, post: *secured }
  /carts/{cartId}: { get: *secured, patch: *secured, delete: *secured }
  /quote-requests: { get: { tags: [quote-requests], security: [{ B: [] }] } }
  /stores: { get: { tags: [stores] } }
components:
  securitySchemes: { B: { type: http, scheme: bearer } }
`;

/** Commands of the page that need neither a running proxy nor a broken file, with the output that it shows. */
const shown = [
  ...page.matchAll(
    /^ {4}\$ (shopward (?:explain|protected|init) .*)\n((?: {4}(?!\$ ).*\n|\n(?= {4}(?!\$ )))+)/gm,
  ),
].map(([, command = '', output = '']) => [command, output.replace(/^ {4}/gm, '').trimEnd()] as const);

it('the page has such commands', () => {
  expect(shown.length).toBeGreaterThanOrEqual(9);
});

it.each(shown)('%s', async (command, output) => {
  const cwd = makeFolder({ 'openapi.yml': openApi });
  // What init writes must not be there before.
  if (!command.startsWith('shopward init'))
    cpSync(path.join(root, 'config'), path.join(cwd, 'config'), { recursive: true });
  const script = `shopward() { "${process.execPath}" "${root}/src/main.ts" "$@"; }\n${command} || true`;
  const env = { ...bareEnvironment, JWKS_URL: 'https://shop.example/jwks.json' };
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', script], { cwd, env });
  const pattern = output
    .split('\n')
    .map((line) => (line.trim() === '...' ? '[\\s\\S]*' : line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')))
    .join('\n')
    .replace(/\n\[\\s\\S\]\*(?=\n|$)/g, '[\\s\\S]*');
  expect(stdout.trimEnd()).toMatch(new RegExp(`^${pattern}$`));
});
