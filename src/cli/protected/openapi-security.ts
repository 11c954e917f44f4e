import { isMap, type Json, type JsonMap } from './openapi-document.ts';

/** What an operation asks of its caller (Security Requirement Object, OpenAPI 3.1 section 4.8.30). */
export interface OperationSecurity {
  /** `optional`: one of the alternatives is to bring nothing. */
  readonly needs: 'token' | 'optional' | 'nothing';
  /** Scopes that every alternative asks for. */
  readonly scopes: readonly string[];
  /** Names of schemes of the alternatives that hold no bearer token at all. */
  readonly otherSchemes: readonly string[];
}

const nothing: OperationSecurity = { needs: 'nothing', scopes: [], otherSchemes: [] };

/** RFC 6749 section 3.3. */
const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/**
 * Reads the `security` of an operation, or that of the document where it has none. The alternatives of a list are ORed,
 * the schemes of one are ANDed. An empty map stands for an empty list: generators in PHP cannot tell them apart.
 */
export function securityOf(operation: JsonMap, document: JsonMap): OperationSecurity {
  const security = Object.hasOwn(operation, 'security') ? operation.security : document.security;
  const alternatives = (Array.isArray(security) ? security : [security]).filter(isMap);
  const isEmptyMap = isMap(security) && Object.keys(security).length === 0;
  if (alternatives.length === 0 || isEmptyMap) return nothing;
  if (alternatives.some((one) => Object.keys(one).length === 0)) return { ...nothing, needs: 'optional' };
  const schemes = schemesOf(document);
  const others = alternatives.filter((one) => !Object.keys(one).some((name) => isBearer(schemes[name])));
  return {
    needs: 'token',
    scopes: commonScopes(alternatives),
    otherSchemes: others.length === alternatives.length ? others.flatMap((one) => Object.keys(one)) : [],
  };
}

function schemesOf({ components }: JsonMap): JsonMap {
  return isMap(components) && isMap(components.securitySchemes) ? components.securitySchemes : {};
}

function isBearer(scheme: Json): boolean {
  if (!isMap(scheme)) return false;
  if (scheme.type === 'oauth2' || scheme.type === 'openIdConnect') return true;
  const isHttp = scheme.type === 'http' && String(scheme.scheme).toLowerCase() === 'bearer';
  return isHttp || (scheme.type === 'apiKey' && String(scheme.name).toLowerCase() === 'authorization');
}

function commonScopes(alternatives: readonly JsonMap[]): string[] {
  const sets = alternatives.map(
    (one) => new Set(Object.values(one).flatMap((scopes) => (Array.isArray(scopes) ? scopes : []))),
  );
  const [first = new Set<Json>(), ...rest] = sets;
  return [...first].filter(
    (scope): scope is string =>
      typeof scope === 'string' && scopeToken.test(scope) && rest.every((set) => set.has(scope)),
  );
}
