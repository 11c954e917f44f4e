import { describe, expect, it } from 'vitest';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import { differencesOf } from '../../../src/access/protected-list-review.ts';
import { rowsOf } from '../../harness/text-table.ts';
import { listOf, readList } from './list-text.ts';

function problemsOf(text: string): string[] {
  const { list, problems } = parseProtectedList(text, 'list.yaml');
  expect(list === undefined).toBe(problems.some(({ severity }) => severity === 'error'));
  return problems.map(({ file, line, column, severity, text: words }) => {
    expect(file).toBe('list.yaml');
    return `${line}:${column} ${severity} ${words}`;
  });
}

describe('rows', () => {
  it('have the method, decoded path, scopes, group and position of the file', () => {
    const { list } = parseProtectedList(
      listOf('GET /carts/{cart_id}', '{ match: "ANY /R%65ports/**", scopes: [b, a], observe: true }'),
      'list.yaml',
    );
    const source = { file: 'list.yaml', line: 3, column: 7 };
    const plain = { method: 'GET', template: '/carts/{cart_id}', group: 'A', scopes: [], observe: false };
    const whole = { method: 'ANY', template: '/Reports/**', group: 'A', scopes: ['b', 'a'], observe: true };
    const rows = [
      { ...plain, source },
      { ...whole, source: { ...source, line: 4 } },
    ];
    expect(list).toEqual({ file: 'list.yaml', open: [], rows });
  });

  it('may end with a comment', () => {
    expect(problemsOf(listOf('GET /a # for b', 'GET /b'))).toEqual([]);
    expect(problemsOf(listOf('"GET /a" #b'))).toEqual([]);
  });
});

it('reads the conditions of a row with scopes and require', () => {
  const row =
    '{ match: "GET /a/{b}/{c}", scopes: { any: [x, y] }, require: { b: sub.id, c: { claim: ["https://a.example/c"], contains: true }, d.e: [1, true], [https://a.example/d]: f } }';
  const { list, problems } = parseProtectedList(listOf(row), 'list.yaml');
  expect(problems).toEqual([]);
  expect(list?.rows[0]).toMatchObject({
    scopes: [],
    anyScopes: ['x', 'y'],
    require: [
      { name: 'b', parameter: 'b', claim: ['sub', 'id'] },
      { name: 'c', parameter: 'c', claim: ['https://a.example/c'], contains: true },
      { name: 'd.e', claim: ['d', 'e'], values: [1, true] },
      { name: 'https://a.example/d', claim: ['https://a.example/d'], values: ['f'] },
    ],
  });
});

