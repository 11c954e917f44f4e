import { isObject, parseJson } from '../lib/json.ts';

/**
 * The path of a claim, as the configuration writes it. A text is names with dots between them (`realm_access.roles`).
 * A list is the names themselves, so that a name may contain a dot (`['https://shop.example/roles']`). A colon is an
 * ordinary character (`cognito:groups`).
 */
export type ClaimPath = string | readonly string[];

export type Claims = Readonly<Record<string, unknown>>;

export type SubjectReader = (claims: Claims) => string | undefined;

export type ScopesReader = (claims: Claims) => readonly string[];

/** Default of `auth.scopes`: `scope` of RFC 8693 section 4.2, and `scopes`, which shops use. */
export const defaultScopePaths: readonly ClaimPath[] = ['scopes', 'scope'];

/**
 * Compiles `auth.subject`: one path, or several, of which the first one with a value counts (`null` is no value).
 *
 * A subject is a non-empty, well-formed string; a nested member may also be an integer (`sub.id_customer`). It may contain
 * any character: hash it or encode it before it becomes part of a key or a field.
 *
 * @throws TypeError where a name of a path is empty.
 */
export function createSubjectReader(setting: string | readonly ClaimPath[]): SubjectReader {
  const paths = (typeof setting === 'string' ? [setting] : setting).map(namesOf);
  return (claims) => {
    for (const names of paths) {
      const value = readClaim(claims, names);
      if (value === undefined || value === null) continue;
      return names.length > 1 && Number.isSafeInteger(value) ? String(value) : subjectText(value);
    }
    return undefined;
  };
}

/**
 * Compiles `auth.scopes`: a token has the scopes at all of these paths together. A value is a text of names separated by
 * spaces, or an array of names; other members of an array are ignored.
 *
 * @throws TypeError where a name of a path is empty.
 */
export function createScopesReader(setting: readonly ClaimPath[]): ScopesReader {
  const paths = setting.map(namesOf);
  return (claims) => {
    const scopes = new Set<string>();
    for (const names of paths) for (const scope of scopeNames(readClaim(claims, names))) scopes.add(scope);
    return Object.freeze([...scopes]);
  };
}

/** The setting as a person would write it. */
export function claimPathText(setting: string | readonly ClaimPath[]): string {
  if (typeof setting === 'string') return setting;
  return setting.map((path) => (typeof path === 'string' ? path : JSON.stringify(path))).join(', ');
}

export function namesOf(path: ClaimPath): readonly string[] {
  const names = typeof path === 'string' ? path.split('.') : path;
  if (names.length === 0 || names.includes(''))
    throw new TypeError('A claim path is names with single dots between them, or a list of names.');
  return names;
}

/** The first name is that of a claim. The others lead into its value: an object, or a text that contains JSON. */
export function readClaim(claims: Claims, names: readonly string[]): unknown {
  let value: unknown = claims;
  for (const [depth, name] of names.entries()) {
    const members = depth === 1 && typeof value === 'string' ? parseJson(value) : value;
    if (!isObject(members) || !Object.hasOwn(members, name)) return undefined;
    value = members[name];
  }
  return value;
}

/** Undefined for a text with lone surrogates: UTF-8 makes them all the same octets, so different users would share a key. */
function subjectText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.isWellFormed() ? value : undefined;
}

function scopeNames(claim: unknown): readonly string[] {
  if (typeof claim === 'string') return claim.split(' ').filter((name) => name !== '');
  return Array.isArray(claim) ? claim.filter((name): name is string => typeof name === 'string') : [];
}
