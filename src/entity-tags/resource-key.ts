import { hash } from 'node:crypto';
import { normaliseLinearly } from '../http/path-folding.ts';
import { trimEndWhile } from '../http/trimming.ts';
import type { ResourceKey } from './tag-store.ts';

/** One record for all users and all spellings of an id. */
export function memberKey(template: string, ids: readonly string[]): ResourceKey {
  return digest(['member', template.toLowerCase(), ...ids.map(foldId)]);
}

/** One record per subject: what a collection holds depends on who asks. */
export function collectionKey(template: string, ids: readonly string[], subject: string): ResourceKey {
  return digest(['collection', template.toLowerCase(), ...ids.map(foldId), subject]);
}

/**
 * Folds the spellings that a database's collation or the shop's router takes for one id: case, accents, `;params`,
 * spaces and dots at the end; of a whole number spaces, `+` and zeros at the front, and `.0` at the end. Two spellings
 * must not mean two leases; two ids under one lease only wait for one another.
 */
export function foldId(id: string): string {
  if (folded.test(id)) return id;
  const [name = ''] = normaliseLinearly(id, 'NFKD')
    .replace(/\p{Mn}+/gu, '')
    .toLowerCase()
    .split(';', 1);
  const text = trimEndWhile(name, isIgnoredAtTheEnd);
  const [, digits] = wholeNumber.exec(text.trimStart()) ?? [];
  return digits === undefined ? text : digits.replace(/^0+(?=\d)/, '');
}

function isIgnoredAtTheEnd(code: number): boolean {
  return code === 0 || code === 0x2e || /\s/.test(String.fromCharCode(code));
}

/** As a database casts it. Not `1e0`, `0x1` or `1abc`, which some cast as well: they stay ids of their own. */
const wholeNumber = /^\+?(\d+)(?:\.0*)?$/;

/** What most ids are, and none of the steps of `foldId` changes. */
const folded = /^(?:0|[1-9]\d*|[a-z_-][a-z\d_-]*)$/;

/** Hexadecimal, so that nothing of an id can mean anything in a key. */
export function digest(parts: readonly string[]): ResourceKey {
  return hash('sha256', lengthPrefixed(parts), 'hex').slice(0, 48) as ResourceKey;
}

/** Lengths before the parts: no part can pretend to be two. */
export function lengthPrefixed(parts: readonly string[]): string {
  let text = '';
  for (const part of parts) text += `${part.length}:${part}`;
  return text;
}
