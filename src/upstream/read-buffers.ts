import { longestRead } from './llhttp.ts';

/**
 * Read buffers for reuse. Each has 64 KiB outside the heap, which the garbage collector counts: with a new one for each
 * read it collected the whole heap after every two hundred bodies of 100 KB.
 */
const spareBuffers: Buffer[] = [];
const maxSpareBuffers = 64;

export function takeReadBuffer(): Buffer {
  return spareBuffers.pop() ?? Buffer.allocUnsafeSlow(longestRead);
}

/** Only for a buffer that has no other user: another client's response may be read into it next. */
export function returnReadBuffer(buffer: Buffer): void {
  if (spareBuffers.length < maxSpareBuffers) spareBuffers.push(buffer);
}

/** Returns `buffer` once, however often it is called: returned twice, it would be used for two clients at a time. */
export function createRelease(buffer: Buffer): () => void {
  let owned: Buffer | undefined = buffer;
  return () => {
    if (owned !== undefined) returnReadBuffer(owned);
    owned = undefined;
  };
}
