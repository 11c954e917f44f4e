import { describe, expect, test } from 'vitest';
import type { FieldList } from '../../../src/http/field-list.ts';
import { type CorsSettings, createCors, createOwnFields } from '../../../src/server/own-fields.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

const shop = 'https://shop.example';
const open = (more: Partial<CorsSettings> = {}) =>
  createCors({ origins: [shop], exposedFields: ['ETag', 'Location'], ...more });
const request = (method: string, fields: readonly string[]) => accepted(sampleHead({ method, fields }));
const asked = ['Access-Control-Request-Method', 'PATCH'];

describe('a preflight', () => {
  test.each([
    ['OPTIONS', ['Origin', shop, ...asked], true],
    ['GET', ['Origin', shop, ...asked], false],
    ['OPTIONS', ['Origin', 'https://evil.example', ...asked], false],
    ['OPTIONS', ['Origin', `${shop}.evil.example`, ...asked], false],
    ['OPTIONS', ['Origin', shop.toUpperCase(), ...asked], false],
    ['OPTIONS', ['Origin', 'null', ...asked], false],
    ['OPTIONS', asked, false],
    ['OPTIONS', ['Origin', shop], false],
  ])('%s %j: %s', (method, fields, is) => {
    expect(open().isPreflight(request(method, fields))).toBe(is);
  });

  test('with origins: * has any Origin, but must have one', () => {
    const everybody = open({ origins: ['*'] });
    expect(everybody.isPreflight(request('OPTIONS', ['Origin', 'null', ...asked]))).toBe(true);
    expect(everybody.isPreflight(request('OPTIONS', asked))).toBe(false);
  });

  test('allows each requested field once, and no invalid field name', () => {
    const sent = 'X-New, if-match,*, a b, x-new, ,x_y';
    const { status, fields, body } = open().answerPreflight(
      request('OPTIONS', ['Origin', shop, 'Access-Control-Request-Headers', sent]),
    );
    expect([status, body]).toEqual([204, null]);
    expect(fields).toEqual([
      'Access-Control-Allow-Headers',
      'Accept, Accept-Language, Authorization, Content-Type, If-Match, If-None-Match, Store, X-Anonymous-Customer-Unique-Id, X-New, *',
      ...['Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
      ...['Access-Control-Max-Age', '600'],
    ]);
  });

  test.each([100, 101])('allows names of at most 100 characters: %i', (length) => {
    const sent = ['Access-Control-Request-Headers', 'x'.repeat(length)];
    const [, allowed] = open().answerPreflight(request('OPTIONS', sent)).fields;
    expect(allowed?.endsWith(`, ${'x'.repeat(length)}`)).toBe(length === 100);
  });
});

describe('an answer', () => {
  const exposed = ['Access-Control-Expose-Headers', 'ETag, Location'];
  const own = ['Access-Control-Allow-Origin', shop];
  const credentials = ['Access-Control-Allow-Credentials', 'true'];
  const vary = ['Vary', 'Origin'];
  test.each<[string, Partial<CorsSettings>, string | undefined, string[], string[]]>([
    ['to a known origin', {}, shop, [], [...own, ...credentials, ...exposed, ...vary]],
    ['to an unknown origin', {}, 'https://evil.example', [], vary],
    ['to a request without Origin', {}, undefined, [], vary],
    ['without credentials', { credentials: false }, shop, [], [...own, ...exposed, ...vary]],
    ['with credentials', { credentials: true }, shop, [], [...own, ...credentials, ...exposed, ...vary]],
    ['to everybody', { origins: ['*'] }, 'x', [], ['Access-Control-Allow-Origin', '*', ...exposed]],
    [
      'to everybody, even with credentials: true',
      { origins: ['*'], credentials: true },
      undefined,
      [],
      ['Access-Control-Allow-Origin', '*', ...exposed],
    ],
    [
      'of a shop that exposes fields',
      {},
      shop,
      ['etag, X-Shop', 'x-more'],
      [...own, ...credentials, 'Access-Control-Expose-Headers', 'ETag, Location, X-Shop, x-more', ...vary],
    ],
  ])('%s', (_, settings, origin, ofShop, fields) => {
    expect(open(settings).fieldsFor(origin, ofShop)).toEqual(fields);
  });
});

const requestOf = (fields: FieldList) => ({ ...request('GET', fields), requestId: 'r1' });

/** Field list -> text lines. */
const lines = (fields: FieldList) =>
  fields.flatMap((part, i) => (i % 2 === 0 ? [`${part}: ${fields[i + 1]}`] : []));

describe('fields of answers', () => {
  test('with cors.origins, the shop cannot allow an origin, but its exposed fields stay exposed', () => {
    const own = createOwnFields(open());
    const upstream = [
      ...['ETag', '"a"', 'Access-Control-Allow-Origin', '*'],
      ...['access-control-expose-headers', 'X-A, location'],
    ];
    expect(lines(own.editForwarded(upstream, requestOf(['Origin', shop])))).toEqual([
      'ETag: "a"',
      'X-Request-Id: r1',
      `Access-Control-Allow-Origin: ${shop}`,
      'Access-Control-Allow-Credentials: true',
      'Access-Control-Expose-Headers: ETag, Location, X-A',
      'Vary: Origin',
    ]);
    expect(lines(own.editForwarded(upstream, requestOf(['Origin', 'https://evil.example'])))).toEqual([
      'ETag: "a"',
      'X-Request-Id: r1',
      'Vary: Origin',
    ]);
  });

  test.each([
    [['Access-Control-Allow-Origin', '*'], 'ETag'],
    [['Access-Control-Allow-Origin', '*', 'Access-Control-Expose-Headers', 'X-A, X-B'], 'X-A, X-B, ETag'],
    [['Access-Control-Allow-Origin', '*', 'Access-Control-Expose-Headers', 'x-a, etag'], 'x-a, etag'],
    [['Access-Control-Allow-Origin', '*', 'Access-Control-Expose-Headers', '*'], '*'],
  ])("without origins the shop's fields stay and ETag is exposed (%j)", (upstream, exposed) => {
    const own = createOwnFields(undefined);
    const edited = lines(own.editForwarded(upstream, requestOf([])));
    expect(edited).toContain('Access-Control-Allow-Origin: *');
    expect(edited.filter((line) => line.startsWith('Access-Control-Expose'))).toEqual([
      `Access-Control-Expose-Headers: ${exposed}`,
    ]);
  });

  test('without origins there are no cross-origin fields, and only the request id of the proxy', () => {
    const own = createOwnFields(undefined);
    const edited = own.editForwarded(['x-request-id', 'theirs', 'A', 'b'], requestOf(['Origin', shop]));
    expect(lines(edited)).toEqual(['A: b', 'X-Request-Id: r1']);
  });
});
