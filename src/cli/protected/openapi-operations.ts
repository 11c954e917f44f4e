import type { ResourceMethod } from '../../access/protected-list.ts';
import { trimEndWhile, trimWhile } from '../../http/field-list.ts';
import { isTemplateProblem, parsePathTemplate, writtenShape } from '../../http/path-template.ts';
import { isObject, type JsonObject } from '../../lib/json.ts';
import { followReference, type OperationSecurity, securityOf } from './openapi-document.ts';

/** An operation of a document, as a route. */
interface Operation extends OperationSecurity {
  readonly method: ResourceMethod;
  readonly template: string;
  /** The first tag; without tags the first literal segment. */
  readonly group: string;
}

const methods: Readonly<Record<string, ResourceMethod>> = {
  get: 'GET',
  head: 'GET',
  post: 'POST',
  put: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
};

/**
 * Reads all operations of the document, in its order, including those that need no token. `basePath`: a prefix of all paths,
 * instead of the one in `servers`; `/`: none. `notes`: what was left out or changed; `faults`: why it cannot be read whole.
 */
export function readOperations(document: JsonObject, basePath?: string) {
  const operations = new Map<string, Operation>();
  const notes = new Set<string>();
  const faults: string[] = [];
  /** Schemes of an operation -> the first operation with them, and the number of others. */
  const otherSchemes = new Map<string, { readonly first: string; readonly more: number }>();
  const paths = isObject(document.paths) ? document.paths : {};
  for (const [path, value] of Object.entries(paths)) {
    if (!path.startsWith('/')) continue;
    const item = followReference(document, value);
    if (item === undefined) {
      faults.push(
        `${path}: its path item is in another document, or is not a map: bundle the document into one file first`,
      );
      continue;
    }
    for (const [key, operation] of Object.entries(item)) {
      if (key === 'trace' || key === 'options' || key === 'query')
        notes.add(`${path}: ${key} is left out: it is never authenticated, or refused anyway`);
      const method = Object.hasOwn(methods, key) ? methods[key] : undefined;
      if (method === undefined || !isObject(operation)) continue;
      const security = securityOf(operation, document);
      for (const base of basesOf(basePath, operation.servers, item.servers, document.servers)) {
        const { template, note } = toTemplate(base + path);
        if (note !== undefined) notes.add(`${path}: ${note}`);
        const parsed = parsePathTemplate(template);
        if (isTemplateProblem(parsed)) faults.push(`${path}: ${parsed.problem}`);
        const route = { method, template };
        if (security.otherSchemes.length > 0) {
          const schemes = security.otherSchemes.join(', ');
          const found = otherSchemes.get(schemes) ?? { first: `${method} ${route.template}`, more: -1 };
          otherSchemes.set(schemes, { ...found, more: found.more + 1 });
        }
        if (security.needs === 'optional')
          notes.add(`${method} ${route.template}: its token is optional, so it is not listed`);
        add(operations, { ...route, ...security, group: groupOf(operation, path) });
      }
    }
  }
  for (const [schemes, { first, more }] of otherSchemes) {
    const which = more === 0 ? first : `${first} and ${more} more`;
    notes.add(`${which}: ${schemes} is not a bearer token; listed all the same`);
  }
  return { operations: [...operations.values()], notes: [...notes], faults };
}

/** Adds an operation. Of two operations of one route, such as GET and HEAD, the stricter one counts. */
function add(operations: Map<string, Operation>, operation: Operation): void {
  const key = `${operation.method} ${writtenShape(operation.template)}`;
  const other = operations.get(key);
  if (other === undefined || other.needs !== 'token') {
    operations.set(key, other !== undefined && operation.needs !== 'token' ? other : operation);
  } else if (operation.needs === 'token') {
    operations.set(key, { ...other, scopes: [...new Set([...other.scopes, ...operation.scopes])] });
  }
}

function basesOf(basePath: string | undefined, ...servers: readonly unknown[]): string[] {
  if (basePath !== undefined) return [trimEndWhile(basePath, isSlash)];
  return basePathsOf(servers.find((list) => Array.isArray(list) && list.length > 0));
}

