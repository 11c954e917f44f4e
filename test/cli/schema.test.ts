import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { runSchema } from '../../src/cli/check.ts';
import { runVersion, version } from '../../src/cli/command-io.ts';
import { runCommand } from './command-run.ts';

async function printedSchema(which?: string): Promise<z.ZodType> {
  const { code, out } = await runCommand((io) => runSchema(which, io));
  expect(code).toBe(0);
  return z.fromJSONSchema(JSON.parse(out.join('\n')));
}

describe('schema', () => {
  it.each([
    ['config/shopward.yaml', 'config'],
    ['config/protected-resources.yaml', 'protected-resources'],
    ['config/protected-resources.hardened.yaml', 'protected-resources'],
  ])('accepts the shipped %s', async (file, which) => {
    const text = readFileSync(file, 'utf8');
    expect(text).toMatch(
      /^# yaml-language-server: \$schema=\.\/(shopward|protected-resources)\.schema\.json\n/,
    );
    expect((await printedSchema(which)).safeParse(parse(text)).error).toBeUndefined();
  });

  const auth = { keys: { jwks: '${JWKS_URL}' } };
  it.each([
    ['a reference for a number', { auth, listen: { port: '${PORT}' } }, true],
    ['a reference for a list', { auth, trustedProxies: '${PROXIES:-}' }, true],
    ['a reference for a duration', { auth, store: { timeout: '${T}' } }, true],
    ['a reference for a switch', { auth, admin: '${ADMIN:-false}' }, true],
    ['an unknown key', { auth, lisen: {} }, false],
    ['an unknown key of a section', { auth, listen: { prot: 1 } }, false],
    ['no keys', {}, false],
    ['a duration without a unit', { auth, store: { timeout: '5' } }, false],
    ['a text for a number', { auth, listen: { port: '80' } }, false],
  ])('%s', async (_name, value, isRight) => {
    expect((await printedSchema()).safeParse(value).success).toBe(isRight);
  });

  it.each([
    ['a list that was cut off', { groups: { Carts: ['GET /carts'] } }, false],
    ['a group without rows', { groups: { Carts: [] }, complete: true }, false],
    ['no method', { groups: { Carts: ['/carts'] }, complete: true }, false],
    [
      'a long row',
      { groups: { Carts: [{ match: 'ANY /**', scopes: ['a'], observe: true }] }, complete: true },
      true,
    ],
    [
      'an unknown key of a row',
      { groups: { Carts: [{ match: 'ANY /**', scope: 'a' }] }, complete: true },
      false,
    ],
  ])('protected-resources: %s', async (_name, value, isRight) => {
    expect((await printedSchema('protected-resources')).safeParse(value).success).toBe(isRight);
  });

  it.each(['quux', 'toString', '__proto__'])('knows no %s', async (which) => {
    expect(await runCommand((io) => runSchema(which, io))).toEqual({
      code: 2,
      out: [''],
      err: ['there is no such schema: choose config or protected-resources'],
    });
  });
});

it('version', async () => {
  expect(version).toMatch(/^\d+\.\d+\.\d+/);
  expect((await runCommand((io) => runVersion({}, io))).out.slice(0, 2)).toEqual([
    `shopward ${version}`,
    `node ${process.version}`,
  ]);
  const { out } = await runCommand((io) => runVersion({ json: true }, io));
  expect(JSON.parse(out.join(''))).toEqual(
    expect.objectContaining({ shopward: version, node: process.version }),
  );
});
