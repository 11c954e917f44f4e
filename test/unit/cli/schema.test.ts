import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';

const schemaOf = (name: 'shopward' | 'protected-resources') =>
  z.fromJSONSchema(JSON.parse(readFileSync(`config/${name}.schema.json`, 'utf8')));

describe('schema', () => {
  it.each([
    ['config/shopward.yaml', 'shopward'],
    ['config/protected-resources.yaml', 'protected-resources'],
    ['config/protected-resources.hardened.yaml', 'protected-resources'],
  ] as const)('accepts the shipped %s', (file, which) => {
    const text = readFileSync(file, 'utf8');
    expect(text).toMatch(
      /^# yaml-language-server: \$schema=\.\/(shopward|protected-resources)\.schema\.json\n/,
    );
    expect(schemaOf(which).safeParse(parse(text)).error).toBeUndefined();
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
  ])('accepts references and refuses mistakes: %s', (_name, value, isRight) => {
    expect(schemaOf('shopward').safeParse(value).success).toBe(isRight);
  });

  it.each([
    ['a truncated list', { groups: { Carts: ['GET /carts'] } }, false],
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
  ])('protected-resources: accepts a long row and refuses mistakes: %s', (_name, value, isRight) => {
    expect(schemaOf('protected-resources').safeParse(value).success).toBe(isRight);
  });
});
