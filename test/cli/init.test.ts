import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { runCheck } from '../../src/cli/check.ts';
import { type InitOptions, runInit } from '../../src/cli/init.ts';
import { makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';
import { document, secured } from './openapi-sample.ts';

const publicKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({
  type: 'spki',
  format: 'pem',
});

async function initIn(options: InitOptions, cwd = makeFolder()) {
  const done = await runCommand((io) => runInit(options, io), { cwd });
  const read = (name: string) => readFileSync(path.join(cwd, 'config', name), 'utf8');
  return { ...done, cwd, read };
}

/** What `check` says of the files, with a key file beside them. */
async function checkIn(cwd: string) {
  writeFileSync(path.join(cwd, 'config', 'public.pem'), publicKey);
  return runCommand((io) => runCheck({ config: 'config/shopward.yaml' }, io), { cwd });
}

const known = { upstream: 'http://127.0.0.1:9000', keys: 'public.pem' };

describe('init', () => {
  it('writes what a Spryker shop needs, and it passes the check without a word', async () => {
    const { code, out, cwd, read } = await initIn({ spryker: true, ...known });
    expect(code).toBe(0);
    expect(out.join('\n')).toContain('shopward serve --config config/shopward.yaml');
    const config = parse(read('shopward.yaml'));
    expect(config).toMatchObject({
      mode: 'observe',
      upstream: { url: known.upstream },
      auth: { keys: { files: ['public.pem'] }, subject: 'sub.customer_reference' },
    });
    expect(config).not.toHaveProperty('entityTags');
    expect(read('protected-resources.yaml')).toContain('/booked-services');
    const { code: checked, err } = await checkIn(cwd);
    expect({ checked, err }).toEqual({ checked: 0, err: [] });
  });

  it('makes the rows of any other shop out of its OpenAPI document, with nothing of Spryker', async () => {
    const cwd = makeFolder();
    writeFileSync(
      path.join(cwd, 'openapi.json'),
      JSON.stringify(document({ '/baskets': { get: secured, post: {} }, '/baskets/{id}': { put: secured } })),
    );
    const { code, read } = await initIn({ openapi: 'openapi.json', ...known }, cwd);
    expect(code).toBe(0);
    expect(parse(read('protected-resources.yaml')).groups.baskets).toEqual([
      'GET /baskets',
      'PUT /baskets/{id}',
    ]);
    const off = { entityTags: false, refreshTokens: false, urlResolver: false };
    expect(parse(read('shopward.yaml'))).toMatchObject({ mode: 'observe', ...off });
    expect((await checkIn(cwd)).code).toBe(0);
  });

  it('protects everything until rows are written', async () => {
    const { cwd, out, read } = await initIn({ blank: true, keys: 'https://shop.example/jwks.json' });
    expect(parse(read('protected-resources.yaml')).groups).toEqual({ Everything: ['ANY /**'] });
    expect(parse(read('shopward.yaml')).auth.keys).toEqual({ jwks: 'https://shop.example/jwks.json' });
    expect(out.join('\n')).toContain('UPSTREAM_URL=');
    expect((await checkIn(cwd)).code).toBe(0);
  });

  it('fills in addresses as they are given', async () => {
    const upstream = 'http://shop:9000/$&"\'';
    const { read } = await initIn({ blank: true, upstream, keys: "it's $1 mine.pem" });
    const { upstream: filled, auth } = parse(read('shopward.yaml'));
    expect([filled.url, auth.keys.files]).toEqual([upstream, ["it's $1 mine.pem"]]);
  });

  it('replaces nothing unless told to', async () => {
    const { cwd } = await initIn({ blank: true });
    writeFileSync(path.join(cwd, 'config/shopward.yaml'), 'mine');
    const again = await initIn({ spryker: true }, cwd);
    expect([again.code, again.read('shopward.yaml')]).toEqual([2, 'mine']);
    expect(again.err.join()).toContain('--force');
    expect((await initIn({ spryker: true, force: true }, cwd)).code).toBe(0);
  });

  it('writes nothing for a document that cannot be read, or has no row', async () => {
    for (const [text, code] of [
      ['{', 2],
      [JSON.stringify(document({ '/a': { get: {} } })), 1],
    ] as const) {
      const cwd = makeFolder();
      writeFileSync(path.join(cwd, 'openapi.json'), text);
      const done = await runCommand((io) => runInit({ openapi: 'openapi.json' }, io), { cwd });
      expect(done.code).toBe(code);
      expect(existsSync(path.join(cwd, 'config')) ? readdirSync(path.join(cwd, 'config')) : []).toEqual([]);
    }
  });

  it.each<InitOptions>([{}, { blank: true, spryker: true }, { openapi: 'x', blank: true }])(
    'asks which kind of shop it is: %j',
    async (options) => {
      const done = await runCommand((io) => runInit(options, io), { cwd: makeFolder() });
      expect([done.code, done.err.join()]).toEqual([2, expect.stringContaining('--spryker')]);
    },
  );
});
