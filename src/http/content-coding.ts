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

/** A body of at most this many bytes is decoded in this thread: the thread pool costs more. */
const decodedHereBytes = 16_384;
/** A small body may decode to megabytes: one that decodes to more bytes than this is decoded in the thread pool. */
const expandedHereBytes = 65_536;

/** Why a body was not decoded. `unknown`: another coding, or several. */
type Undecoded = 'too-long' | 'unknown' | 'broken';

/** Decodes a body of at most one content coding (RFC 9110 section 8.4) to at most `maxBytes` bytes, in this call. */
export function decodeNow(body: Buffer, fields: FieldList, maxBytes: number): Buffer | Undecoded {
  const name = codingOf(fields);
  if (name === undefined) return body;
  try {
    return decoders.get(name)?.now(body, { maxOutputLength: maxBytes }) ?? 'unknown';
  } catch (fault) {
    return (fault as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'too-long' : 'broken';
  }
}

/** Decodes in the thread pool if it takes long. Null: the body was not decoded. */
export function decodeBody(body: Buffer, fields: FieldList, maxBytes: number): Eventually<Buffer | null> {
  const isShort = body.length <= decodedHereBytes;
  const here = isShort ? decodeNow(body, fields, Math.min(maxBytes, expandedHereBytes)) : 'too-long';
  if (here !== 'too-long') return Buffer.isBuffer(here) ? here : null;
  const name = codingOf(fields);
  if (name === undefined) return body;
  const decoder = decoders.get(name);
  return decoder === undefined ? null : decoder.inPool(body, { maxOutputLength: maxBytes }).catch(() => null);
}

function codingOf(fields: FieldList): string | undefined {
  const lines = fieldValues(fields, 'content-encoding');
  if (lines.length === 0) return undefined;
  const name = lines.join(',').trim().toLowerCase();
  return name === '' || name === 'identity' ? undefined : name;
}
