import { randomUUID } from 'node:crypto';

/** A new opaque tag: 32 hexadecimal digits of which 122 bits are random; no character that anyone rewrites. */
export function randomTag(): string {
  const id = randomUUID();
  return id.slice(0, 8) + id.slice(9, 13) + id.slice(14, 18) + id.slice(19, 23) + id.slice(24);
}

/** Whether a tag has the form of ours: any other can never be current. */
export function isOwnTag(tag: string): boolean {
  return /^[0-9a-f]{32}$/.test(tag);
}
