import type { Steps } from '../event-loop/slices.ts';
import { type Method, methods } from './canonical-request.ts';
import type { Vocabulary } from './path-folding.ts';
import type { PathTableRow } from './path-table.ts';
import { isTemplateProblem, type PathTemplate, parsePathTemplate } from './path-template.ts';

/** What a request asks for: its method, or, as a form POST may override it in its body, any. */
export type Asked = Method | 'form';

export interface Row<T> {
  /** Place in the list of rows. */
  readonly index: number;
  readonly template: PathTemplate;
  readonly data: T;
}

/** Rows that differ by method and parameter names only: one route of the router. */
export interface Route<T> {
  /** Words of the template's literals; undefined for a parameter. */
  readonly words: readonly (string | undefined)[];
  /** Ends in `**`. */
  readonly rest: boolean;
  /** The rows that a request of each kind meets here. */
  readonly rows: Readonly<Record<Asked, Row<T>[]>>;
}

/** Teaches the vocabulary every literal and groups the rows by shape; a step for each row. */
export function* routesOf<T>(rows: readonly PathTableRow<T>[], vocabulary: Vocabulary): Steps<Route<T>[]> {
  const routes = new Map<string, Route<T>>();
  for (const [index, { method, template: text, data }] of rows.entries()) {
    const template = parsePathTemplate(text);
    if (isTemplateProblem(template)) throw new Error(`path "${text}": ${template.problem}`);
    const words = template.segments.map((segment) =>
      'literal' in segment ? vocabulary.learn(segment.literal) : undefined,
    );
    const shape = [...words.map((word) => word ?? '{}'), template.rest ? '**' : ''].join('/');
    const route = routes.get(shape) ?? { words, rest: template.rest, rows: noRows<T>() };
    routes.set(shape, route);
    for (const asked of askedBy(method)) route.rows[asked].push({ index, template, data });
    yield;
  }
  return [...routes.values()];
}

function askedBy(method: Method | 'ANY'): Asked[] {
  if (method === 'ANY') return [...methods.filter((each) => each !== 'OPTIONS'), 'form'];
  if (method === 'OPTIONS') return ['OPTIONS'];
  return method === 'GET' ? ['GET', 'HEAD', 'form'] : [method, 'form'];
}

function noRows<T>(): Record<Asked, Row<T>[]> {
  return { GET: [], HEAD: [], POST: [], PUT: [], PATCH: [], DELETE: [], OPTIONS: [], form: [] };
}
