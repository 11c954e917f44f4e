import { type ProtectedList, type ProtectedResource, resourceId } from '../../access/protected-list.ts';
import { type CanonicalRequest, methods } from '../../http/canonical-request.ts';
import { foldSegment } from '../../http/path-folding.ts';
import { isTemplateProblem, parsePathTemplate } from '../../http/path-template.ts';
import { nearestName } from '../../lib/nearest-name.ts';

const mostRows = 3;

/** Why no row matches, for people: another method, or the nearest rows and the first segment that differs. */
export function explainMiss(request: CanonicalRequest, list: ProtectedList): string[] {
  if (request.method === 'OPTIONS') return ['OPTIONS is never authenticated'];
  const open = request.method === 'POST' ? list.openedBy(request) : undefined;
  if (open !== undefined) return [`${resourceId(open)} (${placeOf(open)}) is open: true`];
  const others = otherMethods(request, list);
  if (others.length > 0) return [`the method differs: the list has ${andList(others)} for this path`];
  const near = Array.from(list.rows, (row) => compare(row, request) ?? [])
    .flat()
    .sort((a, b) => b.score - a.score)
    .slice(0, mostRows);
  if (near.length > 0) return near.map(({ text }) => text);
  return [`no row begins with "/${request.segments[0]}", or with anything like it`];
}

function andList(items: readonly string[]): string {
  return items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
}

function otherMethods(request: CanonicalRequest, list: ProtectedList): string[] {
  const found = new Map<string, string>();
  for (const method of methods) {
    for (const { row, interpretation } of list.matchRows({ ...request, method, isFormPost: false })) {
      if (!interpretation.includes('method-override') && !found.has(row.method))
        found.set(row.method, `${row.method} (${placeOf(row)})`);
    }
  }
  return [...found.values()];
}

interface Nearness {
  readonly text: string;
  readonly score: number;
}

/** Undefined for a row that has nothing in common with the path. */
function compare(row: ProtectedResource, request: CanonicalRequest): Nearness | undefined {
  const template = parsePathTemplate(row.template);
  if (isTemplateProblem(template)) return undefined;
  const path = request.segments.filter((segment) => segment !== '');
  let score = (isMethodMet(row, request) ? 0.5 : 0) - Math.abs(template.segments.length - path.length) / 100;
  let hasCommonLiteral = false;
  let at = 0;
  for (; at < Math.min(template.segments.length, path.length); at += 1) {
    const part = template.segments[at];
    const segment = path[at] ?? '';
    if (part === undefined) break;
    if ('literal' in part && foldSegment(part.literal) !== foldSegment(segment)) break;
    score += 'literal' in part ? 2 : 1;
    hasCommonLiteral ||= 'literal' in part;
  }
  const next = template.segments[at];
  const segment = path[at];
  const isSimilar =
    next !== undefined &&
    'literal' in next &&
    segment !== undefined &&
    nearestName(foldSegment(segment), [foldSegment(next.literal)]) !== undefined;
  if (!hasCommonLiteral && !isSimilar) return undefined;
  const expected = next === undefined ? '' : 'literal' in next ? next.literal : `{${next.name}}`;
  const why =
    segment === undefined
      ? `the path ends after segment ${at}, the row goes on with "${expected}"`
      : next === undefined
        ? `the row ends after segment ${at}, the path goes on with "${segment}"`
        : `segment ${at + 1} is "${segment}", the row has "${expected}"`;
  const method = isMethodMet(row, request) ? '' : `, and its method is ${row.method}`;
  return {
    text: `${resourceId(row)} (${placeOf(row)}): ${why}${method}`,
    score: score + (isSimilar ? 1.5 : 0),
  };
}

function isMethodMet({ method }: ProtectedResource, request: CanonicalRequest): boolean {
  return method === 'ANY' || method === (request.method === 'HEAD' ? 'GET' : request.method);
}

/** `file:line`, as editors and terminals make it a link. */
function placeOf({ source }: Pick<ProtectedResource, 'source'>): string {
  return `${source.file}:${source.line}`;
}
