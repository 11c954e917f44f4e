import { describe, expect, it } from 'vitest';
import type { Method } from '../../../src/http/canonical-request.ts';
import { decodeSegment } from '../../../src/http/path-folding.ts';
import { buildPathTable } from '../../../src/routes/path-table.ts';
import { tableRequest } from './path-table-request.ts';

const ignoredPrefixes = ['/index.php'];

function table(rows: readonly string[], prefixes: readonly string[] = ignoredPrefixes) {
  return buildPathTable(
    rows.map((row) => {
      const [method, template] = row.split(' ') as [Method | 'ANY', string];
      return { method, template, data: row };
    }),
    { ignoredPrefixes: prefixes, formatSuffixes: ['json', 'XML'] },
  );
}

/** Rows, request -> matching rows; `~` marks a row that only a lenient interpretation matches. */
const cases: Record<string, readonly (readonly [rows: string[], request: string, met: string[]])[]> = {
  'the plain reading': [
    [['GET /carts'], 'GET /carts', ['GET /carts']],
    [['GET /carts/{id}'], 'GET /carts/1', ['GET /carts/{id}']],
    [['GET /carts/{id}'], 'GET /carts', []],
    [['GET /carts'], 'GET /carts-history', []],
    [['GET /carts/{id}/items/{item}'], 'GET /carts/1/items/2', ['GET /carts/{id}/items/{item}']],
    [['GET /carts/{id}/items/{item}'], 'GET /carts/1/items', []],
    [['GET /'], 'GET /', ['GET /']],
    [['GET /'], 'GET /carts', []],
    [['GET /a%C3%BC'], 'GET /a%C3%BC', ['GET /a%C3%BC']],
    [['GET /a/{x}', 'GET /{y}/b'], 'GET /a/b', ['GET /a/{x}', 'GET /{y}/b']],
  ],
  methods: [
    [['GET /a'], 'HEAD /a', ['GET /a']],
    [['HEAD /a'], 'GET /a', []],
    [['GET /a'], 'POST /a', []],
    [['ANY /a'], 'PUT /a', ['ANY /a']],
    [['ANY /a', 'GET /a'], 'OPTIONS /a', []],
    [['OPTIONS /a'], 'OPTIONS /a', ['OPTIONS /a']],
    [['PATCH /a', 'DELETE /a', 'OPTIONS /a'], 'form POST /a', ['PATCH /a', 'DELETE /a']],
    [['PATCH /a'], 'POST /a', []],
    [['GET /a', 'PATCH /a'], 'SEARCH /a', ['GET /a', 'PATCH /a']],
    [['GET /a/{x}', 'PATCH /a/{x}'], 'form POST /a/1', ['GET /a/{x}', 'PATCH /a/{x}']],
  ],
  'spelling of segments': [
    [['GET /carts/{id}'], 'GET /CARTS/1', ['~GET /carts/{id}']],
    [['GET /Carts/{id}'], 'GET /carts/1', ['~GET /Carts/{id}']],
    // Java, .NET, Go and PCRE treat these as the same letter when they ignore case.
    [['GET /carts/{id}'], 'GET /cart%C5%BF/1', ['~GET /carts/{id}']],
    [['GET /wishlists'], 'GET /w%C4%B1shlists', ['~GET /wishlists']],
    [['GET /wishlists'], 'GET /W%C4%B0SHLI%C5%BFTS', ['~GET /wishlists']],
    [['GET /kits'], 'GET /%E2%84%AAits', ['~GET /kits']],
    [['GET /caf%C3%A9s'], 'GET /CAFE%CC%81S', ['~GET /caf%C3%A9s']],
    // U+FF0F and U+2105, whose compatible forms contain a slash: `a/b` and `c/o`.
    [['GET /a%EF%BC%8Fb', 'GET /%E2%84%85', 'GET /carts'], 'GET /carts', ['GET /carts']],
    [['GET /a%EF%BC%8Fb', 'GET /a', 'GET /b'], 'GET /A%EF%BC%8Fb', ['~GET /a%EF%BC%8Fb']],
    [['GET /carts'], 'GET /c%C3%A4rts', ['~GET /carts']],
    [['GET /carts'], 'GET /%D1%81arts', []],
    [['GET /carts/{id}'], 'GET /carts;a=b/1', ['~GET /carts/{id}']],
    [['GET /carts/{id}'], 'GET /carts%3Ba/1', ['~GET /carts/{id}']],
    [['GET /carts/{id}'], 'GET /carts./1', ['~GET /carts/{id}']],
    [['GET /carts/{id}'], 'GET /carts.x/1', []],
    [['GET /a%20b'], 'GET /a%20b', ['GET /a%20b']],
    [['GET /a!b'], 'GET /a%21b', ['~GET /a!b']],
    [['GET /carts/{id}'], 'GET /carts/1;x', ['GET /carts/{id}']],
    [['GET /carts'], 'GET /carts%', []],
    [['GET /carts'], 'GET /%63arts%FF', []],
  ],
  'empty segments': [
    [['GET /carts'], 'GET /carts/', ['~GET /carts']],
    [['GET /carts'], 'GET /carts///', ['~GET /carts']],
    [['PATCH /carts/{id}'], 'PATCH /carts/', ['~PATCH /carts/{id}']],
    [['PATCH /carts/{id}'], 'PATCH /carts//', ['~PATCH /carts/{id}']],
    [['GET /carts', 'GET /carts/{id}'], 'GET /carts/', ['~GET /carts', '~GET /carts/{id}']],
    [['POST /carts/{id}/items'], 'POST /carts//items', ['~POST /carts/{id}/items']],
    [['POST /carts/{id}/items'], 'POST /carts//1//items', ['~POST /carts/{id}/items']],
    [['POST /carts/{id}/items'], 'POST /carts/;x//items', ['~POST /carts/{id}/items']],
    // Pairs of type and id are counted from the start of the path, with or without empty segments.
    [['POST /carts/{id}/items'], 'POST /;x/carts//x/1/items', ['~POST /carts/{id}/items']],
    [['POST /carts/{id}/items'], 'POST /;x/y/carts/1//q/1/items', ['~POST /carts/{id}/items']],
    [['POST /carts/{id}/items'], 'POST /x/carts/;e/q/1/items', []],
    [['DELETE /c/{id}/a/{id2}'], 'DELETE /c//1/a/', ['~DELETE /c/{id}/a/{id2}']],
    [['GET /carts'], 'GET /', []],
  ],
  prefixes: [
    [['GET /carts'], 'GET /index.php/carts', ['~GET /carts']],
    [['GET /carts'], 'GET /index.php;x//carts/', ['~GET /carts']],
    [['GET /carts'], 'GET /index.phpcarts', ['~GET /carts']],
    [['GET /carts/{id}'], 'GET /V1;x//index.phpcarts/1', ['~GET /carts/{id}']],
    [['PATCH /carts/{id}'], 'PATCH /Index.Phpcarts;x/1', ['~PATCH /carts/{id}']],
    [['GET /'], 'GET /index.php', ['~GET /']],
    [['GET /carts'], 'GET /index.html/carts', []],
    [['GET /index.php'], 'GET /index.php', ['GET /index.php']],
  ],
  'the end of a longer path': [
    [['PATCH /carts/{id}'], 'PATCH /carts/x/carts/1', ['~PATCH /carts/{id}']],
    [['PATCH /carts/{id}'], 'PATCH /v1/carts/1', ['~PATCH /carts/{id}']],
    [['PATCH /carts/{id}'], 'PATCH /carts/1/x', []],
    [['PATCH /c/{id}/items/{i}'], 'PATCH /c/1/items/2/items/3', ['~PATCH /c/{id}/items/{i}']],
    [['PATCH /c/{id}/items/{i}'], 'PATCH /c/1/x/y/items/3', ['~PATCH /c/{id}/items/{i}']],
    [['POST /c/{id}/items'], 'POST /c/1/x/y/items', ['~POST /c/{id}/items']],
    [['POST /c/{id}/items'], 'POST /x/y/items', []],
    // A pair joined with the last pair matches from its start only. Every such path is looked up.
    [['PATCH /c/items/{i}'], 'PATCH /c/c/y/z/items/3', []],
    [['GET /a/l/l/**'], 'GET /a/a/a/l/x/y/l/l', ['~GET /a/l/l/**']],
    [['GET /carts'], 'GET /x/1/carts', ['~GET /carts']],
    [['GET /carts'], 'GET /x/carts', []],
    [['GET /carts'], 'GET /x//carts', ['~GET /carts']],
    [['GET /carts'], 'GET /x/carts/1', []],
  ],
  'a version in front': [
    [['GET /carts'], 'GET /v0/carts', ['~GET /carts']],
    [['GET /carts'], 'GET /v0.42/carts', ['~GET /carts']],
    [['GET /carts'], 'GET /V1%2E0;x/carts', ['~GET /carts']],
    [['GET /carts'], 'GET /v0//carts', ['~GET /carts']],
    [['GET /carts'], 'GET /index.phpv0/carts', ['~GET /carts']],
    [['GET /carts'], 'GET /v0/index.php/carts', ['~GET /carts']],
    [['GET /carts'], 'GET /%EF%BD%96%EF%BC%90/carts', ['~GET /carts']],
    [['GET /c/{id}/items'], 'GET /v0/c/1/x/y/items', ['~GET /c/{id}/items']],
    [['GET /carts'], 'GET /v/carts', []],
    [['GET /carts'], 'GET /x/v1/carts', ['~GET /carts']],
    [['GET /v1/carts'], 'GET /v1/carts', ['GET /v1/carts']],
    [['GET /v1/carts'], 'GET /carts', ['~GET /v1/carts']],
    [['GET /v1/carts'], 'GET /v2/carts', ['~GET /v1/carts']],
    [['GET /v1/carts', 'GET /carts'], 'GET /carts', ['GET /carts']],
    [['GET /v1/carts', 'GET /carts'], 'GET /v1/carts', ['GET /v1/carts', '~GET /carts']],
    // Without its version such a row names no resource.
    [['GET /v1/**'], 'GET /carts', []],
    [['GET /v1/{id}'], 'GET /carts', []],
  ],
  'the item form': [
    [['GET /carts'], 'GET /carts/carts', ['~GET /carts']],
    [['GET /c/{id}/up'], 'GET /c/17/up/x', ['~GET /c/{id}/up']],
    [['GET /c/{id}/up'], 'GET /c/17/y/z/up/x', ['~GET /c/{id}/up']],
    [['GET /c/{id}/up'], 'GET /c/17/up/x/y', []],
    [['POST /carts'], 'POST /carts/1', ['~POST /carts']],
    [['POST /carts'], 'GET /carts/1', []],
    [['GET /carts', 'GET /carts/{id}'], 'GET /carts/1', ['GET /carts/{id}']],
    [['GET /carts', 'ANY /Carts/{id}'], 'GET /x/1/carts/1', ['~ANY /Carts/{id}']],
    [['ANY /carts', 'GET /carts/{id}'], 'PUT /carts/1', ['~ANY /carts']],
    [['GET /v1/carts'], 'GET /carts/1', ['~GET /v1/carts']],
  ],
  'a format suffix': [
    [['GET /abc'], 'GET /abc.json', ['~GET /abc']],
    [['GET /abc'], 'GET /ABC.XML;x/', ['~GET /abc']],
    [['GET /abc'], 'GET /abc.json.', ['~GET /abc']],
    [['GET /abc'], 'GET /abc.html', []],
    [['GET /abc.json'], 'GET /abc.json', ['GET /abc.json']],
    [['GET /abc.json'], 'GET /abc', []],
    [['GET /abc'], 'GET /abc.json/x/y', []],
  ],
  'the rest of a path': [
    [['GET /r/**'], 'GET /r', ['GET /r/**']],
    [['GET /r/**'], 'GET /r/a/b/c', ['GET /r/**']],
    [['GET /r/**'], 'GET /R/a', ['~GET /r/**']],
    [['GET /r/**'], 'GET /x/r', []],
    [['GET /r/**'], 'GET /x/r/a', ['~GET /r/**']],
    [['GET /r/**'], 'GET /x/1/r', ['~GET /r/**']],
    [['GET /r/**'], 'GET /rx/a', []],
    [['GET /a/{x}/b/**'], 'GET /a/1/b', ['GET /a/{x}/b/**']],
    [['GET /a/{x}/b/**'], 'GET /a/1/y/z/b/2', ['~GET /a/{x}/b/**']],
    [['GET /a/{x}/b/**'], 'GET /a/1', []],
    [['ANY /**'], 'GET /', ['ANY /**']],
    [['ANY /**'], 'DELETE /a/b', ['ANY /**']],
    [['ANY /**'], 'OPTIONS /a/b', []],
  ],
};

