import { hash } from 'node:crypto';
import { isEntityId, isEntityType, type Mapping } from '../mapping.ts';
import type { Position } from '../purge/purge.ts';

/** A mapping as replicas share it. */
export interface SharedCopy {
  readonly mapping: Mapping | null;
  /** When the source gave it, in ms since 1970. */
  readonly storedAtMs: number;
  readonly stamp: Position;
}

const version = 1;

export function writeSharedCopy(key: string, copy: SharedCopy): string {
  const { mapping, storedAtMs, stamp } = copy;
  return JSON.stringify([
    version,
    key,
    mapping?.entityType ?? null,
    mapping?.entityId ?? null,
    storedAtMs,
    stamp.seq,
    stamp.id,
  ]);
}

/** Undefined for another key's value (slots are shared by keys), another version, or anything that is not a copy. */
export function readSharedCopy(key: string, text: string): SharedCopy | undefined {
  const parts = parseArray(text);
  if (parts === undefined || parts[0] !== version || parts[1] !== key) return undefined;
  const [, , entityType, entityId, storedAtMs, seq, id] = parts;
  if (typeof storedAtMs !== 'number' || typeof seq !== 'number' || typeof id !== 'string') return undefined;
  const stamp = { seq, id };
  if (entityType === null) return { mapping: null, storedAtMs, stamp };
  if (!isEntityType(entityType) || !isEntityId(entityId)) return undefined;
  return { mapping: { entityType, entityId }, storedAtMs, stamp };
}

/**
 * The slot of a key: as many keys in the store as there are slots, whatever URLs are asked for. Two keys of one slot push
 * each other out, which costs a look-up and nothing else.
 */
export function slotOf(key: string, slots: number): string {
  return (Number.parseInt(hash('sha256', key, 'hex').slice(0, 12), 16) % slots).toString(36);
}

function parseArray(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
