import { createHash, hash } from 'node:crypto';
import type { Eventually } from '../lib/eventually.ts';
import { isContainer, parseJson } from '../lib/json.ts';
import { finish, finishInSlices, type Steps } from '../lib/slices.ts';

/** Octets that are digested in one step of some 0.1 ms; longer input is digested in slices. */
const stepBytes = 262_144;
/** Octets that are parsed for `ignore` at once, in 0.3 ms: a hundred answers may end in the same tick. */
const parsedAtOnce = 8_192;

/** Digest of a representation's decoded octets. JSON that can be parsed is digested without the members in `ignore`. */
export function fingerprintOf(octets: Buffer, ignore: readonly string[] = []): Eventually<string> {
  const isShort = octets.length <= (ignore.length === 0 ? stepBytes : parsedAtOnce);
  return isShort ? finish(digestInSteps(octets, ignore)) : finishInSlices(digestInSteps(octets, ignore));
}

function* digestInSteps(octets: Buffer, ignore: readonly string[]): Steps<string> {
  const normalised = ignore.length === 0 ? null : fingerprintWithout(octets, ignore);
  if (normalised !== null) return normalised;
  if (octets.length <= stepBytes) return hash('sha256', octets, 'base64url');
  const digest = createHash('sha256');
  for (let at = 0; at < octets.length; at += stepBytes) {
    digest.update(octets.subarray(at, at + stepBytes));
    yield;
  }
  return digest.digest('base64url');
}

/**
 * Longest and deepest document that is parsed for `ignore`. Parsing blocks all requests for some 10 ms; the time grows
 * with the square of the depth.
 */
const longestParsed = 262_144;
const deepestParsed = 256;

/**
 * Digest of a JSON representation without the members that the pointers name (RFC 6901): these change although the
 * state does not. Null: not JSON, longer than 256 KiB, or nested deeper than 256 levels. Exported for its tests.
 */
export function fingerprintWithout(octets: Buffer, pointers: readonly string[]): string | null {
  if (octets.length > longestParsed || isDeeperThan(octets, deepestParsed)) return null;
  const text = octets.toString('utf8');
  // In a string such a number may break the text.
  const parsed = parseJson(text.replace(longNumber, '$1"#$2"')) ?? parseJson(text);
  if (parsed === undefined) return null;
  for (const pointer of pointers) removeAt(parsed, pointer);
  return hash('sha256', JSON.stringify(parsed), 'base64url');
}

/** A number of more digits than JavaScript keeps, such as a version of 64 bits: two may be read as one. */
const longNumber = /([:[,\s])(-?\d[\d.]{15,}(?:e[+-]?\d+)?)(?=[\s,\]}])/gi;

function isDeeperThan(octets: Buffer, levels: number): boolean {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < octets.length; at += 1) {
    const octet = octets[at] as number;
    if (octet === 0x22) isInString = !isInString;
    else if (isInString && octet === 0x5c) at += 1;
    // An opening brace or bracket and the one that closes it differ by 2.
    else if (!isInString && (octet | 0x20) === 0x7b) depth += 1;
    else if (!isInString && (octet | 0x20) === 0x7d) depth -= 1;
    if (depth > levels) return true;
  }
  return false;
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
  // Null, not a removal: the positions of the other elements belong to the state.
  if (Array.isArray(parent)) parent[Number(last)] = null;
  else delete (parent as Record<string, unknown>)[last];
}