for (const [title, list] of Object.entries(cases)) {
  describe(title, () => {
    it.each(list)('%j: %s meets %j', (rows, request, met) => {
      const matches = table(rows).match(tableRequest(request));
      expect(matches.map(({ data, exact }) => (exact ? data : `~${data}`))).toEqual(met);
    });
  });
}

it.each([
  ['GET /x%2Fcarts/1', '/x/carts/1', ['~GET /carts/{id}']],
  ['GET /%2Fcarts%2F1', '//carts/1', ['~GET /carts/{id}']],
  ['GET /x%2Fy', '/x/y', []],
])('%s, which the upstream may read as %s', (request, alternative, met) => {
  const matches = table(['GET /carts/{id}']).match(tableRequest(request, alternative));
  expect(matches.map(({ data, exact }) => (exact ? data : `~${data}`))).toEqual(met);
});

describe('a rule can be switched off', () => {
  it.each([
    ['GET /v0/carts', { versionSegments: false }],
    ['GET /carts/1', { itemForms: false }],
    ['GET /x/y/carts', { lastPair: false }],
    ['GET /x/y/carts/1', { lastPair: false }],
  ])('%s', (request, rule) => {
    const rows = [{ method: 'GET' as const, template: '/carts', data: 0 }];
    const met = (rules: object) =>
      buildPathTable(rows, { ignoredPrefixes, ...rules }).match(tableRequest(request)).length;
    expect([met({}), met(rule)]).toEqual([1, 0]);
  });

  it('* allows any format suffix', () => {
    const any = buildPathTable([{ method: 'GET', template: '/carts', data: 0 }], {
      ignoredPrefixes,
      formatSuffixes: ['*'],
    });
    for (const path of ['/carts.anything', '/carts.a.b', '/carts.a.b.c', '/carts..a.b'])
      expect(any.match(tableRequest(`GET ${path}`)), path).toHaveLength(1);
  });

  it.each([
    ['/carts.en.json', 1],
    ['/carts.json.en;x', 1],
    ['/carts.en.json/', 1],
    ['/carts.en.x.json', 0],
    ['/carts.en.json.en', 0],
  ])('a format and a language may both be cut off: %s', (path, count) => {
    const rows = [{ method: 'GET' as const, template: '/carts', data: 0 }];
    const both = buildPathTable(rows, { ignoredPrefixes, formatSuffixes: ['json', 'en'], itemForms: false });
    expect(both.match(tableRequest(`GET ${path}`))).toHaveLength(count);
  });
});