function groupOf({ tags }: JsonObject, path: string): string {
  const [tag] = Array.isArray(tags) ? tags : [];
  const first = path.split('/').find((segment) => segment.trim() !== '' && !segment.includes('{'));
  const names = [tag, first].map((name) =>
    typeof name === 'string'
      ? name
          .toWellFormed()
          .replace(/\p{C}+/gu, ' ')
          .trim()
      : '',
  );
  return names.find((name) => name !== '' && name !== '__proto__') ?? 'Untagged';
}

/** Base paths of the servers of an operation (OpenAPI 3.1 section 4.8.5); `['']` without servers. Exported for its tests. */
export function basePathsOf(servers: unknown): string[] {
  const list = Array.isArray(servers) ? servers.filter(isObject) : [];
  const paths = list.map((server) => basePathOf(substituteVariables(server)));
  return paths.length === 0 ? [''] : [...new Set(paths)];
}

function substituteVariables({ url, variables }: JsonObject): string {
  return String(url ?? '').replace(/\{([^{}]*)\}/g, (whole, name: string) => {
    const variable = isObject(variables) && Object.hasOwn(variables, name) ? variables[name] : undefined;
    return isObject(variable) && variable.default !== undefined ? String(variable.default) : whole;
  });
}

/** The base path of a server's URL. A relative one counts from the root, since the document's own URL is not known. */
function basePathOf(url: string): string {
  const [, path = ''] = /^(?:[^:/?#]+:)?(?:\/\/[^/?#]*)?([^?#]*)/.exec(url) ?? [];
  const bare = trimWhile(path.startsWith('.') ? path.slice(1) : path, isSlash);
  return bare === '' || bare === '.' ? '' : `/${bare}`;
}

/**
 * Converts a path to a template. Segments that a list cannot express become parameters, so that the row matches more and never
 * less: `/files/{name}.pdf` becomes `/files/{name_pdf}`. `note`, for people: the template matches more than the path.
 */
function toTemplate(path: string): { readonly template: string; readonly note: string | undefined } {
  const [bare = ''] = path.split(/[?#]/);
  const names: NameCounts = new Map();
  const widened: string[] = [];
  const segments = bare.split('/').filter((segment) => segment !== '');
  const parts = segments.map((segment) => {
    const name = /^\{([^{}]*)\}$/.exec(segment)?.[1];
    if (name !== undefined) return parameter(name, names);
    const literal = encodeLiteral(segment);
    if (isTemplateLiteral(literal)) return literal;
    widened.push(segment);
    return parameter(segment, names);
  });
  const note =
    widened.length === 0
      ? undefined
      : `${widened.map((part) => JSON.stringify(part)).join(', ')} became a parameter`;
  return { template: `/${parts.join('/')}`, note };
}

/** Parameter names of one template, each with the next number for a repetition. */
type NameCounts = Map<string, number>;

function parameter(name: string, names: NameCounts): string {
  const word = trimWhile(name.replace(/[^A-Za-z0-9_-]+/g, '_'), isUnderscore) || 'id';
  const base = /^[A-Za-z]/.test(word) ? word : `p_${word}`;
  let count = names.get(base) ?? 1;
  let unique = base;
  // Continue after the last number: a path may repeat a name thousands of times.
  for (; names.has(unique); unique = `${base}_${count}`) count += 1;
  names.set(base, count);
  if (unique !== base) names.set(unique, 1);
  return `{${unique}}`;
}

function isSlash(code: number): boolean {
  return code === 0x2f;
}

function isUnderscore(code: number): boolean {
  return code === 0x5f;
}

function encodeLiteral(segment: string): string {
  return /^[\x21-\x7e]+$/.test(segment) ? segment : encodeURIComponent(segment.toWellFormed());
}

function isTemplateLiteral(segment: string): boolean {
  const parsed = parsePathTemplate(`/${segment}`);
  return !isTemplateProblem(parsed) && !parsed.rest;
}
