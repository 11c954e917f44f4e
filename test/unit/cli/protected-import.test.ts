import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { listText, runProtectedImport } from '../../../src/cli/protected/import.ts';
import { readOperations } from '../../../src/cli/protected/openapi-operations.ts';
import { anyText } from '../../harness/any-text.ts';
import { runCommand } from './command-run.ts';
import { bearer, document, importedRows, importOf, secured } from './openapi-sample.ts';

describe('protected import', () => {
  const get = { get: secured };
  const oauth = {
    components: { securitySchemes: { O: { type: 'oauth2' }, ...bearer.components.securitySchemes } },
  };
  const servers = (...urls: string[]) => ({ servers: urls.map((url) => ({ url })) });
  const variables = { v: { default: 'v3' } };
  const pathItems = { components: { ...bearer.components, pathItems: { 'A/b': get } } };

  it.each<[title: string, paths: object, rows: string[], more?: object]>([
    ['the security of an operation', { '/a': { ...get, post: { responses: {} } } }, ['a | GET /a']],
    [
      'the security of the document, unless an operation has its own',
      { '/a': { get: {}, post: { security: [] }, put: { security: {} }, delete: secured } },
      ['a | GET /a', 'a | DELETE /a'],
      { security: [{ B: [] }] },
    ],
    [
      'the first tag as group, else the first segment',
      { '/a/b': { get: { ...secured, tags: ['carts', 'x'] } }, '/{id}/c': get, '/{id}': get },
      ['carts | GET /a/b', 'c | GET /{id}/c', 'Untagged | GET /{id}'],
    ],
    [
      'parameter names that a list can contain',
      { '/a/{cart.id}/{1}/{x}/b/{cart id}': get, '/a/{id}/{id}/{id}': get },
      ['a | GET /a/{cart_id}/{p_1}/{x}/b/{cart_id_2}', 'a | GET /a/{id}/{id_2}/{id_3}'],
    ],
    [
      'parameters that no list can express: the row matches more, never less',
      { '/files/{name}.pdf': get, '/a;b/c': get, '/ä/x': get, '/a?b=1#c': get },
      ['files | GET /files/{name_pdf}', 'a;b | GET /{a_b}/c', 'ä | GET /%C3%A4/x', 'a?b=1#c | GET /a'],
    ],
    ['extra slashes', { '/a//b/': get }, ['a | GET /a/b']],
    [
      'HEAD as GET, and both as one row',
      { '/a': { head: secured, get: {} }, '/b': { ...get, head: secured } },
      ['a | GET /a', 'b | GET /b'],
    ],
    ['one row for paths that differ in names', { '/a/{x}': get, '/a/{y}': get }, ['a | GET /a/{x}']],
    [
      'base paths of the nearest servers',
      {
        '/a': get,
        '/b': { ...servers('/v2'), ...get },
        '/c': { get: { ...secured, servers: [{ url: 'https://{h}.example/{v}/', variables }] } },
      },
      ['a | GET /v1/a', 'a | GET /api/a', 'b | GET /v2/b', 'c | GET /v3/c'],
      servers('https://x.example/v1', 'http://y.example/api'),
    ],
    [
      'base paths of servers in each form',
      { '/a': get },
      ['a | GET /1/a', 'a | GET /2/a', 'a | GET /a', 'a | GET /3/a'],
      servers('//x.example/1', './2', '.', '{scheme}://x.example/3/', 'https://x.example'),
    ],
    [
      'path items elsewhere in the document',
      { '/a': { $ref: '#/components/pathItems/A~1b' } },
      ['a | GET /a'],
      pathItems,
    ],
    [
      'scopes that every alternative requires',
      {
        '/a': { get: { security: [{ O: ['r', 'w'] }] } },
        '/b': { get: { security: [{ O: ['r', 'w'] }, { O: ['r'], B: [] }] } },
      },
      ['a | GET /a | r | w', 'b | GET /b | r'],
      oauth,
    ],
  ])('reads %s', async (_, paths, rows, more) => {
    const result = await importedRows(document(paths, more));
    expect([result.code, result.rows]).toEqual([0, rows]);
  });

  const other = { security: [{ K: [] }] };
  it.each<[string, object, string]>([
    [
      'an optional token',
      { get: { security: [{ B: [] }, {}] }, post: secured },
      'GET /a: its token is optional, so it is not listed',
    ],
    ['another scheme', { get: other }, 'GET /a: K is not a bearer token; listed all the same'],
    [
      'another scheme of several operations',
      { get: other, put: other, post: secured, delete: other },
      'GET /a and 2 more: K is not a bearer token; listed all the same',
    ],
    [
      'a method without rows',
      { get: secured, trace: secured },
      '/a: trace is left out: it is never authenticated, or refused anyway',
    ],
  ])('prints a note about %s', async (_, item, note) => {
    const key = { type: 'apiKey', in: 'header', name: 'X-Key' };
    const more = { components: { securitySchemes: { K: key, ...bearer.components.securitySchemes } } };
    const { notes } = await importedRows(document({ '/a': item }, more));
    expect(notes).toEqual([`api.yaml: note: ${note}`]);
  });

  it('prints nothing about an empty map, which PHP generators write for an empty list', async () => {
    const { rows, notes } = await importedRows(document({ '/a': { get: { security: {} }, post: secured } }));
    expect([rows, notes]).toEqual([['a | POST /a'], []]);
  });

  it('never throws, whatever the path items of a document contain', async () => {
    const item = fc.dictionary(
      fc.constantFrom('get', 'head', 'post', 'trace', 'parameters', '$ref', 'servers', '__proto__'),
      fc.oneof(
        fc.constant(secured),
        fc.jsonValue(),
        fc.record({ security: fc.jsonValue(), tags: fc.jsonValue() }),
      ),
    );
    const paths = fc.dictionary(
      anyText().map((path) => `/${path}`),
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
      { numRuns: 150 },
    );
  });

  it('--base-path replaces the servers', async () => {
    const source = document({ '/a': { get: secured } }, { servers: [{ url: '/v1' }] });
    expect((await importedRows(source, { basePath: '/' })).rows).toEqual(['a | GET /a']);
    expect((await importedRows(source, { basePath: '/x/y/' })).rows).toEqual(['a | GET /x/y/a']);
  });

  it('writes a complete list file', async () => {
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
    ['a path item that refers to itself', document({ '/a': { $ref: '#/paths/~1a' } })],
  ])('refuses %s with exit code 2 and prints no list', async (_, source) => {
    const { code, out, err } = await importOf(source);
    expect({ code, out }).toEqual({ code: 2, out: [''] });
    expect(err).toHaveLength(1);
    expect(err[0]).toMatch(/^api\.yaml: error: /);
  });

  it('refuses a document whose list would be longer than 16 MiB', async () => {
    const long = 'x'.repeat(450);
    const paths = Object.fromEntries(
      Array.from({ length: 40_000 }, (_, i) => [`/a${i}/${long}`, { get: secured }]),
    );
    const { code, err, out } = await importOf(document(paths));
    expect([code, out.join('')]).toEqual([2, '']);
    expect(err.join('\n')).toContain('longer than 16 MiB');
  });

  it('exits 1 when nothing needs a token', async () => {
    expect(await importOf(document({ '/a': { get: {} } }))).toMatchObject({ code: 1, out: [''] });
  });

  it('an endless document is refused by its size', async () => {
    const { code, err } = await runCommand((io) => runProtectedImport('/dev/zero', {}, io));
    expect([code, err[0]]).toEqual([2, expect.stringMatching(/larger than 134217728 bytes/)]);
  });
});
