import { type FieldList, fieldValue, fieldValues, trimOws } from '../http/field-list.ts';

/**
 * What is checked of an upstream's response beside the parser: parsers forgive, and what one of them
 * takes for a field, a body or the end of a response, another reader (or the next client) may not.
 */

/** Why an answer is not taken. Its `code` is the same in words that the record of a request may hold: no octet of the answer. */
export class MalformedResponse extends Error {
  readonly code: string;

  constructor(why: string) {
    super(why);
    this.code = why.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  }
}

/** A head, with the empty line after it (RFC 9112 sections 4 and 5): no bare CR or LF, no folded line, no NUL. */
const head =
  /^HTTP\/1\.[01] \d{3}(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n$/;

/** No `TE` is sent, so there is no coding but `chunked` (RFC 9112 section 7.4); a parser may take `chunked ` for another. */
const otherCoding = /\r\ntransfer-encoding:(?![ \t]*chunked\r\n)/i;

/**
 * Interim responses of one response (RFC 9110 section 15.2): each may be written to the client by itself, and some
 * thousands of them fit into one read.
 */
const mostInterim = 512;

const carriageReturn = 0x0d;
const emptyLine = '\r\n\r\n';

/** Reads along with a parser: the heads of one response, interim ones and the final one. */
export class ResponseHeadCheck {
  readonly #maxBytes: number;
  /** Pieces of a head that came in several. */
  #pieces: string[] = [];
  /** How much of an empty line they end with. */
  #matched = 0;
  #bytes = 0;
  #interim = 0;
  /** The final head was read to its end. */
  isDone = false;
  /** The first head, where it stands at the start of the last piece. */
  text = '';

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  begin(): void {
    this.#pieces = none;
    this.#matched = 0;
    this.#bytes = 0;
    this.#interim = 0;
    this.isDone = false;
    this.text = '';
  }

  /** The next bytes; says why they are no response, as far as it goes. */
  read(piece: Buffer, length: number): string | undefined {
    this.text = '';
    let at = 0;
    while (!this.isDone && at < length) {
      const end = this.#endOfHead(piece, at, length);
      const text = piece.toString('latin1', at, Math.min(end, length));
      this.#bytes += text.length;
      if (this.#bytes > this.#maxBytes) return 'response fields are too long';
      if (end > length) {
        if (this.#pieces === none) this.#pieces = [];
        this.#pieces.push(text);
        return undefined;
      }
      const whole = this.#pieces.length === 0 ? text : this.#pieces.join('') + text;
      if (at === 0 && this.#pieces.length === 0) this.text = text;
      this.#pieces = none;
      this.#matched = 0;
      if (!head.test(whole)) return 'not the head of a response';
      if (otherCoding.test(whole)) return 'a transfer coding that nobody asked for';
      this.isDone = whole.charCodeAt(9) !== interimDigit || whole.startsWith('101', 9);
      if (!this.isDone && ++this.#interim > mostInterim) return 'too many interim responses';
      at = end;
    }
    return undefined;
  }

  /** After the empty line at the end of a head, or beyond `length`. */
  #endOfHead(piece: Buffer, start: number, length: number): number {
    if (this.#pieces.length === 0) {
      const at = piece.indexOf(emptyLine, start, 'latin1');
      if (at !== -1 && at + emptyLine.length <= length) return at + emptyLine.length;
    }
    for (let at = start; at < length; at += 1) {
      const octet = piece[at] as number;
      if (octet === emptyLine.charCodeAt(this.#matched)) this.#matched += 1;
      else this.#matched = octet === carriageReturn ? 1 : 0;
      if (this.#matched === emptyLine.length) return at + 1;
    }
    return length + 1;
  }
}

const none: string[] = [];
const interimDigit = '1'.charCodeAt(0);

/** Why nobody should guess at the end of a body: two codings, or a length beside one (RFC 9112 section 6.3). */
export function framingFault(fields: FieldList): string | undefined {
  if (fieldValue(fields, 'transfer-encoding') === undefined) return undefined;
  const codings = fieldValues(fields, 'transfer-encoding').length;
  if (codings > 1) return 'two transfer codings';
  if (fieldValue(fields, 'content-length') !== undefined) return 'a length beside a coding';
  return undefined;
}

/** A 101 for another protocol than the one that was asked for, or for none (RFC 9110 section 15.2.2). */
export function isForWebSocket(fields: FieldList): boolean {
  const protocols = fieldValues(fields, 'upgrade');
  return (
    protocols.length === 1 && protocols[0]?.toLowerCase() === 'websocket' && hasOption(fields, 'upgrade')
  );
}

function hasOption(fields: FieldList, option: string): boolean {
  const options = fieldValues(fields, 'connection').flatMap((value) => value.toLowerCase().split(','));
  return options.some((one) => trimOws(one) === option);
}

/** HEAD, 204 and 304 have no body, whatever their fields say (RFC 9110 section 6.4.1). */
export function isBodiless(method: string | undefined, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 304;
}

/**
 * Whether another request may follow on the connection of this response. One without a body (HEAD, 204, 304) is the end:
 * an upstream that sends the body all the same may do so at any time, and it would be read as the next answer.
 */
export function maySucceed(isHeadRequest: boolean, status: number): boolean {
  return !isBodiless(isHeadRequest ? 'HEAD' : undefined, status);
}
