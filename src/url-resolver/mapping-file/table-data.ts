/**
 * A mapping file in memory: two buffers, built in a worker and handed over without a copy. A million rows are a few tens of
 * megabytes and no object for the garbage collector.
 *
 * `records` holds one record after the other: type (1 byte), length of store (1), of url (2) and of id (2, little-endian),
 * then store, url and id in UTF-8. `slots` is a hash table with open addressing of Uint32: 0, or offset of a record + 1.
 */
export interface TableData {
  readonly rows: number;
  readonly records: ArrayBuffer;
  readonly slots: ArrayBuffer;
}

export const recordHeaderBytes = 6;

export const hashStart = 0x811c9dc5;
/** Stands between store and url: no octet of UTF-8. */
export const hashSeparator = 0xff;

/** FNV-1a, one octet. */
export function hashOctet(hash: number, octet: number): number {
  return Math.imul(hash ^ octet, 0x01000193);
}

/** Spreads the upper bits over the lower ones, which choose the slot. */
export function finishHash(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