describe('a row that is refused', () => {
  const plain = 'a text is needed here; put quotes around numbers, true, false and null';
  const keys = 'a row has the keys match, scopes, require, tokenIn, observe, open, credentials and proof';
  const scopes = 'scopes is a list of at least one scope, or { any: [...] }; leave it out to require none';
  const form = 'a row is a method or ANY, one space, and a path: GET /carts/{cart_id}';
  const open = 'open: true is for a POST row without other keys';
  it.each(
    rowsOf(`
{ match: GET /a, open: true } => 3:7 error ${open}
{ match: POST /a, open: yes } => 3:31 error open is true or false
{ match: POST /a, open: true, observe: true } => 3:7 error ${open}
{ match: GET /a, credentials: basic } => 3:37 error credentials is shop, or left out
{ match: GET /a, proof: yes } => 3:31 error proof is required, or left out
{ match: GET /a, credentials: shop, proof: required }
  3:7 error proof cannot be checked where credentials: shop is set
{ match: GET /a, credentials: shop, scopes: [a] }
  3:7 error scopes cannot be checked where credentials: shop is set
{ match: GET /a, credentials: shop, require: { b: c } }
  3:7 error require cannot be checked where credentials: shop is set
{ match: GET /a, scopes: { any: [] } } => 3:39 error scopes is a list of at least one scope
{ match: GET /a, scopes: { all: [a] } } => 3:32 error scopes is a list of at least one scope
{ match: GET /a, require: [] } => 3:33 error require is a map of conditions, at least one
{ match: GET /a, require: {} } => 3:33 error require is a map of conditions, at least one
{ match: GET /a, require: { b: [] } } => 3:38 error b needs at least one value
{ match: GET /a, require: { b: 1.5 } } => 3:38 error a claim is compared with a text, a whole number
{ match: GET /a, require: { b: null } } => 3:38 error a claim is compared with
{ match: GET /a, require: { b: [[c]] } } => 3:39 error a claim is compared with
{ match: GET /a, require: { b..c: d } } => 3:35 error a claim is one to ten names
{ match: GET /a, require: { 1: d } } => 3:35 error a text is needed here
{ match: "GET /a/{customer}", require: { custmer: sub } }
  3:48 error custmer is no parameter of the path: did you mean customer? For a claim of this name write [custmer]
{ match: "GET /a/{b}", require: { b: 1 } } => 3:44 error a text is needed here
{ match: "GET /a/{b}", require: { b: { contains: true } } }
  3:41 error b needs the path of a claim, such as b: sub
{ match: "GET /a/{b}", require: { b: { claim: c, contain: true } } }
  3:56 error a condition on a parameter has the keys
{ match: "GET /a/{b}", require: { b: { claim: c, contains: 1 } } }
  3:56 error a condition on a parameter has the keys
GET => 3:7 error ${form}
GET carts => 3:7 error ${form}
GET  /a => 3:7 error ${form}
/a => 3:7 error ${form}
get /a => 3:7 error methods are written in upper case: GET
TRACE /a => 3:7 error an unknown method: a row begins with one of ANY GET POST PUT PATCH DELETE
OPTIONS /a => 3:7 error OPTIONS can never match: it is never authenticated
HEAD /a => 3:7 error HEAD is matched as GET: write GET
GET /a/:id => 3:14 error ":id": a parameter is written {name}
GET /a/../b => 3:14 error ".." can never match: dot segments are refused
GET /a//b => 3:14 error an empty segment: leave out the extra "/"; requests match with and without it
GET /a/**/b => 3:14 error "**": a wildcard is {name} for one segment, or ** as the last segment
"GET /a\\nb" => 3:7 error "a\\nb" can never match
"GET /a/ü" => 3:7 error "ü" can never match
GET /a /b => 3:12 error "a " can never match
GET /a #b => 3:7 error the text ends before "#": a comment is written "# …", and a path has no "#"
GET /a: b
  3:7 error unknown key: ${keys}
  3:7 error the key match is missing, such as match: "GET /carts"
12 => 3:7 error ${plain}
0123 => 3:7 error ${plain}
null => 3:7 error ${plain}
[GET /a] => 3:7 error a text is needed here; put quotes around a value with { } [ ] or ": "
*a => 3:7 error aliases are not allowed: write the text out
{ <<: *b, match: "GET /y" } => 3:9 error anchors and aliases are not allowed: write the rows out
!x GET => 3:7 error tags are not allowed; put quotes around a text that begins with !
{ match: GET /a/{b} } => 3:23 error this does not belong here; put quotes around a row inside { }
{ scopes: [a] } => 3:7 error the key match is missing, such as match: "GET /carts"
{ match: 1 } => 3:16 error ${plain}
{ match } => 3:7 error a text is needed here
{ match: GET /a, match: GET /b } => 3:24 error this key occurs twice
{ match: GET /a, scope: a } => 3:24 error unknown key: did you mean scopes? ${keys}
{ match: GET /a, __proto__: a } => 3:24 error unknown key: ${keys}
{ match: GET /a, scopes: a } => 3:32 error ${scopes}
{ match: GET /a, scopes: [] } => 3:32 error ${scopes}
{ match: GET /a, scopes: [a, a] } => 3:36 error the same scope appears twice
{ match: GET /a, scopes: [a b] } => 3:33 error a scope is printable ASCII
{ match: GET /a, scopes: [a, 1] } => 3:36 error ${plain}
{ match: GET /a, scopes: [a, [b]] } => 3:36 error a text is needed here; put quotes around a value with
{ match: GET /a, scopes: [a, null] } => 3:36 error a text is needed here
{ match: GET /a, observe: yes } => 3:33 error observe is true or false
`),
  )('%s', (row, problems) => {
    const found = problemsOf(listOf(row));
    expect(found.map((one, i) => one.slice(0, problems[i]?.length))).toEqual(problems);
  });
});

