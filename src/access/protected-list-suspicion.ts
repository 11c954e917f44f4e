import type { Problem } from '../config/problem.ts';
import { foldSegment, isVersionSegment } from '../http/path-folding.ts';
import { buildPathTable, type PathRules } from '../http/path-table.ts';
import { routeKey } from './protected-list-difference.ts';
import type { ProtectedResources } from './protected-list-document.ts';
import { type ProtectedResource, type ResourceMethod, resourceId } from './protected-resource.ts';

/**
 * Warnings of what a list leaves open beside what it protects, or asks otherwise for: often an omission, at times on
 * purpose. Pure; in the order of the rows, each open route named once.
 *
 * - a protected GET of a collection whose members are open, and the other way round; of a collection below a member
 *   only when the list knows its members at all
 * - an open GET of a member that PATCH, PUT or DELETE protects
 * - one of PATCH and DELETE open where the other one is protected
 * - a row whose form (with an id behind it, without its version, with a format suffix) has a row of its own that asks
 *   for something else: to a shop that reads paths so, both are one
 * - the first row with ANY, which OPTIONS passes
 */
export function findSuspicious(
  list: ProtectedResources,
  rules: PathRules = { ignoredPrefixes: [] },
): Problem[] {
  const table = buildPathTable(
    list.rows.map(({ method, template }) => ({ method, template, data: true })),
    { ...rules, ignoredPrefixes: [] },
  );
  const isProtected = (method: ResourceMethod, template: string) =>
    table.match({ method, segments: template.slice(1).split('/'), isFormPost: false }).length > 0;
  const written = new Map(list.rows.map((row) => [routeKey(row), row]));
  const paths = new Set(list.rows.map(({ template }) => routeKey({ method: 'ANY', template })));
  const named = new Set<string>();
  const findOpen = (row: ProtectedResource) =>
    neighbours(row, paths).flatMap((route) => {
      const key = routeKey(route);
      if (named.has(key) || isProtected(route.method, route.template)) return [];
      named.add(key);
      return `${resourceId(row)} is protected, ${resourceId(route)} is open`;
    });
  const firstAny = list.rows.find(({ method }) => method === 'ANY');
  return list.rows.flatMap((row) =>
    [
      ...findOpen(row),
      ...formsOf(row).flatMap((form) => differenceOf(row, form, written.get(routeKey(form))) ?? []),
      ...(row === firstAny ? ['ANY is every method but OPTIONS, which no row asks for a token'] : []),
    ].map((text) => ({ ...row.source, severity: 'warning' as const, text })),
  );
}

type Neighbour = Pick<ProtectedResource, 'method' | 'template'> & { readonly method: ResourceMethod };
type Form = Pick<ProtectedResource, 'method' | 'template'>;

function differenceOf(
  row: ProtectedResource,
  form: Form,
  other: ProtectedResource | undefined,
): string | undefined {
  if (other === undefined) return undefined;
  const isSame =
    row.observe === other.observe &&
    row.scopes.length === other.scopes.length &&
    row.scopes.every((scope) => other.scopes.includes(scope));
  if (isSame) return undefined;
  const place = `${resourceId(other)} in line ${other.source.line}`;
  return `${place} asks for something else, and may be the same to the shop (as ${resourceId(form)})`;
}

/** What a shop may take for the row's path: an id behind its name, no version in front, a format behind it. */
function formsOf({ method, template }: ProtectedResource): Form[] {
  if (template.endsWith('**') || template === '/') return [];
  const [first = '', ...rest] = template.slice(1).split('/');
  const forms: Form[] = [];
  if (!template.endsWith('}')) {
    forms.push({ method, template: `${template}/{id}` });
    forms.push(...['json', 'xml'].map((suffix) => ({ method, template: `${template}.${suffix}` })));
  }
  if (isVersionSegment(foldSegment(first)) && rest.length > 0)
    forms.push({ method, template: `/${rest.join('/')}` });
  return forms;
}

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
