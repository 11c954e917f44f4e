import assert from 'node:assert/strict';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileTrackedResources, type TrackedResourceOptions } from '../../../src/entity-tags/resources.ts';
import type { CanonicalRequest } from '../../../src/http/canonical-request.ts';
import { buildPathTable, type PathTableRow } from '../../../src/routes/path-table.ts';

type TrackedRole = readonly [resource: TrackedResourceOptions, role: string];

const read = (segments: readonly string[]) =>
  ({ method: 'GET', segments, isFormPost: false }) as unknown as CanonicalRequest;

/** The answer of the table of all path interpretations. Only an exact match counts for a read. */
function byTable(resources: readonly TrackedResourceOptions[], request: CanonicalRequest) {
  const rows = resources.flatMap((one): PathTableRow<TrackedRole>[] => [
    { method: 'ANY', template: one.collection, data: [one, 'collection'] },
    { method: 'ANY', template: one.member, data: [one, 'member'] },
    { method: 'ANY', template: `${one.member}/**`, data: [one, 'below'] },
  ]);
  const { segments } = request;
  const isExact = ([one, role]: TrackedRole) =>
    role !== 'below' || segments.length > one.member.split('/').length - 1;
  const exact = buildPathTable(rows, { ignoredPrefixes: [] })
    .match(request)
    .find((match) => match.exact && !segments.includes('') && isExact(match.data));
  if (exact === undefined || exact.data[1] === 'below') return undefined;
  return [exact.data[0].member, exact.data[1], Object.values(exact.params).slice(0, segments.length)];
}

const word = fc.constantFrom('carts', 'items', 'Carts', 'a', '1', '');
const part = fc.constantFrom('carts', 'items', '{p}', '{q}');
const resource = fc.uniqueArray(part, { minLength: 1, maxLength: 3 }).map((parts): TrackedResourceOptions => {
  const collection = `/${parts.join('/')}`;
  return { collection, member: `${collection}/{id}`, methods: [], ifMatch: 'strict', ignore: [] };
});

test('a read is tracked exactly if the path table has an exact match', () => {
  let tracked = 0;
  fc.assert(
    fc.property(
      fc.uniqueArray(resource, {
        minLength: 1,
        maxLength: 3,
        selector: ({ member }) => member.replace(/\{\w+\}/g, '{}'),
      }),
      fc.array(word, { minLength: 1, maxLength: 5 }),
      (resources, segments) => {
        const found = compileTrackedResources(resources, { ignoredPrefixes: [] })(read(segments));
        const said =
          found === undefined || typeof found === 'string'
            ? undefined
            : [found.resource.member, found.role, found.collectionIds];
        const expected = byTable(resources, read(segments));
        if (expected !== undefined) tracked++;
        const ids = expected?.[2] as string[] | undefined;
        assert.deepEqual(
          said,
          expected && [expected[0], expected[1], expected[1] === 'member' ? ids?.slice(0, -1) : ids],
        );
      },
    ),
    { numRuns: 1_000 },
  );
  expect(tracked).toBeGreaterThan(100);
});
