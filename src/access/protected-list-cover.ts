import { type Method, methods } from '../http/canonical-request.ts';
import { buildPathTable, type PathTable } from '../routes/path-table.ts';
import { asksNoMore, type Conditional } from './claim-conditions.ts';
import type { ProtectedResource } from './protected-list.ts';
import { commonLocations, headerAlone } from './token-locations.ts';

type Route = Pick<ProtectedResource, 'method' | 'template'>;

/** Whether the rows of a list that match the requests of `row` require at least as much. */
export type RowCover = (row: Route & Asked) => boolean;

/** What the rows of one route require together; `asks`: the conditions of each row. */
interface Asked extends Pick<ProtectedResource, 'scopes' | 'tokenIn' | 'credentials'> {
  readonly asks: readonly Conditional[];
}

/** Matches sample requests of a route: each parameter is replaced by an id that no row has as a literal. */
export function createRowCover(rows: Iterable<ProtectedResource>): RowCover {
  const asTable = Array.from(rows, (row) => ({ method: row.method, template: row.template, data: row }));
  return coverOfTable(buildPathTable(asTable, { ignoredPrefixes: [] }));
}

export function coverOfTable(table: Pick<PathTable<ProtectedResource>, 'match'>): RowCover {
  return ({ method, template, scopes, tokenIn = headerAlone, credentials, asks }) =>
    methodsOf(method).every((one) =>
      samplesOf(template).every((segments) => {
        const met = table.match({ method: one, segments, isFormPost: false }).map(({ data }) => data);
        const asked = new Set(met.flatMap((row) => row.scopes));
        const enforced = met.filter(({ observe }) => !observe);
        if (enforced.length === 0 || !scopes.every((scope) => asked.has(scope))) return false;
        if (!asksNoMore(asks, enforced)) return false;
        if (credentials !== 'shop' && met.every((row) => row.credentials === 'shop')) return false;
        const locations = met.map((row) => row.tokenIn).reduce(commonLocations) ?? headerAlone;
        return locations.every((location) => tokenIn.includes(location));
      }),
    );
}

function methodsOf(method: Route['method']): readonly Method[] {
  return method === 'ANY' ? methods.filter((one) => one !== 'OPTIONS' && one !== 'HEAD') : [method];
}

export function sampleSegments(template: string): string[] {
  return template
    .slice(1)
    .split('/')
    .map((segment) => (segment.startsWith('{') || segment === '**' ? 'sample-id-0' : segment));
}

/** Numbers of segments that replace a `**`: some that other rows may have, and one beyond most rows. */
const depths = [1, 2, 3, 40];

/** Sample paths; for a row with `**` several, since it matches any depth. */
function samplesOf(template: string): string[][] {
  const sample = sampleSegments(template);
  if (!template.endsWith('**')) return [sample];
  const above = sample.slice(0, -1);
  return depths.map((depth) => [...above, ...Array.from({ length: depth }, (_, i) => `sample-id-${i}`)]);
}
