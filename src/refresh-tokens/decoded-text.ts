import * as zlib from 'node:zlib';
import { type FieldList, fieldValues } from '../http/field-list.ts';

type Decode = (body: Buffer, options: { readonly maxOutputLength: number }) => Buffer;

const decoders: Readonly<Record<string, Decode>> = {
  gzip: zlib.gunzipSync,
  'x-gzip': zlib.gunzipSync,
  deflate: zlib.inflateSync,
  br: zlib.brotliDecompressSync,
  zstd: zlib.zstdDecompressSync,
};

/**
 * The octets behind the content codings (RFC 9110 section 8.4). `too-long`: more than `maxBytes`, or more codings than
 * anybody needs; `unreadable`: an unknown coding, or a broken body.
 */
export function decodeContent(
  body: Buffer,
  fields: FieldList,
  maxBytes: number,
): Buffer | 'too-long' | 'unreadable' {
  const codings = fieldValues(fields, 'content-encoding')
    .flatMap((value) => value.split(','))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
  if (codings.length > 3) return 'too-long';
  let decoded = body;
  for (const coding of codings.reverse()) {
    const decode = Object.hasOwn(decoders, coding) ? decoders[coding] : undefined;
    if (decode === undefined) return 'unreadable';
    try {
      decoded = decode(decoded, { maxOutputLength: maxBytes });
    } catch (fault) {
      return (fault as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'too-long' : 'unreadable';
    }
  }
  return decoded;
}
