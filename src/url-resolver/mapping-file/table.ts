import { type Mapping, maxUrlBytes } from '../envelope.ts';

/**
 * A mapping file in memory: two buffers, built in a worker and handed over without a copy. A million rows are a few tens of
 * megabytes and no object for the garbage collector.
 *
 * `records` is one record after the other: index of the type (1 byte), length of the key (2, little-endian) and of the id
 * (1), then key and id in UTF-8. `slots` is a hash table with open addressing: 0, or the offset of a record + 1.
 */
export interface TableData {
  readonly rows: number;
  /** 255 at most. */
  readonly entityTypes: readonly string[];
  readonly records: ArrayBuffer;
  readonly slots: ArrayBuffer;
}

const headBytes = 4;
const longestKey = maxUrlBytes + 1024;
const longestRecord = headBytes + longestKey + 255;

/** Writes store, NUL and url; no row has a NUL. Returns the number of bytes. */
function writeKey(into: Buffer, at: number, url: string, store: string): number {
  const storeEnd = store === '' ? at : at + into.write(store, at);
  into[storeEnd] = 0;
  return storeEnd + 1 - at + into.write(url, storeEnd + 1);
}

/** The slot of the key, or the free one where it belongs. */
function findSlot(slots: Uint32Array, records: Buffer, key: Buffer, from: number, length: number): number {
  // FNV-1a, and then a mix of the upper bits into the lower ones, which choose the slot.
  let hash = 0x811c9dc5;
  for (let i = from; i < from + length; i += 1) hash = Math.imul(hash ^ (key[i] as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  const mask = slots.length - 1;
  for (let slot = (hash ^ (hash >>> 13)) & mask; ; slot = (slot + 1) & mask) {
    const offset = (slots[slot] as number) - 1;
    if (offset < 0) return slot;
    const start = offset + headBytes;
    const isSame =
      records.readUInt16LE(offset + 1) === length &&
      records.compare(key, from, from + length, start, start + length) === 0;
    if (isSame) return slot;
  }
}

/** Builds a `TableData` from validated rows. */
export class TableBuilder {
  readonly #entityTypes: readonly string[];
  #records = Buffer.alloc(64 * 1024);
  #length = 0;
  /** Offset and line of each row. */
  readonly #offsets: number[] = [];
  readonly #lines: number[] = [];

  constructor(entityTypes: readonly string[]) {
    this.#entityTypes = entityTypes;
  }

  /** `store` is empty where the row is for every shop store. */
  add({ url, entityType, entityId, store }: Mapping & Record<'url' | 'store', string>, line: number): void {
    if (this.#length + longestRecord > this.#records.length) {
      this.#records = Buffer.concat([this.#records, Buffer.alloc(this.#records.length)]);
    }
    const offset = this.#length;
    const keyLength = writeKey(this.#records, offset + headBytes, url, store);
    const idLength = this.#records.write(entityId, offset + headBytes + keyLength);
    this.#records[offset] = this.#entityTypes.indexOf(entityType);
    this.#records.writeUInt16LE(keyLength, offset + 1);
    this.#records[offset + 3] = idLength;
    this.#length += headBytes + keyLength + idLength;
    this.#offsets.push(offset);
    this.#lines.push(line);
  }

  /** Builds the hash table; calls `onDuplicate` for each row with the url and store of an earlier one. */
  finish(onDuplicate: (line: number, firstLine: number) => void): TableData {
    const rows = this.#offsets.length;
    const records = Buffer.from(new ArrayBuffer(this.#length));
    this.#records.copy(records, 0, 0, this.#length);
    const slots = new Uint32Array(2 ** Math.ceil(Math.log2(Math.max(8, rows * 2))));
    const rowOfSlot = new Uint32Array(slots.length);
    for (const [row, offset] of this.#offsets.entries()) {
      const length = records.readUInt16LE(offset + 1);
      const slot = findSlot(slots, records, records, offset + headBytes, length);
      if (slots[slot] === 0) {
        slots[slot] = offset + 1;
        rowOfSlot[slot] = row;
      } else {
        onDuplicate(this.#lines[row] as number, this.#lines[rowOfSlot[slot] as number] as number);
      }
    }
    return { rows, entityTypes: this.#entityTypes, records: records.buffer, slots: slots.buffer };
  }
}

/** Looks up rows in a `TableData`, at a cost that does not depend on their number. */
export class MappingTable {
  readonly rows: number;
  readonly #entityTypes: readonly string[];
  readonly #records: Buffer;
  readonly #slots: Uint32Array;
  readonly #key = Buffer.alloc(longestKey);

  constructor(data: TableData) {
    this.rows = data.rows;
    this.#entityTypes = data.entityTypes;
    this.#records = Buffer.from(data.records);
    this.#slots = new Uint32Array(data.slots);
  }

  /** The row of `url` for `store`, else the one without a store. `store` may be empty. */
  find(url: string, store: string): Mapping | undefined {
    const own = store !== '' && store.length <= 255 ? this.#find(url, store) : undefined;
    return own ?? this.#find(url, '');
  }

  #find(url: string, store: string): Mapping | undefined {
    const records = this.#records;
    const length = writeKey(this.#key, 0, url, store);
    const offset = (this.#slots[findSlot(this.#slots, records, this.#key, 0, length)] as number) - 1;
    if (offset < 0) return undefined;
    const idStart = offset + headBytes + length;
    const entityType = this.#entityTypes[records[offset] as number];
    if (entityType === undefined) throw new Error('a record without a type');
    return {
      entityType,
      entityId: records.toString('utf8', idStart, idStart + (records[offset + 3] as number)),
    };
  }
}
