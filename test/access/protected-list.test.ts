import { describe, expect, it } from 'vitest';
import { compileProtectedList, type ProtectedList, resourceId } from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { tableRequest } from '../routes/path-table-request.ts';

function compile(...rows: string[]): ProtectedList {
  const text = `groups:\n  A:\n${rows.map((row) => `    - ${row}\n`).join('')}complete: true\n`;
  const { list, problems } = parseProtectedList(text, 'list.yaml');
  if (!list) throw new Error(JSON.stringify(problems));
  return compileProtectedList(list, { ignoredPrefixes: ['/index.php'] });
}

describe('a requirement', () => {
  it('is absent when no row is met', () => {
    expect(compile('GET /a').match(tableRequest('GET /b'))).toBeUndefined();
  });

  it('names the row, its route and its place', () => {
    const list = compile('GET /a', '{ match: "GET /b/{id}", scopes: [x, y] }');
    expect(list.match(tableRequest('GET /B/1/'))).toEqual({
      row: list.rows[1],
      route: '/b/{id}',
      rows: [list.rows[1]],
      scopes: ['x', 'y'],
      observe: false,
    });
    expect(list.rows[1]?.source).toEqual({ file: 'list.yaml', line: 4, column: 7 });
  });

  it.each([
    [
      'scopes of all rows are needed',
      ['{ match: "GET /a/**", scopes: [x, y] }', '{ match: "GET /a/{id}", scopes: [y, z] }'],
      'GET /a/1',
      ['x', 'y', 'z'],
      false,
      'GET /a/**',
    ],
    [
      'an exact row names the route',
      ['GET /{x}/b', 'GET /A/b', 'GET /a/b'],
      'GET /a/b',
      [],
      false,
      'GET /{x}/b',
    ],
    ['exact before lenient', ['GET /A/{x}', 'GET /a/{y}'], 'GET /a/1', [], false, 'GET /a/{y}'],
    [
      'one row that refuses is enough',
      ['{ match: "GET /a/**", observe: true }', 'GET /a/{id}'],
      'GET /a/1',
      [],
      false,
      'GET /a/{id}',
    ],
    [
      'scopes of an observing row are needed too',
      ['{ match: "GET /a/**", observe: true, scopes: [x] }', 'GET /a/{id}'],
      'GET /a/1',
      ['x'],
      false,
      'GET /a/{id}',
    ],
    [
      'all rows observe',
      ['{ match: "GET /a/**", observe: true }', '{ match: "GET /a/{id}", observe: true }'],
      'GET /a/1',
      [],
      true,
      'GET /a/**',
    ],
    [
      'a lenient row counts as much',
      ['{ match: "GET /a/{x}/b", observe: true }', '{ match: "GET /c/{y}", scopes: [x] }'],
      'GET /a/1/b;c/',
      [],
      true,
      'GET /a/{x}/b',
    ],
    [
      'a trailing slash: the stricter wins',
      ['{ match: "GET /a", observe: true }', '{ match: "GET /a/{id}", scopes: [x] }'],
      'GET /a/',
      ['x'],
      false,
      'GET /a/{id}',
    ],
    [
      'a form POST: every method of the path',
      ['{ match: "PATCH /a/{id}", scopes: [w] }', 'GET /a/{id}'],
      'form POST /a/1',
      ['w'],
      false,
      'PATCH /a/{id}',
    ],
  ])('%s', (_, rows, request, scopes, observe, row) => {
    const met = compile(...rows).match(tableRequest(request));
    expect(met).toMatchObject({ scopes, observe });
    expect(met && resourceId(met.row)).toBe(row);
  });

  it('is the same for the same request, whatever was asked before', () => {
    const list = compile('{ match: "ANY /a/**", scopes: [x] }', 'GET /a/{id}', 'GET /{type}/{id}');
    const first = list.match(tableRequest('GET /a/1'));
    for (const other of ['GET /', 'PATCH /a/1', 'form POST /x/y/a/1', 'GET /a/1'])
      list.match(tableRequest(other));
    expect(list.match(tableRequest('GET /a/1'))).toEqual(first);
  });
});

describe('the upgrade of ten thousand rows', () => {
  it('leaves each of them enforced, and nothing else', () => {
    const rows = Array.from({ length: 10_000 }, (_, i) =>
      i % 2 ? `GET /type-${i}/{id}` : `PATCH /type-${i % 100}/{id}/part-${i}/{part}`,
    );
    const list = compile(...rows);
    for (let i = 0; i < 10_000; i += 1) {
      const path = i % 2 ? `/type-${i}/7` : `/type-${i % 100}/7/part-${i}/8`;
      const method = i % 2 ? 'GET' : 'PATCH';
      expect(list.match(tableRequest(`${method} ${path}`))?.rows).toEqual([list.rows[i]]);
      expect(list.match(tableRequest(`DELETE ${path}`))).toBeUndefined();
    }
  });
});
