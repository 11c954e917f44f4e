/** A response as it was received. */
export interface RawResponse {
  /** `HTTP/1.1`, as sent. */
  readonly version: string;
  readonly status: number;
  readonly reason: string;
  /** Field lines, flat: name, value, name, value …, in the sent order and spelling, with trimmed values. */
  readonly rawFields: readonly string[];
  /** All values of a field, in order; the name is compared case-insensitively. */
  fields(name: string): string[];
  /** The first value of a field, or undefined. */
  field(name: string): string | undefined;
  /** The body, unchunked. If `complete` is false: the part that arrived. */
  readonly body: Buffer;
  /** Field lines of the trailer section of a chunked body. */
  readonly trailers: readonly string[];
  /** Whether the body ended as its framing says. A close-delimited body is complete unless the connection was reset. */
  readonly complete: boolean;
}

interface Parsed {
  readonly response: RawResponse;
  /** Length of the whole response in octets. */
  readonly length: number;
}

/** Undefined: more bytes are needed. Throws on bytes that are not HTTP/1. */
export function parseResponse(
  received: Buffer,
  method: string,
  ending: 'fin' | 'reset' | undefined,
): Parsed | undefined {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [statusLine = '', ...lines] = received.toString('latin1', 0, headEnd).split('\r\n');
  const status = /^(HTTP\/\d\.\d) (\d{3}) ?(.*)$/.exec(statusLine);
  if (status === null) throw new Error(`not a status line: ${JSON.stringify(statusLine)}`);
  const [, version = '', code = '', reason = ''] = status;
  const rawFields = parseFieldLines(lines);
  const fields = (name: string): string[] => valuesOf(rawFields, name);
  const rest = received.subarray(headEnd + 4);
  const body = readBody(rest, Number(code), method, fields, ending);
  if (!body.complete && ending === undefined) return undefined;
  const response: RawResponse = {
    version,
    status: Number(code),
    reason,
    rawFields,
    fields,
    field: (name) => fields(name)[0],
    body: body.bytes,
    trailers: body.trailers,
    complete: body.complete,
  };
  return { response, length: headEnd + 4 + body.length };
}

interface Body {
  readonly bytes: Buffer;
  readonly trailers: readonly string[];
  readonly complete: boolean;
  readonly length: number;
}

function readBody(
  rest: Buffer,
  status: number,
  method: string,
  fields: (name: string) => string[],
  ending: 'fin' | 'reset' | undefined,
): Body {
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return plainBody(rest, 0);
  const coding = fields('transfer-encoding').at(-1);
  if (coding !== undefined && /\bchunked\s*$/i.test(coding)) return readChunkedBody(rest);
  const announced = fields('content-length')[0];
  if (announced !== undefined) return plainBody(rest, Number(announced));
  return { bytes: rest, trailers: [], complete: ending === 'fin', length: rest.length };
}

function plainBody(rest: Buffer, length: number): Body {
  const bytes = rest.subarray(0, length);
  return { bytes, trailers: [], complete: bytes.length === length, length: bytes.length };
}

function readChunkedBody(rest: Buffer): Body {
  const chunks: Buffer[] = [];
  const cutShort = (): Body => ({
    bytes: Buffer.concat(chunks),
    trailers: [],
    complete: false,
    length: rest.length,
  });
  let at = 0;
  for (;;) {
    const sizeEnd = rest.indexOf('\r\n', at);
    if (sizeEnd < 0) return cutShort();
    const size = Number.parseInt(rest.toString('latin1', at, sizeEnd), 16);
    if (!Number.isInteger(size)) throw new Error('not a chunk size');
    if (size === 0) break;
    const data = rest.subarray(sizeEnd + 2, sizeEnd + 2 + size);
    chunks.push(data);
    if (rest.length < sizeEnd + 2 + size + 2) return cutShort();
    at = sizeEnd + 2 + size + 2;
  }
  const lastChunkEnd = rest.indexOf('\r\n', at);
  // Without trailers an empty line follows the last chunk at once, so the search starts at the CRLF of that chunk.
  const end = rest.indexOf('\r\n\r\n', lastChunkEnd);
  if (end < 0) return cutShort();
  const trailerLines = rest.toString('latin1', lastChunkEnd + 2, end).split('\r\n');
  const trailers = parseFieldLines(end === lastChunkEnd ? [] : trailerLines);
  return { bytes: Buffer.concat(chunks), trailers, complete: true, length: end + 4 };
}

function parseFieldLines(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const colon = line.indexOf(':');
    if (colon < 1) throw new Error(`not a field line: ${JSON.stringify(line)}`);
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
}

function valuesOf(rawFields: readonly string[], name: string): string[] {
  const wanted = name.toLowerCase();
  return rawFields.filter((_, i) => i % 2 === 1 && rawFields[i - 1]?.toLowerCase() === wanted);
}
