import { describe, expect, test } from 'vitest';
import type { CanonicalRequest, Method } from '../../src/http/canonical-request.ts';
import type { FieldList } from '../../src/http/field-list.ts';
import { type CorsSettings, createCors } from '../../src/server/cors.ts';
import { createOwnFields } from '../../src/server/own-fields.ts';

const shop = 'https://shop.example';
const settings: CorsSettings = {
  origins: [shop],
  exposedFields: ['ETag', 'Location', 'Retry-After'],
  maxAge: 600_000,
};

function request(method: Method, fields: FieldList): CanonicalRequest {
  return { method, fields, requestId: 'r1' } as unknown as CanonicalRequest;
}

/** Field list -> readable lines. */
const lines = (fields: FieldList) =>
  fields.flatMap((part, i) => (i % 2 === 0 ? [`${part}: ${fields[i + 1]}`] : []));

describe('preflight', () => {
  const { isPreflight, answerPreflight } = createCors(settings);
  const preflight = ['Origin', shop, 'Access-Control-Request-Method', 'PATCH'];

  test('of a known origin is answered here, allowing what was asked', () => {
    const fields = [...preflight, 'Access-Control-Request-Headers', 'if-match, x-mfa-code, bad name'];
    const asked = request('OPTIONS', fields);
    expect(isPreflight(asked)).toBe(true);
    const answer = answerPreflight(asked);
    expect(answer?.status).toBe(204);
    expect(lines(answer?.fields ?? [])).toEqual([
      'Access-Control-Allow-Headers: Accept, Accept-Language, Authorization, Content-Type, If-Match, If-None-Match, ' +
        'Store, X-Anonymous-Customer-Unique-Id, x-mfa-code',
      'Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
      'Access-Control-Max-Age: 600',
    ]);
  });

  test.each([
    [
      'another origin',
      'OPTIONS',
      ['Origin', 'https://evil.example', 'Access-Control-Request-Method', 'PATCH'],
    ],
    [
      'an origin in other letters',
      'OPTIONS',
      ['Origin', 'https://SHOP.example', 'Access-Control-Request-Method', 'GET'],
    ],
    ['a subdomain', 'OPTIONS', ['Origin', 'https://a.shop.example', 'Access-Control-Request-Method', 'GET']],
    ['no origin', 'OPTIONS', ['Access-Control-Request-Method', 'PATCH']],
    ['OPTIONS that is no preflight', 'OPTIONS', ['Origin', shop]],
    ['another method', 'GET', preflight],
  ] as const)('%s is not ours to answer', (_, method, fields) => {
    expect(isPreflight(request(method, fields))).toBe(false);
  });
});

describe('what is configured', () => {
  test('is all that a preflight allows', () => {
    const methods = ['GET', 'PATCH'] as const;
    const cors = createCors({ ...settings, methods, fields: ['If-Match'], maxAge: 1500 });
    const asked = request('OPTIONS', ['Origin', shop, 'Access-Control-Request-Headers', 'x-other']);
    expect(lines(cors.answerPreflight(asked).fields)).toEqual([
      'Access-Control-Allow-Headers: If-Match',
      'Access-Control-Allow-Methods: GET, PATCH',
      'Access-Control-Max-Age: 1',
    ]);
  });

  test.each([false, undefined])('an origin of * is everybody, without credentials (%s)', (credentials) => {
    const cors = createCors({ ...settings, origins: ['*'], credentials });
    const asked = ['Origin', 'https://any.example', 'Access-Control-Request-Method', 'PATCH'];
    expect(cors.isPreflight(request('OPTIONS', asked))).toBe(true);
    const expected = [
      'Access-Control-Allow-Origin: *',
      'Access-Control-Expose-Headers: ETag, Location, Retry-After',
    ];
    expect(lines(cors.fieldsFor('https://any.example'))).toEqual(expected);
    // The same for everybody: a cache may keep one answer.
    expect(lines(cors.fieldsFor(undefined))).toEqual(expected);
  });

  test('named origins may be without credentials, too', () => {
    const fields = lines(createCors({ ...settings, credentials: false }).fieldsFor(shop));
    expect(fields).toContain(`Access-Control-Allow-Origin: ${shop}`);
    expect(fields.join()).not.toContain('Credentials');
  });
});

describe('fields of answers', () => {
  test('with origins set the shop grants no origin; what it exposes stays readable', () => {
    const own = createOwnFields(createCors(settings));
    const upstream = [
      'ETag',
      '"a"',
      'Access-Control-Allow-Origin',
      '*',
      'access-control-expose-headers',
      'X-A, retry-after',
    ];
    expect(lines(own.editForwarded(upstream, request('GET', ['Origin', shop])))).toEqual([
      'ETag: "a"',
      'X-Request-Id: r1',
      `Access-Control-Allow-Origin: ${shop}`,
      'Access-Control-Allow-Credentials: true',
      'Access-Control-Expose-Headers: ETag, Location, Retry-After, X-A',
      'Vary: Origin',
    ]);
    expect(lines(own.editForwarded(upstream, request('GET', ['Origin', 'https://evil.example'])))).toEqual([
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
    const edited = lines(own.editForwarded(upstream, request('GET', [])));
    expect(edited).toContain('Access-Control-Allow-Origin: *');
    expect(edited.filter((line) => line.startsWith('Access-Control-Expose'))).toEqual([
      `Access-Control-Expose-Headers: ${exposed}`,
    ]);
  });

  test('without either there are no cross-origin fields, and one request id: ours', () => {
    const own = createOwnFields(undefined);
    const edited = own.editForwarded(['x-request-id', 'theirs', 'A', 'b'], request('GET', ['Origin', shop]));
    expect(lines(edited)).toEqual(['A: b', 'X-Request-Id: r1']);
  });
});
