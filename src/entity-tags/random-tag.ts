import { randomUUID } from 'node:crypto';

/** A new opaque tag: 32 hexadecimal digits of which 122 bits are random; no character that anyone rewrites. */
export function randomTag(): string {
  return randomUUID().replaceAll('-', '');
}

/** Whether a tag has the form of ours: any other can never be current. */
export function isOwnTag(tag: string): boolean {
  return /^[0-9a-f]{32}$/.test(tag);
}
