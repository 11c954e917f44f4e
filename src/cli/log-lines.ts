import { pipeline, Readable } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';

/** Characters of the longest line of shopward's log. A longer one may come without its middle, and is still longer than this. */
export const longestLine = 65_536;

/**
 * The lines of a log, as many at once as arrive together. It may be compressed by gzip or zstd. `progress.read` grows with
 * the octets that were read.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>,
  progress = { read: 0 },
): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of unpack(countBytes(chunks, progress))) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    // An overlong line is kept only as long as it takes to recognise it as one.
    rest = (lines.pop() ?? '').slice(0, longestLine + 1);
    yield lines;
  }
  yield [rest];
}

async function* countBytes(
  chunks: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>,
  progress: { read: number },
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk);
    progress.read += bytes.length;
    yield bytes;
  }
}

/** Decompresses by the first octets, whatever the name of the file: rotated logs are often compressed. */
async function* unpack(chunks: AsyncGenerator<Buffer>): AsyncGenerator<Uint8Array> {
  const { value: first } = await chunks.next();
  if (first === undefined) return;
  const whole = Readable.from(
    (async function* () {
      yield first;
      yield* chunks;
    })(),
  );
  const unpacking = first.subarray(0, 2).equals(Buffer.from([0x1f, 0x8b]))
    ? createGunzip()
    : first.subarray(0, 4).equals(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]))
      ? createZstdDecompress()
      : undefined;
  if (unpacking === undefined) return yield* whole;
  // A fault of either is one of what is read here.
  pipeline(whole, unpacking, () => {});
  yield* unpacking;
}
