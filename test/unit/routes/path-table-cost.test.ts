import { beforeEach, describe, expect, it, vi } from 'vitest';
import { RouteSet } from '../../../src/routes/path-index.ts';
import { buildPathTable, type PathTableRequest, type PathTableRow } from '../../../src/routes/path-table.ts';
import { tableRequest } from './path-table-request.ts';

/** Look-ups of routes so far, and the segments that they read. */
const asked = { lookUps: 0, segments: 0 };
const find = RouteSet.prototype.find;
vi.spyOn(RouteSet.prototype, 'find').mockImplementation(function (this: RouteSet, ids, at, found) {
  const read = new Set<string | symbol>();
  const watched = new Proxy(ids, {
    get(target, key) {
      if (Object.hasOwn(target, key)) read.add(key);
      return Reflect.get(target, key);
    },
  });
  find.call(this, watched, at, found);
  asked.lookUps += 1;
  asked.segments += read.size;
});
/** Segments of the longest row, plus the one that shows the end of the row. */
const mostSegments = 5;

beforeEach(() => {
  asked.lookUps = 0;
  asked.segments = 0;
});

function rowsOf(count: number): PathTableRow<number>[] {
  const shapes = [
    (i: number) => `/type-${i}`,
    (i: number) => `/type-${i}/{id}`,
    (i: number) => `/type-${i % 97}/{id}/part-${i}`,
    (i: number) => `/type-${i % 97}/{id}/part-${i}/{part}`,
    (i: number) => `/tree-${i % 13}/{id}/**`,
  ];
  return Array.from({ length: count }, (_, i) => ({
    method: 'GET',
    template: shapes[i % shapes.length]?.(i) ?? '/',
    data: i,
  }));
}

const rules = { ignoredPrefixes: ['/index.php'], formatSuffixes: ['json', 'xml'] };

const tableOf = (count: number) => buildPathTable(rowsOf(count), rules);
const [few, some, many] = [tableOf(10), tableOf(1000), tableOf(10_000)];

function costOf(table: typeof few, request: PathTableRequest): typeof asked {
  asked.lookUps = 0;
  asked.segments = 0;
  table.match(request);
  return { ...asked };
}

const segments = (...parts: string[]) => ({
  method: 'GET' as const,
  segments: parts.slice(0, 64),
  isFormPost: false,
});
const often = (count: number, ...parts: string[]) => Array.from({ length: count }, () => parts).flat();

describe('a plain path', () => {
  it.each(['GET /type-1/7', 'GET /type-0', 'GET /type-2/1/part-2/5'])(
    '%s takes one look-up, with few rows and with many',
    (request) => {
      const once = { lookUps: 1, segments: request.split('/').length - 1 };
      expect(costOf(few, tableRequest(request))).toEqual(once);
      expect(costOf(many, tableRequest(request))).toEqual(once);
    },
  );

  it('without a word of any row takes no look-up', () => {
    expect(costOf(many, tableRequest('GET /abstract-products/1'))).toEqual({ lookUps: 0, segments: 0 });
  });

  it('of 64 segments takes one look-up, which reads no more segments than the longest row', () => {
    const { lookUps, segments: read } = costOf(many, segments(...often(63, 'x'), 'type-0'));
    expect([lookUps, read <= mostSegments]).toEqual([1, true]);
  });
});

/**
 * 21 variants with empty segments, each with and without decoded slashes, each with up to a prefix and a version
 * stripped in any order (five starts), each with and without a format suffix.
 */
const readings = 21 * 2 * 5 * 2;

describe('the most expensive paths', () => {
  const paths: Record<string, readonly string[]> = {
    'of empty segments': often(64, ''),
    'of empty and folded-empty segments': often(32, '', ';'),
    'of types with empty ids': often(32, 'type-1', ''),
    'of different types': Array.from({ length: 64 }, (_, i) => `type-${i * 5}`),
    'of different types and empties': Array.from({ length: 64 }, (_, i) =>
      i % 3 ? `type-${i}` : i % 2 ? '' : ';',
    ),
    'of trees': Array.from({ length: 64 }, (_, i) => `tree-${i % 13}`),
    'of prefixes': often(64, 'index.php'),
    'of glued prefixes': often(64, 'index.phpindex.php'),
    'of versions': often(64, 'v1.0'),
    'of prefixes, versions, types and empties': often(10, 'index.phpv1', 'v2', '', 'type-1', ';x', 'a.json'),
    'of format suffixes': often(32, 'type-1.json', ''),
    'of prefixes, types and empties': often(16, 'index.php', '', 'type-1', ';x'),
  };

  it.each(Object.entries(paths))('%s stay within the limit', (_, parts) => {
    const alternativeSegments = parts.toReversed();
    const { lookUps, segments: seen } = costOf(many, { ...segments(...parts), alternativeSegments });
    // Each reading is looked up from its end, and at most once more from each segment: as the parent of the last pair,
    // or as the start of a row with `**`. No look-up is longer than the longest row.
    expect(lookUps).toBeLessThanOrEqual(readings * (1 + 64 + 32));
    expect(seen).toBeLessThanOrEqual(lookUps * mostSegments);
    // In practice there are fewer, since equal look-ups are made once.
    expect(lookUps).toBeLessThanOrEqual(400);
  });

  it('take no more look-ups with more rows', () => {
    for (const parts of Object.values(paths)) {
      const { lookUps } = costOf(some, segments(...parts));
      expect(costOf(many, segments(...parts)).lookUps).toBe(lookUps);
    }
  });
});

describe('a row that matches with several readings of its parameters', () => {
  const table = buildPathTable([{ method: 'ANY', template: '/{a}/{b}/**', data: 0 }], rules, () => true);

  it('matches four times, and once without parameters if there are more readings', () => {
    const pairs = Array.from({ length: 32 }, (_, i) => [`type-${i}`, `${i}`]).flat();
    for (const path of [pairs, ['v1', '', ...pairs.flatMap((part) => [part, ''])]]) {
      const params = table.match(segments(...path)).map((met) => Object.keys(met.params).join());
      expect(params.toSorted()).toEqual(['', 'a,b', 'a,b', 'a,b', 'a,b']);
    }
    const params = table.match(segments('a', '1', 'b', '2')).map((met) => Object.values(met.params).join());
    expect(params).toEqual(['a,1', '1,b', 'b,2']);
  });

  it('is exact for the unchanged reading, also if the end of the path reads the same', () => {
    const [first] = table.match(segments('a', '1', 'a', '1'));
    expect(first).toMatchObject({ params: { a: 'a', b: '1' }, exact: true });
  });
});
