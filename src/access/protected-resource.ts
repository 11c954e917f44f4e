import { type Method, methods } from '../http/canonical-request.ts';
import { isTemplateProblem, type PathTemplate, parsePathTemplate } from '../http/path-template.ts';

export type ResourceMethod = Exclude<Method, 'HEAD' | 'OPTIONS'>;

/** A row of the protected list. */
export interface ProtectedResource {
  /** GET covers HEAD. `ANY`: every method but OPTIONS, which is never authenticated. */
  readonly method: ResourceMethod | 'ANY';
  /** Path of literals, `{name}`s and perhaps a last `**`; its literals as a canonical path holds them. */
  readonly template: string;
  readonly group: string;
  /** All of them are required; none: any valid token will do. */
  readonly scopes: readonly string[];
  /** Refusals are logged and counted, and the request is forwarded all the same. */
  readonly observe: boolean;
  readonly source: { readonly file: string; readonly line: number; readonly column: number };
}

/** A row's own text, without what its long form adds. */
export interface ResourceText {
  readonly method: ProtectedResource['method'];
  readonly path: PathTemplate;
}

/** Why a text is no row, and at which character (from 0). */
export interface ResourceTextProblem {
  readonly problem: string;
  readonly offset: number;
}

/** The row as it is written in the list: `GET /carts/{cart_id}`; names it to clients and people. */
export function resourceId({ method, template }: Pick<ProtectedResource, 'method' | 'template'>): string {
  return `${method} ${template}`;
}

/** Parses METHOD or ANY, one space, a path. */
export function parseResourceText(text: string): ResourceText | ResourceTextProblem {
  const space = text.indexOf(' ');
  const method = space < 0 ? text : text.slice(0, space);
  if (space < 0 || !text.startsWith('/', space + 1)) {
    return { problem: 'a row is a method or ANY, one space, and a path: GET /carts/{cart_id}', offset: 0 };
  }
  const methodFault = methodProblem(method);
  if (methodFault !== undefined) return { problem: methodFault, offset: 0 };
  const path = parsePathTemplate(text.slice(space + 1));
  if (isTemplateProblem(path)) return { problem: path.problem, offset: space + 1 + path.offset };
  return { method: method as ResourceText['method'], path };
}

const known = ['ANY', ...methods.filter((method) => method !== 'HEAD' && method !== 'OPTIONS')];

function methodProblem(method: string): string | undefined {
  if (known.includes(method)) return undefined;
  const upper = method.toUpperCase();
  if (upper === 'OPTIONS') return 'OPTIONS can never match: it is never authenticated';
  if (upper === 'HEAD') return 'HEAD is matched as GET: write GET';
  if (known.includes(upper)) return `methods are written in upper case: ${upper}`;
  return `an unknown method: a row begins with one of ${known.join(' ')}`;
}
