import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runCheck } from '../../../src/cli/check.ts';
import { runExplain } from '../../../src/cli/explain.ts';
import { runProtectedImport } from '../../../src/cli/protected/import.ts';
import { makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';
import { mutate, mutation } from './mutations.ts';
import { document, secured } from './openapi-sample.ts';

const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;

/** Valid files that check, explain and protected import read. */
const valid: Readonly<Record<string, string>> = {
  'shopward.yaml':
    'auth:\n  keys: { files: [key.pem] }\n  audience: shop\nurlResolver: { source: urls.csv, locales: [en] }\n',
  'protected-resources.yaml':
    'groups:\n  Carts:\n    - GET /carts\n    - { match: "PATCH /carts/{id}", scopes: [buyer] }\n  "All of it":\n    - ANY /a/**\ncomplete: true\n',
  'key.pem': key.export({ type: 'spki', format: 'pem' }).toString(),
  'urls.csv': 'url,entityType,entityId\n/en/a,abstract-products,1\n/en/b,category-nodes,2\n',
  'api.json': JSON.stringify(
    document({ '/carts': { get: secured }, '/carts/{id}': { patch: secured } }),
    null,
    1,
  ),
};

const position = /^[^\s:]+:\d+:\d+: (?:error|warning|note): \S/;
const other = /^(?:warning|note|checked) |^(?:warning|note): /;

it('a mutated file gives a documented exit code and problems with file, line and column', async () => {
  const cwd = makeFolder(valid);
  const outcomes = new Map<string, number>();
  const note = (verb: string, code: number) =>
    outcomes.set(`${verb} ${code}`, (outcomes.get(`${verb} ${code}`) ?? 0) + 1);
  const config = 'shopward.yaml';
  const tryAll = async (name: string, text: string) => {
    writeFileSync(path.join(cwd, name), text);
    if (name === 'api.json') {
      const imported = await runCommand((io) => runProtectedImport(name, {}, io), { cwd });
      note('import', imported.code);
      expect([0, 1, 2]).toContain(imported.code);
      if (imported.code === 2) expect(imported.err.join('\n')).toMatch(/^api\.json: error: \S/);
      return;
    }
    const checked = await runCommand((io) => runCheck({ config, offline: true }, io), { cwd });
    note('check', checked.code);
    expect([0, 1]).toContain(checked.code);
    // A name with a line break takes several lines; the first one has the position.
    const lines = checked.out.filter((line) => line !== '');
    expect(lines[0]).toMatch(lines.length === 1 ? other : new RegExp(`${position.source}|${other.source}`));
    if (checked.code === 1) expect(lines[0]).toMatch(position);
    const explained = await runCommand((io) => runExplain(['GET /carts/1'], { config }, io), { cwd });
    note('explain', explained.code);
    expect(explained.code).toBe(checked.code === 0 ? 0 : 78);
    if (explained.code === 78) expect(explained.err[0]).toMatch(position);
  };
  for (const name of ['api.json', 'shopward.yaml']) await tryAll(name, valid[name] ?? '');
  expect(Object.fromEntries(outcomes)).toEqual({ 'check 0': 1, 'explain 0': 1, 'import 0': 1 });
  const asked = fc.record({
    name: fc.constantFrom(...Object.keys(valid)),
    all: fc.array(mutation, { minLength: 1, maxLength: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(asked, async ({ name, all }) => {
      await tryAll(name, mutate(valid[name] ?? '', all));
      writeFileSync(path.join(cwd, name), valid[name] ?? '');
    }),
    { numRuns: 25 },
  );
  for (const outcome of ['check 1', 'explain 78', 'import 2'])
    expect(outcomes.get(outcome) ?? 0, outcome).toBeGreaterThan(0);
});