describe('the interpretation that matched a row', () => {
  it.each([
    ['GET /carts', []],
    ['GET /v0/carts', ['version']],
    ['GET /index.phpv0/carts', ['prefix', 'version']],
    ['GET /carts///', ['empty-segments']],
    ['GET /carts/', ['item-form', 'empty-id']],
    ['GET /carts/x', ['item-form']],
    ['GET /Carts.json', ['format-suffix', 'spelling']],
    ['GET /carts;/x/y', ['params', 'spelling']],
    ['GET /x/1/carts', ['longer-path']],
  ])('%s: %j', (request, reading) => {
    const [met] = table(['GET /carts']).match(tableRequest(request));
    expect(met?.interpretation).toEqual(reading);
  });

  it('names a suffix that is longer than the segment before it', () => {
    const [met] = table(['GET /c']).match(tableRequest('GET /C.json'));
    expect(met?.interpretation).toEqual(['format-suffix', 'spelling']);
  });
});

describe('parameters', () => {
  it.each([
    ['GET /c/{a}/i/{b}', 'GET /c/1%20;x/i/ABC', { a: '1%20;x', b: 'ABC' }],
    ['GET /c/{a}/i/{b}', 'GET /c/0/c/1/i/2', { a: '1', b: '2' }],
    ['GET /c/{a}/i/{b}', 'GET /c/1/x/y/i/2', { a: '1', b: '2' }],
    ['GET /c/{a}/i/{b}', 'GET /c//1/i/2', { a: '1', b: '2' }],
    ['GET /c/{a}/i/{b}', 'GET /c/1/i/', { a: '1', b: '' }],
    ['GET /c/{a}', 'GET /index.php/c/1', { a: '1' }],
    ['GET /c/{a}', 'GET /index.phpc/1', { a: '1' }],
    ['GET /c/{constructor}/**', 'GET /c/1/2', { constructor: '1' }],
  ])('%s, %s: %j', (row, request, params) => {
    expect(
      table([row])
        .match(tableRequest(request))
        .map((match) => match.params),
    ).toEqual([params]);
  });
});

