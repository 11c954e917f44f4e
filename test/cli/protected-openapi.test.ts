import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProtectedCompare } from '../../src/cli/protected/difference.ts';
import { runProtectedImport } from '../../src/cli/protected/list.ts';
import { makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';
import { document, importedRows, listOf, secured } from './openapi-sample.ts';
import { buildSprykerDocument, sprykerYaml } from './spryker-openapi.ts';

const root = path.join(import.meta.dirname, '../..');

describe('a document of the size and shape that Spryker generates', () => {
  const shop = buildSprykerDocument({ types: 110, properties: 90 });

  it.each(['json', 'yaml'])('%s: imports whole, and its import agrees with it', async (form) => {
    const text = form === 'json' ? JSON.stringify(shop) : sprykerYaml(shop);
    expect(text.length).toBeGreaterThan(5_000_000);
    expect(Object.keys(shop.paths as object).length).toBeGreaterThan(300);
    const cwd = makeFolder({ 'api.yaml': text });
    const imported = await runCommand((io) => runProtectedImport('api.yaml', { out: 'list.yaml' }, io), {
      cwd,
    });
    expect(imported.err).toEqual(['api.yaml: 83 of 385 operations need a token; the list is in list.yaml']);
    const compared = await runCommand((io) => runProtectedCompare('api.yaml', { list: 'list.yaml' }, io), {
      cwd,
    });
    expect(compared.code).toBe(0);
  });

  it('the shipped list lacks what is not of the contract', async () => {
    const cwd = makeFolder({ 'api.yaml': JSON.stringify(shop) });
    const list = path.join(root, 'config/protected-resources.yaml');
    const { code, out } = await runCommand((io) => runProtectedCompare('api.yaml', { list }, io), { cwd });
    expect(code).toBe(1);
    expect(out).toHaveLength(28 + 1);
    expect(out[0]).toMatch(/^missing {2}POST \/catalogue-resource-0\/\{resourceId\}\/notes/);
    expect(out.at(-1)).toBe(
      '56 rows, 385 operations: 28 missing (open, but need a token), 0 looser (fewer scopes), 0 stricter (need no token), 0 extra (no such operation)',
    );
  });

  it('schemas that anchors lead into are parsed all the same', async () => {
    const yaml = `openapi: 3.0.0
paths:
  /a: { get: *secured }
components:
  schemas:
    A: { x-operation: &secured { security: [{ B: [] }] } }
`;
    const reordered = yaml.replace(/(paths:[\s\S]*)(components:[\s\S]*)/, '$2$1');
    expect((await importedRows(reordered)).rows).toEqual(['a | GET /a']);
  });
});

describe('protected compare', () => {
  const compare = (list: string, paths: object, json = false) => {
    const cwd = makeFolder({
      'l.yaml': list,
      'api.json': JSON.stringify(document(paths)),
    });
    return runCommand((io) => runProtectedCompare('api.json', { list: 'l.yaml', json }, io), { cwd });
  };
  const paths = {
    '/a/{id}': { get: secured, delete: secured },
    '/b': { get: {}, post: { security: [{ B: ['x'] }] } },
    '/tree/{id}/leaf': { get: secured },
  };

  it('finds what is missing, looser, stricter and extra', async () => {
    const list = listOf('GET /a/{a_id}', 'GET /b', 'POST /b', 'ANY /tree/**', 'GET /gone');
    const { code, out } = await compare(list, paths);
    expect(code).toBe(1);
    expect(out).toEqual([
      'missing   DELETE /a/{id}  a',
      'looser    POST /b         lacks scopes x',
      'stricter  GET /b          l.yaml:4',
      'extra     GET /gone       l.yaml:7',
      '5 rows, 5 operations: 1 missing (open, but need a token), 1 looser (fewer scopes), 1 stricter (need no token), 1 extra (no such operation)',
    ]);
    const report = JSON.parse((await compare(list, paths, true)).out.join('\n'));
    expect(report).toEqual({
      same: false,
      missing: [{ operation: 'DELETE /a/{id}', group: 'a', scopes: [] }],
      looser: [{ operation: 'POST /b', group: 'b', scopes: ['x'], lacking: ['x'] }],
      stricter: [{ row: 'GET /b', group: 'Shop', line: 4 }],
      extra: [{ row: 'GET /gone', group: 'Shop', line: 7 }],
    });
  });

  it('a row that only observes leaves its operation open', async () => {
    const { out } = await compare(listOf('{ match: "GET /a/{id}", observe: true }'), {
      '/a/{id}': { get: secured },
    });
    expect(out[0]).toBe('missing  GET /a/{id}  a');
  });
});
