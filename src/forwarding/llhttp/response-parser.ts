import { type FieldList, fieldValue, fieldValues } from '../../request/field-list.ts';
import { llhttp, type ParserAddress, type ParserEvents, parserError } from './llhttp.ts';

export interface ResponseHead {
  readonly status: number;
  /** Latin-1, as sent. */
  readonly reason: string;
  readonly fields: FieldList;
}

const none: readonly never[] = [];

/** What an interim response counts beside its fields: without it there would be no end to bare ones. */
const interimBytes = 64;

/**
 * The responses of one connection, one after the other. Each piece that is read leaves what it held in the fields of
 * this object, so that nobody is called while the parser runs.
 */
export class ResponseParser implements ParserEvents {
  /** Interim responses that were complete in the last piece (RFC 9110 section 15.2). */
  informational: readonly ResponseHead[] = none;
  /** The final head, in the piece that completed it. */
  head: ResponseHead | undefined;
  /** Where body stands in the last piece: chunks are moved together. */
  bodyStart = 0;
  bodyEnd = 0;
  /** The response was complete with the last piece. */
  isComplete = false;
  /** Whether the next response may follow on this connection; known once the response is complete. */
  isReusable = false;
  /** Why the bytes are no response. */
  fault: Error | undefined;

  readonly #address: ParserAddress;
  readonly #maxHeadBytes: number;
  #isHead = false;
  #isHeadDone = false;
  #isFree = false;
  /** Who announces a body where there is none (RFC 9110 section 8.6) may well send it. */
  #saysTooMuch = false;
  #headBytes = 0;
  #reason = '';
  #fields: string[] = [];
  #piece: Buffer | undefined;
  /** The head's part of the piece, as text: cut by offset, it costs a tenth of as many slices of the bytes. */
  #text = '';

  constructor(maxHeadBytes: number) {
    this.#maxHeadBytes = maxHeadBytes;
    this.#address = llhttp.allocate();
  }

  /** A request has been sent, and its response is what is read next. */
  begin(isHeadRequest: boolean): void {
    llhttp.reset(this.#address);
    this.#isHead = isHeadRequest;
    this.#isHeadDone = false;
    this.#headBytes = 0;
    this.#forget();
    this.#clearHead();
  }

  /** The next bytes; the last response must have been begun, and not be complete. */
  read(piece: Buffer, length: number): void {
    this.#forget();
    this.#piece = piece;
    if (!this.#isHeadDone) this.#text = headText(piece, length);
    const error = llhttp.execute(this.#address, this, piece, length);
    this.#text = '';
    this.#piece = undefined;
    if (error === parserError.none) return;
    if (this.isComplete && error === parserError.paused) {
      // Bytes behind the end are nobody's: were the connection used again, they would answer another request.
      if (llhttp.consumed(this.#address) !== length) this.isReusable = false;
    } else this.fault ??= new Error(llhttp.reasonOf(this.#address));
  }

  /** The end of the connection: the end of a body that nothing else ends, or a fault. */
  finish(): void {
    this.#forget();
    const error = llhttp.finish(this.#address, this);
    this.isReusable = false;
    if (!this.isComplete) this.fault ??= new Error(`ended early (${error})`);
  }

  /** Gives its memory back; nothing may be read any more. */
  free(): void {
    if (this.#isFree) return;
    this.#isFree = true;
    llhttp.free(this.#address);
  }

  onStatus(start: number, length: number): number {
    this.#reason += this.#textOf(start, length);
    return this.#count(length);
  }

  onFieldName(start: number, length: number): number {
    if (!this.#isHeadDone) this.#addText(this.#fields.length % 2 === 0, start, length);
    return this.#count(length);
  }

  onFieldValue(start: number, length: number): number {
    if (!this.#isHeadDone) this.#addText(this.#fields.length % 2 === 1, start, length);
    return this.#count(length);
  }

  onHeadComplete(status: number): number {
    if (status < 100 || status > 599 || status === 101) {
      this.fault = new Error(`status ${status}`);
      return parserError.callback;
    }
    const fields = this.#fields;
    for (let i = 1; i < fields.length; i += 2) fields[i] = withoutSpaceBehind(fields[i] as string);
    const head = { status, reason: this.#reason, fields };
    this.#clearHead();
    if (!fieldValues(fields, 'transfer-encoding').every(isChunked)) {
      this.fault = new Error('a transfer coding that nobody asked for');
      return parserError.callback;
    }
    if (status < 200) {
      this.informational = [...this.informational, head];
      return this.#count(interimBytes) === 0 ? noBody : parserError.callback;
    }
    this.head = head;
    this.#isHeadDone = true;
    const isBodiless = status === 204 || status === 304;
    this.#saysTooMuch = isBodiless && announcesBody(fields);
    return this.#isHead || isBodiless ? noBody : 0;
  }

  onBody(start: number, length: number): number {
    if (this.bodyEnd === 0) this.bodyEnd = this.bodyStart = start;
    else this.#piece?.copyWithin(this.bodyEnd, start, start + length);
    this.bodyEnd += length;
    return 0;
  }

  onComplete(): number {
    if (!this.#isHeadDone) return 0;
    this.isComplete = true;
    this.isReusable = !this.#saysTooMuch && llhttp.shouldKeepAlive(this.#address);
    return parserError.paused;
  }

  /** A part of the head, or its next piece where it was cut between two reads. */
  #addText(isNew: boolean, start: number, length: number): void {
    const text = this.#textOf(start, length);
    if (isNew) this.#fields.push(text);
    else this.#fields[this.#fields.length - 1] += text;
  }

  #textOf(start: number, length: number): string {
    const end = start + length;
    if (end <= this.#text.length) return this.#text.substring(start, end);
    return this.#piece?.toString('latin1', start, end) ?? '';
  }

  #count(length: number): number {
    this.#headBytes += length;
    if (this.#headBytes <= this.#maxHeadBytes) return 0;
    this.fault = new Error('response fields are too long');
    return parserError.callback;
  }

  #forget(): void {
    this.informational = none;
    this.head = undefined;
    this.bodyStart = 0;
    this.bodyEnd = 0;
    this.isComplete = false;
    this.isReusable = false;
    this.fault = undefined;
  }

  #clearHead(): void {
    this.#reason = '';
    this.#fields = [];
  }
}

/** What `onHeadComplete` returns of a response without body, whatever its fields say (RFC 9112 section 6.3). */
const noBody = 1;

/** RFC 9112 section 7.4: without `TE` there is no other coding; taken for chunks alone, its body would be garbage. */
function isChunked(codings: string): boolean {
  return codings.split(',').every((coding) => coding.trim().toLowerCase() === 'chunked');
}

function announcesBody(fields: FieldList): boolean {
  return (
    fieldValue(fields, 'transfer-encoding') !== undefined ||
    (fieldValue(fields, 'content-length') ?? '0') !== '0'
  );
}

/** RFC 9112 section 5.1: space behind a value is no part of it; llhttp leaves it there. */
function withoutSpaceBehind(value: string): string {
  let end = value.length;
  while (end > 0 && (value.charCodeAt(end - 1) === 0x20 || value.charCodeAt(end - 1) === 0x09)) end -= 1;
  return end === value.length ? value : value.slice(0, end);
}

function headText(piece: Buffer, length: number): string {
  const end = piece.indexOf('\r\n\r\n', 0, 'latin1');
  return piece.toString('latin1', 0, end === -1 || end > length ? length : end);
}