describe('an encoded slash', () => {
  const rows = ['GET /pages/{id}', 'GET /carts/{id}'];

  it('is read as a character and as a slash', () => {
    const met = table(rows).match(tableRequest('GET /pages/carts%2F1', '/pages/carts/1'));
    expect(met).toEqual([
      { data: 'GET /pages/{id}', params: { id: 'carts%2F1' }, exact: true, interpretation: [] },
      {
        data: 'GET /carts/{id}',
        params: { id: '1' },
        exact: false,
        interpretation: ['encoded-slash', 'longer-path'],
      },
    ]);
  });
});

describe('rows of one shape', () => {
  it('all match, in their order, with their own parameter names', () => {
    const met = table(['GET /c/{b}', 'GET /c/{a}']).match(tableRequest('GET /c/1'));
    expect(met).toEqual([
      { data: 'GET /c/{b}', params: { b: '1' }, exact: true, interpretation: [] },
      { data: 'GET /c/{a}', params: { a: '1' }, exact: true, interpretation: [] },
    ]);
  });

  it('exact ones come first', () => {
    const met = table(['GET /C/{id}', 'GET /c/{id}']).match(tableRequest('GET /c/1'));
    expect(met.map(({ data }) => data)).toEqual(['GET /c/{id}', 'GET /C/{id}']);
  });
});

describe('prefixes of several segments', () => {
  const met = (prefixes: string[], path: string, alternative?: string) =>
    table(['GET /carts'], prefixes).match(tableRequest(`GET ${path}`, alternative)).length > 0;

  it('are stripped only if all of their segments match', () => {
    expect(met(['/a/b/c'], '/a/b/c/carts')).toBe(true);
    for (const path of ['/x/b/c/carts', '/a/x/c/carts', '/a/b/x/carts'])
      expect(met(['/a/b/c'], path)).toBe(false);
  });

  it('two readings of a slash are both stripped', () => {
    const prefixes = ['/a/b', '/a/b/q'];
    expect(met(prefixes, '/a/b/q/q/q%2Fcarts.json', '/a/b/q/q/q/carts.json')).toBe(true);
    expect(met(prefixes.slice(0, 1), '/a/b/q/q/q%2Fcarts.json', '/a/b/q/q/q/carts.json')).toBe(false);
  });
});

it.each([
  ['a%20b', 'a b'],
  ['%C3%A9', 'é'],
  ['%FF', '%FF'],
  ['%FF%20', '%FF '],
  ['%', '%'],
])('decodes the segment %j to %j', (segment, text) => {
  expect(decodeSegment(segment)).toBe(text);
});
