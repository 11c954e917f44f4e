import type { ResourceMethod } from '../../access/protected-list.ts';
import { trimEndWhile } from '../../http/field-list.ts';
import { isTemplateProblem, parsePathTemplate } from '../../http/path-template.ts';
import { followReference, isMap, type Json, type JsonMap } from './openapi-document.ts';
import { basePathsOf, isSlash, toTemplate } from './openapi-paths.ts';
import { type OperationSecurity, securityOf } from './openapi-security.ts';

/** An operation of a document as a route of ours. */
export interface Operation extends OperationSecurity {
  readonly method: ResourceMethod;
  readonly template: string;
  /** Its first tag; without one the first segment of its path. */
  readonly group: string;
}

export interface ReadOperations {
  /** In the order of the document. */
  readonly operations: readonly Operation[];
  /** What people should know about the reading. */
  readonly notes: readonly string[];
  /** Why the document cannot be read whole. */
  readonly faults: readonly string[];
}

export interface OperationsOptions {
  /** In place of the servers' own; `/` for none. */
  readonly basePath?: string | undefined;
}

const methods: Readonly<Record<string, ResourceMethod>> = {
  get: 'GET',
  head: 'GET',
  post: 'POST',
  put: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
};

/** Every operation of the document, also those that need nothing. */
export function readOperations(document: JsonMap, options: OperationsOptions = {}): ReadOperations {
  const operations = new Map<string, Operation>();
  const notes = new Set<string>();
  const faults: string[] = [];
  const paths = isMap(document.paths) ? document.paths : {};
  for (const [path, value] of Object.entries(paths)) {
    if (!path.startsWith('/')) continue;
    const item = followReference(document, value);
    if (item === undefined) {
      faults.push(`${path}: its path item is elsewhere, or is none: bundle the document into one file first`);
      continue;
    }
    for (const [key, operation] of Object.entries(item)) {
      if (key === 'trace' || key === 'options' || key === 'query')
        notes.add(`${path}: ${key} is left out: it is never authenticated, or refused anyway`);
      const method = Object.hasOwn(methods, key) ? methods[key] : undefined;
      if (method === undefined || !isMap(operation)) continue;
      const security = securityOf(operation, document);
      for (const base of basesOf(options, operation.servers, item.servers, document.servers)) {
        const { template, note } = toTemplate(base + path);
        if (note !== undefined) notes.add(`${path}: ${note}`);
        const parsed = parsePathTemplate(template);
        if (isTemplateProblem(parsed)) faults.push(`${path}: ${parsed.problem}`);
        const route = { method, template };
        if (security.otherSchemes.length > 0)
          notes.add(
            `${method} ${route.template}: ${security.otherSchemes.join(', ')} is no bearer token; listed all the same`,
          );
        if (security.needs === 'optional')
          notes.add(`${method} ${route.template}: its token is optional: it is not listed`);
        add(operations, { ...route, ...security, group: groupOf(operation, path) });
      }
    }
  }
  return { operations: [...operations.values()], notes: [...notes], faults };
}

/** Operations of one route, such as GET and HEAD, count as the stricter of the two. */
function add(operations: Map<string, Operation>, operation: Operation): void {
  const key = `${operation.method} ${operation.template.toLowerCase().replace(/\{[^{}]*\}/g, '{}')}`;
  const other = operations.get(key);
  if (other === undefined || other.needs !== 'token') {
    operations.set(key, other !== undefined && operation.needs !== 'token' ? other : operation);
  } else if (operation.needs === 'token') {
    operations.set(key, { ...other, scopes: [...new Set([...other.scopes, ...operation.scopes])] });
  }
}

function basesOf({ basePath }: OperationsOptions, ...servers: readonly Json[]): string[] {
  if (basePath !== undefined) return [trimEndWhile(basePath, isSlash)];
  return basePathsOf(servers.find((list) => Array.isArray(list) && list.length > 0));
}

function groupOf({ tags }: JsonMap, path: string): string {
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
