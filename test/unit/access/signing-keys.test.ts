import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSigningKeys } from '../../../src/access/signing-keys.ts';
import { makeSigner, publicPem } from './signing.ts';

const first = makeSigner('ES256', 'first');
const second = makeSigner('ES256', 'second');
const now = () => 5_999;
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signing-keys-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** A logger that records its lines: level, fields and text. */
function recordLog() {
  const lines: object[] = [];
  const at = (level: string) => (fields: object, text: string) => void lines.push({ level, ...fields, text });
  return { lines, log: { info: at('info'), warn: at('warn'), error: at('error'), debug: at('debug') } };
}

function valuesOf({ metrics }: ReturnType<typeof createSigningKeys>) {
  return Object.fromEntries((metrics ?? []).map((metric) => [metric.name, metric.value()]));
}

test('a secret has no fingerprint in describe; the metrics count one key', () => {
  const secret = { keys: { secret: 'x'.repeat(48) }, algorithms: ['HS256', 'HS384'] };
  const keys = createSigningKeys(secret, now, recordLog().log);
  const described = { issuer: null, kid: null, fingerprint: null, sinceMs: expect.any(Number) };
  expect(keys.describe()).toEqual(['HS256', 'HS384'].map((name) => ({ ...described, algorithms: [name] })));
  expect(valuesOf(keys)).toEqual({
    shopward_keys: 1,
    shopward_keys_last_load_success: 1,
    shopward_keys_last_load_success_timestamp_seconds: 0,
    shopward_key_load_failures: 0,
  });
});

describe('key files', () => {
  const open = async (name: string, text: string) => {
    const file = join(folder, name);
    await writeFile(file, text);
    const { lines, log } = recordLog();
    const keys = createSigningKeys({ keys: { files: [file] }, algorithms: ['ES256'] }, now, log);
    return { file, lines, keys };
  };

  test('log a reload and a refused reload; after a refused one the last good keys stay', async () => {
    const { file, lines, keys } = await open('a.pem', publicPem(first));
    await keys.start?.();
    // The first read is not logged.
    expect([lines, keys.health().text]).toEqual([[], 'one usable key']);
    keys.useSecret('x'.repeat(48));
    const [before] = keys.describe();
    expect(before).toMatchObject({
      kid: null,
      algorithms: ['ES256'],
      fingerprint: expect.stringMatching(/^.{12}$/),
    });

    await writeFile(file, publicPem(first) + publicPem(second));
    await keys.reload?.();
    expect(lines.at(0)).toMatchObject({ level: 'info', event: 'keys-reloaded', keys: 2 });
    expect(keys.health()).toMatchObject({ status: 'ok', text: '2 usable keys' });
    // The first key keeps its sinceMs.
    expect(keys.describe().find(({ fingerprint }) => fingerprint === before?.fingerprint)).toEqual(before);

    await writeFile(file, 'nonsense');
    await keys.reload?.();
    expect(lines.findLast((line) => 'problems' in line)).toMatchObject({
      level: 'error',
      event: 'keys-refused',
      problems: [{ file, text: 'contains neither PEM nor JSON' }],
    });
    const fault = 'unusable: the log (keys-refused) names the file';
    expect(keys.health()).toMatchObject({
      status: 'degraded',
      reasons: [`keys were not refreshed, the last good ones are used: ${fault}`],
      text: `not refreshed, the last good keys are used: ${fault}`,
    });
    expect(keys.health().isUnready).toBeUndefined();
    expect(valuesOf(keys)).toMatchObject({
      shopward_keys: 2,
      shopward_keys_last_load_success: 0,
      shopward_keys_last_load_success_timestamp_seconds: 5,
    });
    expect(valuesOf(keys).shopward_key_load_failures).toBeGreaterThan(0);
    keys.close?.();
  });

  test('without a usable key: start rejects', async () => {
    const { keys } = await open('c.pem', '{"keys":[]}');
    await expect(keys.start?.()).rejects.toThrow('no key here fits');
    expect(keys.health()).toMatchObject({ status: 'down', isUnready: true });
    keys.close?.();
  });
});
