import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import type { Eventually } from './tag-store.ts';

type Decode = (body: Buffer, options: { readonly maxOutputLength: number }) => Buffer;
type DecodeLater = (body: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;

const decoders: Readonly<Record<string, readonly [Decode, DecodeLater]>> = {
  gzip: [zlib.gunzipSync, promisify<Buffer, object, Buffer>(zlib.gunzip)],
  'x-gzip': [zlib.gunzipSync, promisify<Buffer, object, Buffer>(zlib.gunzip)],
  deflate: [zlib.inflateSync, promisify<Buffer, object, Buffer>(zlib.inflate)],
  br: [zlib.brotliDecompressSync, promisify<Buffer, object, Buffer>(zlib.brotliDecompress)],
  zstd: [zlib.zstdDecompressSync, promisify<Buffer, object, Buffer>(zlib.zstdDecompress)],
};

/** Below this many bytes a trip to the thread pool costs more than decoding here. */
const decodedHereBytes = 16_384;
/** A few KB may stand for megabytes: more than this is decoded in the thread pool all the same. */
const expandedHereBytes = 65_536;

/**
 * The octets behind a content coding (RFC 9110 section 8.4), at most `maxBytes` of them. Null: a coding that we do not
 * know (or several), a broken body, or a longer one.
 */
export function decodeBody(
  body: Buffer,
  coding: string | undefined,
  maxBytes: number,
): Eventually<Buffer | null> {
  const name = coding?.trim().toLowerCase() ?? '';
  if (name === '' || name === 'identity') return body;
  const decoder = Object.hasOwn(decoders, name) ? decoders[name] : undefined;
  if (decoder === undefined) return null;
  const [decode, decodeLater] = decoder;
  const inPool = () => decodeLater(body, { maxOutputLength: maxBytes }).catch(() => null);
  if (body.length > decodedHereBytes) return inPool();
  try {
    return decode(body, { maxOutputLength: Math.min(maxBytes, expandedHereBytes) });
  } catch (fault) {
    const isTooLong = (fault as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    return isTooLong && maxBytes > expandedHereBytes ? inPool() : null;
  }
}
