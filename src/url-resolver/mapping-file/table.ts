import type { Mapping } from '../envelope.ts';
import { hashStart, hashUnit, maxUrlBytes } from '../mapping.ts';

/**
 * A mapping file in memory: two buffers, built in a worker and handed over without a copy. A million rows are a few tens of
 * megabytes and no object for the garbage collector.
 *
 * `records` holds one record after the other: type (1 byte), length of store (1), of url (2) and of id (2, little-endian),
 * then store, url and id in UTF-8. `slots` is a hash table with open addressing of Uint32: 0, or offset of a record + 1.
 */
export interface TableData {
  readonly rows: number;
  /** A record's type is an index into these; 255 at most. */
  readonly entityTypes: readonly string[];
  readonly records: ArrayBuffer;
  readonly slots: ArrayBuffer;
}

const recordHeaderBytes = 6;

/** Between store and url in what is hashed; this octet does not occur in UTF-8. */
const hashSeparator = 0xff;

/** Mixes the upper bits into the lower ones, which choose the slot. */
function finishHash(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}

/** A field's place in a buffer: [start, end). */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Builds a `TableData` from validated rows. */
export class TableBuilder {
  readonly #entityTypes: readonly string[];
  #records: Uint8Array;
  #length = 0;
  #rows = 0;
  /** Line (or other number) of each row, for the report of duplicates. */
  #lines = new Uint32Array(1024);

  /** `expectedBytes` is an estimate; the size of the file is always enough for CSV and JSON. */
  constructor(expectedBytes: number, entityTypes: readonly string[]) {
    this.#entityTypes = entityTypes;
    this.#records = new Uint8Array(Math.max(1024, expectedBytes));
  }

  add(bytes: Uint8Array, type: number, store: ByteRange, url: ByteRange, id: ByteRange, line: number): void {
    const storeLength = store.end - store.start;
    const urlLength = url.end - url.start;
    const idLength = id.end - id.start;
    this.#makeRoom(recordHeaderBytes + storeLength + urlLength + idLength);
    const records = this.#records;
    let at = this.#length;
    records[at++] = type;
    records[at++] = storeLength;
    records[at++] = urlLength & 0xff;
    records[at++] = urlLength >> 8;
    records[at++] = idLength & 0xff;
    records[at++] = idLength >> 8;
    for (let i = store.start; i < store.end; i += 1) records[at++] = bytes[i] as number;
    for (let i = url.start; i < url.end; i += 1) records[at++] = bytes[i] as number;
    for (let i = id.start; i < id.end; i += 1) records[at++] = bytes[i] as number;
    this.#length = at;
    this.#lines[this.#rows] = line;
    this.#rows += 1;
  }

