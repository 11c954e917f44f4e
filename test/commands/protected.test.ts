import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runProtectedCompare } from '../../src/commands/protected/compare.ts';
import { runProtectedDiff } from '../../src/commands/protected/diff.ts';
import { runProtectedImport } from '../../src/commands/protected/import.ts';
import { runProtectedList } from '../../src/commands/protected/list.ts';
import { listText } from '../../src/commands/protected/list-text.ts';
import { readOperations } from '../../src/commands/protected/openapi-operations.ts';
import { parseProtectedList } from '../../src/protection/protected-list.ts';
import { resourceId } from '../../src/protection/protected-resource.ts';
import { keys, makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';
import { buildSprykerDocument, sprykerYaml } from './spryker-openapi.ts';

const root = path.join(import.meta.dirname, '../..');
const listOf = (...rows: string[]) =>
  `groups:\n  Shop:\n${rows.map((row) => `    - ${row}\n`).join('')}complete: true\n`;

describe('protected list', () => {
  const files = {
    'config/shopward.yaml': keys,
    'config/protected-resources.yaml': `groups:
  Carts:
    - GET /carts
    - { match: "ANY /carts/**", scopes: [a, b] }
  Orders:
    - { match: "GET /orders", observe: true }
complete: true
`,
  };
  const list = (options: object) =>
    runCommand((io) => runProtectedList(options, io), { cwd: makeFolder(files) });

  it('prints a table', async () => {
    expect(await list({})).toEqual({
      code: 0,
      out: [
        'group   method  path       needs            line',
        'Carts   GET     /carts     token            3',
        'Carts   ANY     /carts/**  token with a b   4',
        'Orders  GET     /orders    token, observed  6',
        '3 of 3 rows of config/protected-resources.yaml',
      ],
      err: [],
    });
  });

  it('prints one group, as JSON too', async () => {
    const { out } = await list({ group: 'order', json: true });
    expect(JSON.parse(out.join('\n'))).toEqual({
      file: 'config/protected-resources.yaml',
      rows: [
        {
          row: 'GET /orders',
          method: 'GET',
          path: '/orders',
          group: 'Orders',
          scopes: [],
          observe: true,
          file: 'config/protected-resources.yaml',
          line: 6,
        },
      ],
    });
  });

  it('names the groups when there is no such one', async () => {
    expect(await list({ group: 'x' })).toEqual({
      code: 1,
      out: [''],
      err: ['no group is named like "x": there are Carts, Orders'],
    });
  });

  it.each([
    ['gone.yaml', 'gone.yaml:1:1: error: the list cannot be read: there is no such file'],
    ['config/shopward.yaml', /^config\/shopward\.yaml:1:1: error: /],
  ])('refuses a bad list: %s', async (name, problem) => {
    const { code, err } = await list({ list: name });
    expect(code).toBe(78);
    expect(err[0]).toMatch(problem);
  });
});

describe('protected diff', () => {
  const diff = (a: string, b: string, json = false) =>
    runCommand((io) => runProtectedDiff('a.yaml', 'b.yaml', { json }, io), {
      cwd: makeFolder({ 'a.yaml': a, 'b.yaml': b }),
    });

  it('exits 0 for lists that protect the same', async () => {
    const { code, out } = await diff(listOf('GET /a/{x}', 'GET /b'), listOf('GET /b', 'GET /a/{x}'));
    expect({ code, out }).toEqual({ code: 0, out: ['0 removed, 0 added, 0 changed; nothing looser'] });
  });

  it('marks what becomes looser', async () => {
    const a = listOf(
      'GET /gone',
      'GET /tree/{id}',
      '{ match: GET /was, observe: true }',
      '{ match: GET /scoped, scopes: [x, y] }',
      'GET /watched',
      '{ match: GET /tighter, observe: true }',
    );
    const b = listOf(
      'ANY /tree/**',
      '{ match: GET /scoped, scopes: [x] }',
      '{ match: GET /watched, observe: true }',
      'GET /tighter',
    );
    const { code, out } = await diff(a, b);
    expect(code).toBe(1);
    expect(out).toEqual([
      '-  GET /gone       a.yaml:3  LOOSER: open now',
      '-  GET /tree/{id}  a.yaml:4  still met by ANY /tree/** in line 3',
      '-  GET /was        a.yaml:5  it was observed only',
      '+  ANY /tree/**    b.yaml:3',
      '~  GET /scoped     b.yaml:4  LOOSER: scopes x y -> x',
      '~  GET /watched    b.yaml:5  LOOSER: only observed now',
      '~  GET /tighter    b.yaml:6  enforced now',
      '3 removed, 1 added, 3 changed; 3 looser',
    ]);
    const report = JSON.parse((await diff(a, b, true)).out.join('\n'));
    expect(report).toMatchObject({ same: false, loosenings: 3 });
    expect(report.removed.map((row: { isLooser: boolean }) => row.isLooser)).toEqual([true, false, false]);
  });

  it('of a whole ANY row that one method replaces', async () => {
    const { out } = await diff(listOf('ANY /a'), listOf('GET /a'));
    expect(out[0]).toBe('-  ANY /a  a.yaml:3  LOOSER: open now');
  });

  it('exits 78 for a list with problems', async () => {
    const { code, err } = await diff(listOf('GET /a'), 'groups: {}\n');
    expect(code).toBe(78);
    expect(err[0]).toMatch(/^b\.yaml:/);
  });
});

const bearer = { components: { securitySchemes: { B: { type: 'http', scheme: 'bearer' } } } };
const secured = { security: [{ B: [] }], responses: {} };

function document(paths: object, more: object = {}) {
  return { openapi: '3.1.0', info: { title: 'Shop', version: '1' }, ...bearer, paths, ...more };
}

function importOf(source: object | string, options: object = {}) {
  const cwd = makeFolder({ 'api.yaml': typeof source === 'string' ? source : JSON.stringify(source) });
  return runCommand((io) => runProtectedImport('api.yaml', options, io), { cwd });
}

async function importedRows(source: object | string, options: object = {}) {
  const { code, out, err } = await importOf(source, options);
  const { list } = parseProtectedList(`${out.join('\n')}\n`, 'list');
  const rows = list?.rows.map((row) => [row.group, resourceId(row), ...row.scopes].join(' | ')) ?? [];
  return { code, rows, notes: err.filter((line) => line.includes(': note: ')) };
}

describe('protected import', () => {
  it.each<[string, object, string[]]>([
    [
      'the security of an operation',
      document({ '/a': { get: secured, post: { responses: {} } } }),
      ['a | GET /a'],
    ],
    [
      'that of the document, unless an operation has its own',
      document(
        { '/a': { get: {}, post: { security: [] }, put: { security: {} }, delete: secured } },
        { security: [{ B: [] }] },
      ),
      ['a | GET /a', 'a | DELETE /a'],
    ],
    [
      'the first tag as group, else the first segment',
      document({
        '/a/b': { get: { ...secured, tags: ['carts', 'x'] } },
        '/{id}/c': { get: secured },
        '/{id}': { get: secured },
      }),
      ['carts | GET /a/b', 'c | GET /{id}/c', 'Untagged | GET /{id}'],
    ],
    [
      'names of parameters that a list can hold',
      document({ '/a/{cart.id}/{1}/{x}/b/{cart id}': { get: secured } }),
      ['a | GET /a/{cart_id}/{p_1}/{x}/b/{cart_id_2}'],
    ],
    [
      'what no list can say as a parameter: the row matches more, never less',
      document({
        '/files/{name}.pdf': { get: secured },
        '/a;b/c': { get: secured },
        '/ä/x': { get: secured },
      }),
      ['files | GET /files/{name_pdf}', 'a;b | GET /{a_b}/c', 'ä | GET /%C3%A4/x'],
    ],
    ['slashes that do not count', document({ '/a//b/': { get: secured } }), ['a | GET /a/b']],
    [
      'HEAD as GET, and both as one row',
      document({ '/a': { head: secured, get: {} }, '/b': { get: secured, head: secured } }),
      ['a | GET /a', 'b | GET /b'],
    ],
    [
      'one row for paths that differ by names',
      document({ '/a/{x}': { get: secured }, '/a/{y}': { get: secured } }),
      ['a | GET /a/{x}'],
    ],
    [
      'base paths of servers, the nearest ones',
      document(
        {
          '/a': { get: secured },
          '/b': { servers: [{ url: '/v2' }], get: secured },
          '/c': {
            get: {
              ...secured,
              servers: [{ url: 'https://{h}.example/{v}/', variables: { v: { default: 'v3' } } }],
            },
          },
        },
        { servers: [{ url: 'https://x.example/v1' }, { url: 'http://y.example/api' }] },
      ),
      ['a | GET /v1/a', 'a | GET /api/a', 'b | GET /v2/b', 'c | GET /v3/c'],
    ],
    [
      'path items elsewhere in the document',
      document(
        { '/a': { $ref: '#/components/pathItems/A~1b' } },
        {
          components: { ...bearer.components, pathItems: { 'A/b': { get: secured } } },
        },
      ),
      ['a | GET /a'],
    ],
    [
      'scopes: those that every alternative asks for',
      document(
        {
          '/a': { get: { security: [{ O: ['r', 'w'] }] } },
          '/b': { get: { security: [{ O: ['r', 'w'] }, { O: ['r'], B: [] }] } },
        },
        { components: { securitySchemes: { O: { type: 'oauth2' }, B: { type: 'http', scheme: 'bearer' } } } },
      ),
      ['a | GET /a | r | w', 'b | GET /b | r'],
    ],
  ])('takes %s', async (_, source, rows) => {
    const result = await importedRows(source);
    expect([result.code, result.rows]).toEqual([0, rows]);
  });

  it.each<[string, object, string]>([
    [
      'an optional token',
      { get: { security: [{ B: [] }, {}] }, post: secured },
      'GET /a: its token is optional: it is not listed',
    ],
    [
      'another scheme',
      { get: { security: [{ K: [] }] } },
      'GET /a: K is no bearer token; listed all the same',
    ],
    [
      'a method without rows',
      { get: secured, trace: secured },
      '/a: trace is left out: it is never authenticated, or refused anyway',
    ],
  ])('says what is worth knowing of %s', async (_, item, note) => {
    const more = {
      components: {
        securitySchemes: {
          K: { type: 'apiKey', in: 'header', name: 'X-Key' },
          ...bearer.components.securitySchemes,
        },
      },
    };
    const { notes } = await importedRows(document({ '/a': item }, more));
    expect(notes).toEqual([`api.yaml: note: ${note}`]);
  });

  it('says nothing of an empty map: generators in PHP write it for an empty list', async () => {
    const { rows, notes } = await importedRows(document({ '/a': { get: { security: {} }, post: secured } }));
    expect([rows, notes]).toEqual([['a | POST /a'], []]);
  });

  it('takes whatever stands in a document, and gives rows that the list can hold', async () => {
    const item = fc.dictionary(
      fc.constantFrom('get', 'head', 'post', 'trace', 'parameters', '$ref', 'servers', '__proto__'),
      fc.oneof(
        fc.constant(secured),
        fc.jsonValue(),
        fc.record({ security: fc.jsonValue(), tags: fc.jsonValue() }),
      ),
    );
    const paths = fc.dictionary(
      fc.string({ unit: 'binary' }).map((path) => `/${path}`),
      item,
    );
    const more = fc.record({ servers: fc.jsonValue(), security: fc.jsonValue() }, { requiredKeys: [] });
    fc.assert(
      fc.property(paths, more, (given, rest) => {
        const source = JSON.parse(JSON.stringify(document(given, rest)));
        const { operations } = readOperations(source);
        const rows = operations.filter(({ needs }) => needs === 'token');
        if (rows.length > 0) listText(rows, 'x');
      }),
      { numRuns: 500 },
    );
  });

  it('--base-path takes the place of the servers', async () => {
    const source = document({ '/a': { get: secured } }, { servers: [{ url: '/v1' }] });
    expect((await importedRows(source, { basePath: '/' })).rows).toEqual(['a | GET /a']);
    expect((await importedRows(source, { basePath: '/x/y/' })).rows).toEqual(['a | GET /x/y/a']);
  });

  it('writes what a list file looks like', async () => {
    const source = document({
      '/carts': { get: { ...secured, tags: ['my: carts'] }, post: secured },
      '/r': { get: { security: [{ B: ['x'] }] } },
    });
    expect(await importOf(source)).toEqual({
      code: 0,
      out: [
        '# yaml-language-server: $schema=./protected-resources.schema.json',
        '# From api.yaml (Shop 1): 3 of 3 operations need a token.',
        '',
        'groups:',
        '  "my: carts":',
        '    - GET /carts',
        '  carts:',
        '    - POST /carts',
        '  r:',
        '    - { match: GET /r, scopes: [ x ] }',
        'complete: true',
      ],
      err: ['api.yaml: 3 of 3 operations need a token'],
    });
  });

  it.each<[string, object | string]>([
    ['Swagger 2', { swagger: '2.0', paths: {} }],
    ['no OpenAPI at all', { a: 1 }],
    ['a list', '- a\n'],
    ['broken YAML', 'openapi: 3.0.0\npaths: {\n'],
    ['no paths', { openapi: '3.0.0' }],
    ['a path item in another file', document({ '/a': { $ref: 'other.yaml#/a' }, '/b': { get: secured } })],
    ['a path item that goes round in a circle', document({ '/a': { $ref: '#/paths/~1a' } })],
  ])('refuses %s with exit code 2 and prints no list', async (_, source) => {
    const { code, out, err } = await importOf(source);
    expect({ code, out }).toEqual({ code: 2, out: [''] });
    expect(err).toHaveLength(1);
    expect(err[0]).toMatch(/^api\.yaml: error: /);
  });

  it('exits 1 when nothing needs a token', async () => {
    expect(await importOf(document({ '/a': { get: {} } }))).toMatchObject({ code: 1, out: [''] });
  });

  it('--out writes a file, and replaces none without --force', async () => {
    const cwd = makeFolder({ 'api.yaml': JSON.stringify(document({ '/a': { get: secured } })) });
    const out = path.join(cwd, 'list.yaml');
    const run = (options: object) =>
      runCommand((io) => runProtectedImport('api.yaml', { out: 'list.yaml', ...options }, io), { cwd });
    expect((await run({})).code).toBe(0);
    const first = readFileSync(out, 'utf8');
    expect(parseProtectedList(first, 'list').list?.rows).toHaveLength(1);
    writeFileSync(out, 'mine');
    expect((await run({})).code).toBe(2);
    expect(readFileSync(out, 'utf8')).toBe('mine');
    expect((await run({ force: true })).code).toBe(0);
    expect(readFileSync(out, 'utf8')).toBe(first);
    expect(existsSync(`${out}.new`)).toBe(false);
  });
});

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

describe('the verb as a process', () => {
  const run = promisify(execFile);
  const shopward = (...args: string[]) =>
    run(process.execPath, [path.join(root, 'src/main.ts'), ...args], { cwd: root }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
    );

  it.each([
    [['protected', 'diff', 'config/protected-resources.yaml', 'config/protected-resources.yaml'], 0],
    [['protected', 'diff', 'config/protected-resources.yaml', 'config/protected-resources.hardened.yaml'], 1],
    [['protected', 'diff', 'config/protected-resources.yaml'], 2],
    [['protected', 'import'], 2],
    [['protected', 'diff', 'gone.yaml', 'gone.yaml'], 78],
    [['protected', '--list', 'config/protected-resources.yaml', '--group', 'carts'], 0],
    [['explain'], 2],
    [['verify', 'no-url'], 2],
    [['frob'], 2],
  ])('%j exits %i', async (args, code) => {
    expect((await shopward(...args)).code).toBe(code);
  });

  it.each([
    'serve',
    'check',
    'explain',
    'protected',
    'verify',
    'schema',
    'purge',
    'tokens',
    'health',
    'version',
  ])('%s --help has examples and exit codes', async (verb) => {
    const { code, stdout } = await shopward(verb, '--help');
    expect(code).toBe(0);
    expect(stdout).toMatch(/\nExamples:\n {2}.*shopward[\s\S]*\nExit code: 0 /);
  });
});
