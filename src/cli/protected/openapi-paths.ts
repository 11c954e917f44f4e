import { trimWhile } from '../../http/field-list.ts';
import { isTemplateProblem, parsePathTemplate } from '../../http/path-template.ts';
import { isMap, type Json, type JsonMap } from './openapi-document.ts';

/** A path of the document as a template of ours. */
export interface TemplatePath {
  readonly template: string;
  /** Said to people where the template matches more than the path. */
  readonly note: string | undefined;
}

/** Base paths of the servers that hold for an operation; `['']` for none. OpenAPI 3.1 section 4.8.5. */
export function basePathsOf(servers: Json): string[] {
  const list = Array.isArray(servers) ? servers.filter(isMap) : [];
  const paths = list.map((server) => basePathOf(substituteVariables(server)));
  return paths.length === 0 ? [''] : [...new Set(paths)];
}

function substituteVariables({ url, variables }: JsonMap): string {
  return String(url ?? '').replace(/\{([^{}]*)\}/g, (whole, name: string) => {
    const variable = isMap(variables) && Object.hasOwn(variables, name) ? variables[name] : undefined;
    return isMap(variable) && variable.default !== undefined ? String(variable.default) : whole;
  });
}

/** Relative URLs are taken for paths of the origin: where the document itself stands is not known. */
export function basePathOf(url: string): string {
  const [, authority, path = ''] = /^(?:[a-z][a-z0-9+.-]*:)?(\/\/[^/?#]*)?([^?#]*)/i.exec(url) ?? [];
  const bare = trimWhile(path.startsWith('./') ? path.slice(1) : path, isSlash);
  if (bare === '' || bare === '.') return '';
  return authority === undefined && url.includes('://') ? '' : `/${bare}`;
}

/**
 * Makes a template of a path. What has no equal in a list becomes a parameter, so that the row matches more and never
 * less: `/files/{name}.pdf` is `/files/{name_pdf}`.
 */
export function toTemplate(path: string): TemplatePath {
  const [bare = ''] = path.split(/[?#]/);
  const names = new Set<string>();
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

function parameter(name: string, names: Set<string>): string {
  const word = trimWhile(name.replace(/[^A-Za-z0-9_-]+/g, '_'), isUnderscore) || 'id';
  const base = /^[A-Za-z]/.test(word) ? word : `p_${word}`;
  let unique = base;
  for (let count = 2; names.has(unique); count += 1) unique = `${base}_${count}`;
  names.add(unique);
  return `{${unique}}`;
}

export function isSlash(code: number): boolean {
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
