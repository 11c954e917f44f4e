import type { Problem } from '../config/problem.ts';
import { buildPathTable } from '../request/path-table.ts';
import { routeKey } from './protected-list-difference.ts';
import type { ProtectedResources } from './protected-list-document.ts';
import { type ProtectedResource, type ResourceMethod, resourceId } from './protected-resource.ts';

/**
 * Warnings of what a list leaves open beside what it protects: often an omission, at times on purpose. Pure; in the
 * order of the rows, each open route named once.
 *
 * - a protected GET of a collection whose members are open, and the other way round; of a collection below a member
 *   only when the list knows its members at all
 * - an open GET of a member that PATCH, PUT or DELETE protects
 * - one of PATCH and DELETE open where the other one is protected
 */
export function findSuspicious(list: ProtectedResources): Problem[] {
  const table = buildPathTable(
    list.rows.map(({ method, template }) => ({ method, template, data: true })),
    { ignoredPrefixes: [] },
  );
  const isProtected = (method: ResourceMethod, template: string) =>
    table.match({ method, segments: template.slice(1).split('/'), isFormPost: false }).length > 0;
  const paths = new Set(list.rows.map(({ template }) => routeKey({ method: 'ANY', template })));
  const named = new Set<string>();
  return list.rows.flatMap((row) =>
    neighbours(row, paths).flatMap(({ method, template }) => {
      const key = routeKey({ method, template });
      if (named.has(key) || isProtected(method, template)) return [];
      named.add(key);
      const text = `${resourceId(row)} is protected, ${resourceId({ method, template })} is open`;
      return [{ ...row.source, severity: 'warning' as const, text }];
    }),
  );
}

type Neighbour = { readonly method: ResourceMethod; readonly template: string };

/** Routes that one expects to be protected when this row is. */
function neighbours({ method, template }: ProtectedResource, paths: ReadonlySet<string>): Neighbour[] {
  if (template.endsWith('**') || template === '/') return [];
  const last = template.slice(template.lastIndexOf('/') + 1);
  const isMember = last.startsWith('{');
  const collection = template.slice(0, -last.length - 1);
  if (!isMember) {
    const member = { method: 'GET', template: `${template}/{id}` } as const;
    const isKnown = collection === '' || paths.has(routeKey({ ...member, method: 'ANY' }));
    return method === 'GET' && isKnown ? [member] : [];
  }
  if (method === 'GET') return collection === '' ? [] : [{ method, template: collection }];
  const writes = { PATCH: ['DELETE'], PUT: ['DELETE'], DELETE: ['PATCH'], POST: [], ANY: [] } as const;
  return [
    ...(method === 'POST' || method === 'ANY' ? [] : [{ method: 'GET' as const, template }]),
    ...writes[method].map((other) => ({ method: other, template })),
  ];
}
