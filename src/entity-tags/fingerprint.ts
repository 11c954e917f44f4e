import { hash } from 'node:crypto';

/** Digest of a representation's decoded octets. */
export function fingerprintOf(octets: Buffer): string {
  return hash('sha256', octets, 'base64url');
}

/**
 * Digest of a JSON representation without what the pointers name (RFC 6901), for attributes that change although the
 * state does not. Null: not JSON.
 */
export function fingerprintWithout(octets: Buffer, pointers: readonly string[]): string | null {
  const parsed = parseJson(octets);
  if (parsed === undefined) return null;
  for (const pointer of pointers) removeAt(parsed, pointer);
  return hash('sha256', JSON.stringify(parsed), 'base64url');
}

/** Undefined: not JSON. */
export function parseJson(octets: Buffer): unknown {
  try {
    return JSON.parse(octets.toString('utf8'));
  } catch {
    return undefined;
  }
}

function removeAt(root: unknown, pointer: string): void {
  const names = pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = names.pop();
  let parent = root;
  for (const name of names) {
    if (!isContainer(parent) || !Object.hasOwn(parent, name)) return;
    parent = parent[name];
  }
  if (last === undefined || !isContainer(parent) || !Object.hasOwn(parent, last)) return;
  // A hole, not a shift: the places of the other elements are part of the state.
  if (Array.isArray(parent)) parent[Number(last)] = null;
  else delete parent[last];
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
