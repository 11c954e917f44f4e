import { describe, expect, it } from 'vitest';
import {
  compileProtectedList,
  type ProtectedResources,
  resourceId,
} from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { diffProtectedLists, findSuspicious } from '../../src/access/protected-list-review.ts';

function listOf(...rows: string[]): ProtectedResources {
  const text = `groups:\n  A:\n${rows.map((row) => `    - ${row}\n`).join('')}complete: true\n`;
  const { list, problems } = parseProtectedList(text, 'list.yaml');
  if (!list) throw new Error(JSON.stringify(problems));
  return list;
}

function compiled(list: ProtectedResources) {
  return compileProtectedList(list, { ignoredPrefixes: [] });
}

describe('the difference of two lists', () => {
  it.each([
    ['nothing', ['GET /a'], ['GET /a'], { added: [], removed: [], changed: [] }],
    ['the order', ['GET /a', 'GET /b'], ['GET /b', 'GET /a'], { added: [], removed: [], changed: [] }],
    [
      'rows come and go',
      ['GET /a', 'GET /b'],
      ['GET /c', 'GET /a'],
      { added: ['GET /c'], removed: ['GET /b, looser'], changed: [] },
    ],
    ['a name', ['GET /a/{x}'], ['GET /A/{y}'], { added: [], removed: [], changed: ['GET /a/{x}: template'] }],
    ['a second name', ['GET /a/{x}', 'GET /a/{y}'], ['GET /a/{x}'], { added: [], removed: [], changed: [] }],
    [
      'more scopes',
      ['GET /a'],
      ['{ match: GET /a, scopes: [x] }'],
      { added: [], removed: [], changed: ['GET /a: scopes'] },
    ],
    [
      'a row less, which another one covers',
      ['GET /a', 'GET /b/**'],
      ['GET /a/**'],
      { added: ['GET /a/**'], removed: ['GET /a', 'GET /b/**, looser'], changed: [] },
    ],
    [
      'fewer scopes',
      ['{ match: GET /a, scopes: [x, y] }'],
      ['{ match: GET /a, scopes: [y] }'],
      { added: [], removed: [], changed: ['GET /a: scopes, looser'] },
    ],
    [
      'other scopes',
      ['{ match: GET /a, scopes: [x] }'],
      ['{ match: GET /a, scopes: [y] }'],
      { added: [], removed: [], changed: ['GET /a: scopes, looser'] },
    ],
    [
      'scopes in another order',
      ['{ match: GET /a, scopes: [x, y] }'],
      ['{ match: GET /a, scopes: [y, x] }'],
      { added: [], removed: [], changed: [] },
    ],
    [
      'only observed',
      ['GET /a'],
      ['{ match: GET /a, observe: true }'],
      { added: [], removed: [], changed: ['GET /a: observe, looser'] },
    ],
    [
      'enforced',
      ['{ match: GET /a, observe: true }'],
      ['GET /a'],
      { added: [], removed: [], changed: ['GET /a: observe'] },
    ],
  ])('%s', (_, before, after, wanted) => {
    const { added, removed, changed } = diffProtectedLists(listOf(...before), listOf(...after));
    expect({
      added: added.map(resourceId),
      removed: removed.map(({ row, isLooser }) => `${resourceId(row)}${isLooser ? ', looser' : ''}`),
      changed: changed.map(
        ({ before: row, what, isLooser }) =>
          `${resourceId(row)}: ${what.join(', ')}${isLooser ? ', looser' : ''}`,
      ),
    }).toEqual(wanted);
  });
});

describe('what a list leaves open', () => {
  it.each([
    [['GET /carts'], []],
    [['GET /carts/{id}'], ['3: GET /carts/{id} is protected, GET /carts is open']],
    [['GET /carts', 'GET /carts/{id}'], []],
    [['ANY /carts/**'], ['3: ANY means every method but OPTIONS, which never needs a token']],
    [['PATCH /a/{id}', 'DELETE /a/{id}'], ['3: PATCH /a/{id} is protected, GET /a/{id} is open']],
    [['GET /a', 'GET /a/{id}', 'DELETE /a/{id}'], ['5: DELETE /a/{id} is protected, PATCH /a/{id} is open']],
    [
      ['GET /a/{x}/b', 'ANY /a', 'ANY /a/{x}'],
      ['4: ANY means every method but OPTIONS, which never needs a token'],
    ],
    [
      ['GET /a/{x}/b', 'POST /a/{x}/b/{id}', 'ANY /a/**'],
      ['5: ANY means every method but OPTIONS, which never needs a token'],
    ],
    [['GET /a/{x}/b', 'POST /a/{x}/b/{id}'], []],
    [
      ['{ match: "GET /a/{id}/b", scopes: [x] }', 'GET /a/{id}/b/{x}'],
      [
        '3: GET /a/{id}/b/{x} in line 4 asks for something else, and may be the same to the shop (as GET /a/{id}/b/{member_id})',
      ],
    ],
    [['POST /a', 'POST /a/{x}/b'], []],
    [['ANY /a/{id}', 'GET /a'], ['3: ANY means every method but OPTIONS, which never needs a token']],
    [
      ['{ match: GET /a, scopes: [x] }', 'GET /a/{id}'],
      ['3: GET /a/{id} in line 4 asks for something else, and may be the same to the shop (as GET /a/{id})'],
    ],
    [['{ match: GET /a, scopes: [x] }', '{ match: "GET /a/{id}", scopes: [x] }'], []],
    [
      ['GET /a', 'GET /a/{id}', '{ match: GET /A.json, observe: true }'],
      ['3: GET /A.json in line 5 asks for something else, and may be the same to the shop (as GET /a.json)'],
    ],
    // The first word of a path is no version: what is after it is another resource.
    [
      ['GET /x/a', 'GET /x/a/{id}', '{ match: GET /a, scopes: [x] }', '{ match: "GET /a/{x}", scopes: [x] }'],
      [],
    ],
    [['GET /v1', 'GET /v1/{id}'], []],
    [
      [
        'GET /v1/a',
        'GET /v1/a/{id}',
        '{ match: GET /a, scopes: [x] }',
        '{ match: "GET /a/{x}", scopes: [x] }',
      ],
      [
        '3: GET /a in line 5 asks for something else, and may be the same to the shop (as GET /a)',
        '4: GET /a/{x} in line 6 asks for something else, and may be the same to the shop (as GET /a/{id})',
      ],
    ],
  ])('%j', (rows, warnings) => {
    const found = findSuspicious(compiled(listOf(...rows)));
    expect(found.map(({ line, text }) => `${line}: ${text}`)).toEqual(warnings);
    // What is open beside it may be meant so; what may be one to the shop is never.
    for (const { severity, file, text } of found) {
      expect([severity, file]).toEqual([
        text.includes('asks for something else') ? 'warning' : 'note',
        'list.yaml',
      ]);
    }
  });

  it('a form that does not count', () => {
    const rules = { ignoredPrefixes: [], itemForms: false };
    const [found] = findSuspicious(compileProtectedList(listOf('GET /carts'), rules));
    expect(found?.text).toBe('GET /carts is protected, GET /carts/{id} is open');
  });
});
