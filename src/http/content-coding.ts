import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import type { Eventually } from '../lib/eventually.ts';
import { type FieldList, fieldValues } from './field-list.ts';

interface Limit {
  readonly maxOutputLength: number;
}

interface Decoder {
  readonly now: (body: Buffer, limit: Limit) => Buffer;
  readonly inPool: (body: Buffer, limit: Limit) => Promise<Buffer>;
}

const gzip: Decoder = {
  now: zlib.gunzipSync,
  inPool: promisify<Buffer, Limit, Buffer>(zlib.gunzip),
};

/** The content codings that are understood (RFC 9110 section 8.4.1). */
const decoders: ReadonlyMap<string, Decoder> = new Map([
  ['gzip', gzip],
  ['x-gzip', gzip],
  ['deflate', { now: zlib.inflateSync, inPool: promisify<Buffer, Limit, Buffer>(zlib.inflate) }],
  ['br', { now: zlib.brotliDecompressSync, inPool: promisify<Buffer, Limit, Buffer>(zlib.brotliDecompress) }],
  ['zstd', { now: zlib.zstdDecompressSync, inPool: promisify<Buffer, Limit, Buffer>(zlib.zstdDecompress) }],
]);

/** A body of no more bytes is decoded here: a trip to the thread pool costs more. */
const decodedHereBytes = 16_384;
/** A small body may decode to megabytes: one that decodes to more bytes than this is decoded in the thread pool. */
const expandedHereBytes = 65_536;

/**
 * Decodes a body of one content coding (RFC 9110 section 8.4) to at most `maxBytes` bytes. Null: an unknown coding,
 * several codings, a broken body, or a longer one.
 */
export function decodeBody(
  body: Buffer,
  coding: string | undefined,
  maxBytes: number,
): Eventually<Buffer | null> {
  const name = coding?.trim().toLowerCase() ?? '';
  if (name === '' || name === 'identity') return body;
  const decoder = decoders.get(name);
  if (decoder === undefined) return null;
  const inPool = () => decoder.inPool(body, { maxOutputLength: maxBytes }).catch(() => null);
  if (body.length > decodedHereBytes) return inPool();
  try {
    return decoder.now(body, { maxOutputLength: Math.min(maxBytes, expandedHereBytes) });
  } catch (fault) {
    return isTooLong(fault) && maxBytes > expandedHereBytes ? inPool() : null;
  }
}

/**
 * Decodes all content codings of `fields` in this call. `too-long`: more than `maxBytes`, or more codings than anybody
 * needs; `unknown`: an unknown coding; `broken`: not what the coding says.
 */
export function decodeContent(
  body: Buffer,
  fields: FieldList,
  maxBytes: number,
): Buffer | 'too-long' | 'unknown' | 'broken' {
  const codings = fieldValues(fields, 'content-encoding')
    .flatMap((value) => value.split(','))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
  if (codings.length > 3) return 'too-long';
  let decoded = body;
  for (const coding of codings.reverse()) {
    const decoder = decoders.get(coding);
    if (decoder === undefined) return 'unknown';
    try {
      decoded = decoder.now(decoded, { maxOutputLength: maxBytes });
    } catch (fault) {
      return isTooLong(fault) ? 'too-long' : 'broken';
    }
  }
  return decoded;
}

function isTooLong(fault: unknown): boolean {
  return (fault as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
}