describe('rows that match the same requests', () => {
  it.each([
    [['GET /a', 'GET /a'], ['4:7 error the same row is in line 3']],
    [['GET /a', 'GET /%61'], ['4:7 error the same row is in line 3']],
    [['GET /a', 'POST /a'], []],
    [
      ['GET /a/{x}', 'GET /a/{y}'],
      ['4:7 warning the same route as GET /a/{x} in line 3: a request matches both'],
    ],
    [['GET /a', 'GET /A'], ['4:7 warning the same route as GET /a in line 3: a request matches both']],
    [['GET /a/b/**', 'GET /a'], []],
    [['GET /a/{x}', 'GET /b/{x}', 'GET /a/{x}/c'], []],
    [['GET /a/{x}', 'PATCH /a/mine'], []],
    [['GET /a/{x}', 'GET /a/mine', 'ANY /a/{x}', 'ANY /a/**'], []],
    [
      ['{ match: POST /a, open: true }', '{ match: POST /a, open: true }'],
      ['4:7 error the same row is in line 3'],
    ],
  ])('%j', (rows, problems) => {
    expect(problemsOf(listOf(...rows))).toEqual(problems);
  });
});

describe('a document that is refused', () => {
  const keys = 'a list has the keys tokenIn, groups and complete';
  const named = 'groups must map each name to a list of rows';
  const rows = 'a group is a list of rows, at least one, each after "- "';
  const group = 'groups:\n  A:\n    - GET /a\n';
  it.each([
    ['', [`1:1 error ${keys}`]],
    ['# nothing\n', [`1:1 error ${keys}`]],
    ['- GET /a\n', [`1:1 error ${keys}`]],
    ['complete: true\n', ['1:1 error the key groups is missing']],
    ['groups:\ncomplete: true\n', [`1:8 error ${named}`]],
    ['groups: {}\ncomplete: true\n', [`1:9 error ${named}`]],
    ['groups: [GET /a]\ncomplete: true\n', [`1:9 error ${named}`]],
    ['groups:\n  A:\ncomplete: true\n', [`2:5 error ${rows}`]],
    ['groups:\n  A: []\ncomplete: true\n', [`2:6 error ${rows}`]],
    ['groups:\n  A: GET /a\ncomplete: true\n', [`2:6 error ${rows}`]],
    [
      'groups:\n  1:\n    - GET /a\ncomplete: true\n',
      [
        '2:3 error the name of a group: a text is needed here; put quotes around numbers, true, false and null',
      ],
    ],
    ['groups:\n  __proto__:\n    - GET /a\ncomplete: true\n', ['2:3 error a group needs a name']],
    [
      'groups: &a\n  A: &b\n    - GET /a\n  B: *b\ncomplete: true\n',
      ['4:6 error anchors and aliases are not allowed: write the rows out'],
    ],
    [group, ['4:1 error the list does not end with "complete: true": was it cut off?']],
    ['complete: true\ngroups:\n  A:\n    - GET /a\n', ['1:1 error complete: true must be the last key']],
    [`${group}complete: false\n`, ['4:11 error complete must be true']],
    [`${group}complete: "true"\n`, ['4:11 error complete must be true']],
    [`${group}complete:\n`, ['4:10 error complete must be true']],
    [`${group}rows: 1\ncomplete: true\n`, [`4:1 error unknown key: ${keys}`]],
    [`${group}<<: {}\ncomplete: true\n`, [`4:1 error unknown key: ${keys}`]],
    [`${group}  A:\n    - GET /b\ncomplete: true\n`, ['4:3 error this key occurs twice']],
    [`${listOf('GET /a')}---\n${listOf('GET /b')}`, ['5:1 error only one document is allowed in this file']],
    [
      'groups:\n\tA:\n\t\t- GET /a\ncomplete: true\n',
      [`1:8 error ${named}`, '2:1 error a line is indented with a tab: YAML takes spaces only'],
    ],
    [
      listOf('GET /a\n      - GET /b'),
      [
        '3:7 error "- GET /b" below is indented further than this row, so that YAML takes it for a part of this text: indent both alike',
      ],
    ],
    [`${group}complte: true\n`, [`4:1 error unknown key: did you mean complete? ${keys}`]],
    ['group:\n  A:\n    - GET /x\ncomplete: true\n', [`1:1 error unknown key: did you mean groups? ${keys}`]],
    [
      `${group}    - &b\ncomplete: true\n`,
      ['4:9 error anchors are not allowed; put quotes around a text that begins with &'],
    ],
    [
      'groups:\n  A:\n    - &a GET /x\ncomplete: true\n',
      ['3:10 error anchors are not allowed; put quotes around a text that begins with &'],
    ],
  ])('%j', (text, problems) => {
    expect(problemsOf(text)).toEqual(problems);
  });

  it('reports all problems together, in the order of the file', () => {
    const text = listOf('GET /a', 'get /b', 'GET /a', '{ match: "GET /c", foo: 1 }').replace('true', 'false');
    expect(problemsOf(text).map((problem) => problem.replace(/ error .*/, ''))).toEqual([
      '4:7',
      '5:7',
      '6:26',
      '7:11',
    ]);
  });

  it('is refused when it is longer than 10 MB', () => {
    const text = `#${'x'.repeat(10_000_000)}\n${listOf('GET /a')}`;
    expect(problemsOf(text)).toEqual(['1:1 error the list is longer than 10 MB']);
  });

  it('is refused with 20,000 levels, or with aliases that multiply', () => {
    expect(problemsOf('['.repeat(20_000)).length).toBeGreaterThan(0);
    expect(problemsOf('{a: '.repeat(20_000)).length).toBeGreaterThan(0);
    const bomb = `a: &a [x]\n${Array.from('bcdefghij', (key, i) => `${key}: &${key} [${`*${'abcdefghij'[i]},`.repeat(9)}]`).join('\n')}\n`;
    expect(problemsOf(bomb).length).toBeGreaterThan(0);
  });
});

