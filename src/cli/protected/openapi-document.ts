import { resolve } from 'node:path';
import { isObject, type JsonObject } from '../../lib/json.ts';
import { parseYaml } from '../../lib/yaml-source.ts';
import type { CommandIo } from '../command-io.ts';
import { readBounded } from '../files.ts';

const maxBytes = 128 * 1024 * 1024;

/** Reads an OpenAPI 3 document, JSON or YAML. Undefined: its fault was printed, and the exit code is 2 (a wrong argument). */
export async function readOpenApi(name: string, io: CommandIo): Promise<JsonObject | undefined> {
  const read = await readBounded(resolve(io.cwd, name), maxBytes).catch(
    (cause: NodeJS.ErrnoException) => cause,
  );
  const result = read instanceof Error ? { fault: `cannot be read (${read.code})` } : parseOpenApi(read);
  if (!('fault' in result)) return result.document;
  io.err(`${name}: error: ${result.fault}`);
  return undefined;
}

/** Parses a document and checks its version. Content never makes it throw. Exported for its tests. */
export function parseOpenApi(bytes: Buffer): { readonly document: JsonObject } | { readonly fault: string } {
  if (bytes.length > maxBytes) return { fault: `it is larger than ${maxBytes} bytes` };
  const parsed = parseText(bytes.toString('utf8').replace(/^\ufeff/, ''));
  if ('fault' in parsed) return parsed;
  const { value } = parsed;
  if (!isObject(value)) return { fault: 'it is not an OpenAPI document: its top level must be a map' };
  if (value.swagger !== undefined) return { fault: 'Swagger 2 is not supported: convert it to OpenAPI 3' };
  const version = String(value.openapi ?? '');
  if (!version.startsWith('3.'))
    return { fault: 'it is not an OpenAPI 3 document: the key openapi is missing' };
  if (!isObject(value.paths)) return { fault: 'it has no paths' };
  return { document: value };
}

function parseText(text: string): { readonly value: unknown } | { readonly fault: string } {
  if (/^\s*\{/.test(text)) {
    try {
      return { value: JSON.parse(text) };
    } catch {
      // A YAML document may begin with a brace as well.
    }
  }
  return parseAsYaml(text);
}

function parseAsYaml(text: string): { readonly value: unknown } | { readonly fault: string } {
  const notYaml = (why: string) => ({ fault: `it is neither JSON nor YAML: ${why}` });
  // String keys only: the time to write a map as a key grows with the fourth power of its depth.
  const { document, fault, problemAt } = parseYaml(text, '', true);
  if (document === undefined) return notYaml(fault.text);
  if (document.errors.some(({ code }) => tooDeep.has(code))) return notYaml('this is nested too deeply');
  const [first] = document.errors;
  if (first !== undefined) {
    // Locates only the first error: in lines with thousands of errors this would take quadratic time.
    const { line, column } = problemAt(first.pos[0], first.message);
    return notYaml(`${first.message} at line ${line}, column ${column}`);
  }
  try {
    return { value: document.toJS({ maxAliasCount: 10_000 }) };
  } catch (cause) {
    return notYaml(cause instanceof Error ? cause.message : 'unknown');
  }
}

/** Codes of the parser for an exhausted stack and for its own limit of depth. */
const tooDeep: ReadonlySet<string> = new Set(['RESOURCE_EXHAUSTION', 'IMPOSSIBLE']);

/** Follows a `$ref` within the document (RFC 6901); undefined: it points outside, or nowhere. */
export function followReference(document: JsonObject, value: unknown): JsonObject | undefined {
  let found: unknown = value;
  for (let hops = 0; isObject(found) && typeof found.$ref === 'string'; hops += 1) {
    if (!found.$ref.startsWith('#/') || hops > 10) return undefined;
    let next: unknown = document;
    for (const step of found.$ref.slice(2).split('/')) {
      const key = decodeStep(step);
      next = isObject(next) && Object.hasOwn(next, key) ? next[key] : undefined;
    }
    found = next;
  }
  return isObject(found) ? found : undefined;
}

function decodeStep(step: string): string {
  try {
    return decodeURIComponent(step).replace(/~1/g, '/').replace(/~0/g, '~');
  } catch {
    return step;
  }
}

/** What an operation asks of its caller (Security Requirement Object, OpenAPI 3.1 section 4.8.30). */
export interface OperationSecurity {
  /** `optional`: one alternative needs no credentials. */
  readonly needs: 'token' | 'optional' | 'nothing';
  /** Scopes that every alternative asks for. */
  readonly scopes: readonly string[];
  /** Names of the schemes if no alternative has a bearer token. */
  readonly otherSchemes: readonly string[];
}

const nothing: OperationSecurity = { needs: 'nothing', scopes: [], otherSchemes: [] };

/** RFC 6749 section 3.3. */
const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/**
 * Reads the `security` of an operation, or the document's if it has none. The alternatives of a list are ORed, the schemes of
 * one are ANDed. An empty map counts as an empty list: PHP generators cannot tell them apart.
 */
export function securityOf(operation: JsonObject, document: JsonObject): OperationSecurity {
  const security = Object.hasOwn(operation, 'security') ? operation.security : document.security;
  const alternatives = (Array.isArray(security) ? security : [security]).filter(isObject);
  const isEmptyMap = isObject(security) && Object.keys(security).length === 0;
  if (alternatives.length === 0 || isEmptyMap) return nothing;
  if (alternatives.some((one) => Object.keys(one).length === 0)) return { ...nothing, needs: 'optional' };
  const { components } = document;
  const schemes =
    isObject(components) && isObject(components.securitySchemes) ? components.securitySchemes : {};
  const others = alternatives.filter((one) => !Object.keys(one).some((name) => isBearer(schemes[name])));
  return {
    needs: 'token',
    scopes: commonScopes(alternatives),
    otherSchemes: others.length === alternatives.length ? others.flatMap((one) => Object.keys(one)) : [],
  };
}

function isBearer(scheme: unknown): boolean {
  if (!isObject(scheme)) return false;
  if (scheme.type === 'oauth2' || scheme.type === 'openIdConnect') return true;
  const isHttp = scheme.type === 'http' && String(scheme.scheme).toLowerCase() === 'bearer';
  return isHttp || (scheme.type === 'apiKey' && String(scheme.name).toLowerCase() === 'authorization');
}

function commonScopes(alternatives: readonly JsonObject[]): string[] {
  const sets = alternatives.map(
    (one) => new Set(Object.values(one).flatMap((scopes) => (Array.isArray(scopes) ? scopes : []))),
  );
  const [first = new Set<unknown>(), ...rest] = sets;
  return [...first].filter(
    (scope): scope is string =>
      typeof scope === 'string' && scopeToken.test(scope) && rest.every((set) => set.has(scope)),
  );
}
