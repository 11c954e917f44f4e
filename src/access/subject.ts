import { isObject } from './token-json.ts';

/** Reads the user's name from claims; undefined where there is none. */
export type SubjectReader = (claims: Readonly<Record<string, unknown>>) => string | undefined;

/**
 * Compiles `auth.subject`: a claim (`sub`), or a dotted path whose first name is a claim and whose other names reach
 * into that claim's object, or into the JSON text that the claim holds (`sub.customer_reference`).
 *
 * A subject is a non-empty, well-formed string; below the first name an integer is taken too (`sub.id_customer`). It
 * may hold any character: hash it or encode it before it becomes part of a key or a field.
 *
 * @throws TypeError where a name of the path is empty.
 */
export function createSubjectReader(path: string): SubjectReader {
  const names = path.split('.');
  if (names.includes('')) throw new TypeError('A subject path is names with single dots between them.');
  return (claims) => {
    let value: unknown = claims;
    for (const [depth, name] of names.entries()) {
      const members = depth === 1 && typeof value === 'string' ? parseJson(value) : value;
      if (!isObject(members) || !Object.hasOwn(members, name)) return undefined;
      value = members[name];
    }
    return names.length > 1 && Number.isSafeInteger(value) ? String(value) : subjectText(value);
  };
}

/** Lone surrogates would all become one and the same octets in a key. */
function subjectText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.isWellFormed() ? value : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