describe('tokenIn', () => {
  const locationsOf = (text: string) => readList(text).rows.map(({ tokenIn }) => tokenIn);

  it('of a row wins over that of the list; the default is the header', () => {
    const rows = [
      'GET /a',
      '{ match: GET /b, tokenIn: header }',
      '{ match: GET /c, tokenIn: [cookie:a, header] }',
    ];
    expect(locationsOf(listOf(...rows))).toEqual([undefined, undefined, ['cookie:a', 'header']]);
    const withDefault = locationsOf(`tokenIn: query:t\n${listOf(...rows)}`);
    expect(withDefault).toEqual([['query:t'], undefined, ['cookie:a', 'header']]);
  });

  it.each([
    ['body', 'a location is header, cookie:NAME, query:NAME or subprotocol:NAME (letters, digits, _ and -)'],
    ['[cookie:a, cookie:b]', 'tokenIn may name only one cookie'],
    ['[]', 'tokenIn is a location, or a list of locations, at least one'],
  ])('%s is an error in a row and at the top', (locations, problem) => {
    const ofRow = listOf(`{ match: GET /a, tokenIn: ${locations} }`);
    for (const text of [ofRow, `tokenIn: ${locations}\n${listOf('GET /a')}`]) {
      const { list: read, problems } = parseProtectedList(text, 'list.yaml');
      expect(read).toBe(undefined);
      expect(problems.map((one) => one.text)).toContain(problem);
    }
  });

  it.each([
    ['header', 'cookie:a', true],
    ['cookie:a', 'header', true],
    ['[header, cookie:a]', 'header', false],
    ['header', '[header, query:a]', true],
    ['query:a', 'query:b', true],
  ])('from %s to %s: looser: %s', (before, after, isLooser) => {
    const read = (locations: string) => readList(listOf(`{ match: GET /a, tokenIn: ${locations} }`));
    expect([...differencesOf(read(before), read(after))]).toMatchObject([{ what: ['tokenIn'], isLooser }]);
    expect([...differencesOf(read(before), read(before))]).toEqual([]);
  });
});
