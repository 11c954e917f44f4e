import type { ProtectedResource } from '../../access/protected-list.ts';
import { type Method, methods } from '../../http/canonical-request.ts';
import { buildPathTable } from '../../http/path-table.ts';

/** A method and a path template. */
export interface Route {
  readonly method: ProtectedResource['method'];
  readonly template: string;
}

/** Which rows of a list meet the requests of a route; `exact`: by the plain reading of the path. */
export interface RowCover {
  rowsOf(route: Route): readonly { readonly row: ProtectedResource; readonly exact: boolean }[];
  /** Whether every method of the route meets a row that refuses. */
  isCovered(route: Route): boolean;
}

/** Matches one sample request per route: its parameters stand for ids that no row has as a literal. */
export function createRowCover(rows: readonly ProtectedResource[]): RowCover {
  const table = buildPathTable(
    rows.map((row) => ({ method: row.method, template: row.template, data: row })),
    { ignoredPrefixes: [] },
  );
  const match = (method: Method, template: string) =>
    table.match({ method, segments: sampleSegments(template), isFormPost: false });
  return {
    rowsOf: ({ method, template }) =>
      methodsOf(method).flatMap((one) =>
        match(one, template).map(({ data, exact }) => ({ row: data, exact })),
      ),
    isCovered: ({ method, template }) =>
      methodsOf(method).every((one) => match(one, template).some(({ data }) => !data.observe)),
  };
}

function methodsOf(method: Route['method']): readonly Method[] {
  return method === 'ANY' ? methods.filter((one) => one !== 'OPTIONS' && one !== 'HEAD') : [method];
}

function sampleSegments(template: string): string[] {
  return template
    .slice(1)
    .split('/')
    .map((segment) => (segment.startsWith('{') || segment === '**' ? 'sample-id-0' : segment));
}
