import {
  buildPathTableInSteps,
  type PathMatch,
  type PathRules,
  type PathTableRequest,
  type PathTableRow,
  type ReadingStep,
} from '../http/path-table.ts';
import { finish, type Steps } from '../lib/slices.ts';
import type { ProtectedResources } from './protected-list-document.ts';
import type { ProtectedResource } from './protected-resource.ts';

export {
  type ParsedProtectedList,
  type ProtectedResources,
  parseProtectedList,
} from './protected-list-document.ts';

/** What a request on a protected resource must bring: a valid access token with every scope. */
export interface Requirement {
  /** The row that decides: one that refuses before one that only observes, then exact, then earliest in the list. */
  readonly row: ProtectedResource;
  /** Path template of the deciding row, for log and metrics. */
  readonly route: string;
  /** Every row that the request meets, in the order of the list, exact ones first. */
  readonly rows: readonly ProtectedResource[];
  /** Of all rows together. */
  readonly scopes: readonly string[];
  /** Only when every row observes. */
  readonly observe: boolean;
}

export interface MatchedRow {
  readonly row: ProtectedResource;
  readonly exact: boolean;
  /** The reading of the path that meets it; empty where it is exact. */
  readonly reading: readonly ReadingStep[];
}

/** The protected list, compiled: immutable, so that a request finishes under the list it began with. */
export interface ProtectedList {
  readonly rows: readonly ProtectedResource[];
  /** Undefined: no row is met by any reading of the request, it needs no token. Deterministic. */
  match(request: PathTableRequest): Requirement | undefined;
  /** Each row that is met, exact ones first; for explanations. */
  matchRows(request: PathTableRequest): readonly MatchedRow[];
}

/** Compiles a parsed list; matching is that of `buildPathTable`, and of all rows met the strictest wins. */
export function compileProtectedList(
  list: Pick<ProtectedResources, 'rows'>,
  rules: PathRules,
): ProtectedList {
  return finish(compileInSteps(list, rules));
}

/** The same in small steps, for an edit while others are served. */
export function* compileInSteps(
  { rows }: Pick<ProtectedResources, 'rows'>,
  rules: PathRules,
): Steps<ProtectedList> {
  const tableRows: PathTableRow<Requirement>[] = [];
  for (const row of rows) {
    tableRows.push({ method: row.method, template: row.template, data: requirementOf([row], row) });
    yield;
  }
  const table = yield* buildPathTableInSteps(tableRows, rules);
  return {
    rows,
    match(request) {
      const met = table.match(request);
      // Nearly every request meets one row or none, and its requirement is ready.
      return met.length < 2 ? met[0]?.data : strictest(met);
    },
    matchRows: (request) =>
      table.match(request).map(({ data, exact, reading }) => ({ row: data.row, exact, reading })),
  };
}

function strictest(met: readonly PathMatch<Requirement>[]): Requirement | undefined {
  const rows = met.map(({ data }) => data.row);
  const deciding = rows.find(({ observe }) => !observe) ?? rows[0];
  return deciding && requirementOf(rows, deciding);
}

function requirementOf(rows: readonly ProtectedResource[], row: ProtectedResource): Requirement {
  return Object.freeze({
    row,
    route: row.template,
    rows,
    scopes: [...new Set(rows.flatMap(({ scopes }) => scopes))],
    observe: rows.every(({ observe }) => observe),
  });
}