  /**
   * Builds the hash table, and calls `onDuplicate` for each row with the url and store of an earlier one. Empties the
   * builder.
   */
  finish(onDuplicate: (line: number, firstLine: number) => void): TableData {
    const slots = new Uint32Array(2 ** Math.ceil(Math.log2(Math.max(8, this.#rows * 2))));
    const rowOfSlot = new Uint32Array(slots.length);
    let offset = 0;
    for (let row = 0; row < this.#rows; row += 1) {
      const slot = this.#freeSlot(slots, offset);
      if (slot < 0) {
        onDuplicate(this.#lines[row] as number, this.#lines[rowOfSlot[-slot - 1] as number] as number);
      } else {
        slots[slot] = offset + 1;
        rowOfSlot[slot] = row;
      }
      offset += this.#recordLength(offset);
    }
    const records = (this.#records.buffer as ArrayBuffer).transfer(this.#length);
    return { rows: this.#rows, entityTypes: this.#entityTypes, records, slots: slots.buffer };
  }

  /** The slot for the record at `offset`; `-slot - 1` if that slot holds the same url and store already. */
  #freeSlot(slots: Uint32Array, offset: number): number {
    const records = this.#records;
    const urlStart = offset + recordHeaderBytes + (records[offset + 1] as number);
    const end = urlStart + (records[offset + 2] as number) + ((records[offset + 3] as number) << 8);
    let hash = hashStart;
    for (let i = offset + recordHeaderBytes; i < urlStart; i += 1)
      hash = hashUnit(hash, records[i] as number);
    hash = hashUnit(hash, hashSeparator);
    for (let i = urlStart; i < end; i += 1) hash = hashUnit(hash, records[i] as number);
    const mask = slots.length - 1;
    let slot = finishHash(hash) & mask;
    for (;;) {
      const place = slots[slot] as number;
      if (place === 0) return slot;
      if (this.#isSame(place - 1, offset, end)) return -slot - 1;
      slot = (slot + 1) & mask;
    }
  }

  /** Whether two records have the same store and url. */
  #isSame(one: number, other: number, otherEnd: number): boolean {
    const records = this.#records;
    for (let i = 1; i <= 3; i += 1) if (records[one + i] !== records[other + i]) return false;
    const distance = one - other;
    for (let i = otherEnd - 1; i >= other + recordHeaderBytes; i -= 1) {
      if (records[i] !== records[i + distance]) return false;
    }
    return true;
  }

  #recordLength(offset: number): number {
    const records = this.#records;
    const urlLength = (records[offset + 2] as number) + ((records[offset + 3] as number) << 8);
    const idLength = (records[offset + 4] as number) + ((records[offset + 5] as number) << 8);
    return recordHeaderBytes + (records[offset + 1] as number) + urlLength + idLength;
  }

  #makeRoom(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed > this.#records.length) {
      const buffer = this.#records.buffer as ArrayBuffer;
      this.#records = new Uint8Array(buffer.transfer(Math.max(needed, this.#records.length * 2)));
    }
    if (this.#rows === this.#lines.length) {
      const buffer = this.#lines.buffer as ArrayBuffer;
      this.#lines = new Uint32Array(buffer.transfer(this.#lines.byteLength * 2));
    }
  }
}

/** Looks up rows in a `TableData`, at the same cost among a thousand as among a million. */
export class MappingTable {
  readonly rows: number;
  readonly #entityTypes: readonly string[];
  readonly #records: Buffer;
  readonly #slots: Uint32Array;
  readonly #mask: number;
  readonly #wanted = Buffer.alloc(maxUrlBytes + 1024);

  constructor(data: TableData) {
    this.rows = data.rows;
    this.#entityTypes = data.entityTypes;
    this.#records = Buffer.from(data.records);
    this.#slots = new Uint32Array(data.slots);
    this.#mask = this.#slots.length - 1;
  }

  /** The row of `url` for `store`, else the one without a store. `store` may be empty. */
  find(url: string, store: string): Mapping | undefined {
    if (store !== '' && store.length <= 255) {
      const own = this.#find(url, store);
      if (own !== undefined) return own;
    }
    return this.#find(url, '');
  }

  #find(url: string, store: string): Mapping | undefined {
    const wanted = this.#wanted;
    const storeEnd = store === '' ? 0 : wanted.write(store, 0, 'utf8');
    const urlEnd = storeEnd + wanted.write(url, storeEnd, 'utf8');
    let hash = hashStart;
    for (let i = 0; i < storeEnd; i += 1) hash = hashUnit(hash, wanted[i] as number);
    hash = hashUnit(hash, hashSeparator);
    for (let i = storeEnd; i < urlEnd; i += 1) hash = hashUnit(hash, wanted[i] as number);
    let slot = finishHash(hash) & this.#mask;
    for (;;) {
      const place = this.#slots[slot] as number;
      if (place === 0) return undefined;
      if (this.#isAt(place - 1, storeEnd, urlEnd)) return this.#read(place - 1);
      slot = (slot + 1) & this.#mask;
    }
  }

  #isAt(offset: number, storeEnd: number, urlEnd: number): boolean {
    const records = this.#records;
    const wanted = this.#wanted;
    if (records[offset + 1] !== storeEnd) return false;
    if (records.readUInt16LE(offset + 2) !== urlEnd - storeEnd) return false;
    const start = offset + recordHeaderBytes;
    // From the end, where URLs differ.
    for (let i = urlEnd - 1; i >= 0; i -= 1) if (records[start + i] !== wanted[i]) return false;
    return true;
  }

  #read(offset: number): Mapping {
    const records = this.#records;
    const idStart =
      offset + recordHeaderBytes + (records[offset + 1] as number) + records.readUInt16LE(offset + 2);
    const idEnd = idStart + records.readUInt16LE(offset + 4);
    const entityType = this.#entityTypes[records[offset] as number];
    if (entityType === undefined) throw new Error('a record without a type');
    return { entityType, entityId: records.toString('utf8', idStart, idEnd) };
  }
}
