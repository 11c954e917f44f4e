import { describe, expect, test } from 'vitest';
import type { CanonicalRequest, Method } from '../../../src/http/canonical-request.ts';
import type { FieldList } from '../../../src/http/field-list.ts';
import { type CorsSettings, createCors, createOwnFields } from '../../../src/server/own-fields.ts';

const shop = 'https://shop.example';
const settings: CorsSettings = {
  origins: [shop],
  exposedFields: ['ETag', 'Location', 'Retry-After'],
};

function request(method: Method, fields: FieldList): CanonicalRequest {
  return { method, fields, requestId: 'r1' } as unknown as CanonicalRequest;
}

/** Field list -> readable lines. */
const lines = (fields: FieldList) =>
  fields.flatMap((part, i) => (i % 2 === 0 ? [`${part}: ${fields[i + 1]}`] : []));

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
