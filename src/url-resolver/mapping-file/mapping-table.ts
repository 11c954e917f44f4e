import { entityTypes, type Mapping, maxUrlBytes } from '../mapping.ts';
import {
  finishHash,
  hashOctet,
  hashSeparator,
  hashStart,
  recordHeaderBytes,
  type TableData,
} from './table-data.ts';

/** Looks up in the bytes of a `TableData`; one look-up costs the same among a thousand rows and a million. */
export class MappingTable {
  readonly rows: number;
  readonly #records: Buffer;
  readonly #slots: Uint32Array;
  readonly #mask: number;
  readonly #wanted = Buffer.alloc(maxUrlBytes + 1024);

  constructor(data: TableData) {
    this.rows = data.rows;
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
    for (let i = 0; i < storeEnd; i += 1) hash = hashOctet(hash, wanted[i] as number);
    hash = hashOctet(hash, hashSeparator);
    for (let i = storeEnd; i < urlEnd; i += 1) hash = hashOctet(hash, wanted[i] as number);
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
    // From the end: URLs differ there.
    for (let i = urlEnd - 1; i >= 0; i -= 1) if (records[start + i] !== wanted[i]) return false;
    return true;
  }

  #read(offset: number): Mapping {
    const records = this.#records;
    const idStart =
      offset + recordHeaderBytes + (records[offset + 1] as number) + records.readUInt16LE(offset + 2);
    const idEnd = idStart + records.readUInt16LE(offset + 4);
    const entityType = entityTypes[records[offset] as number];
    if (entityType === undefined) throw new Error('a record without a type');
    return { entityType, entityId: records.toString('utf8', idStart, idEnd) };
  }
}
