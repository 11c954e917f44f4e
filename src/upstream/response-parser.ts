import { type FieldList, fieldValue, fieldValues, isOws, trimEndWhile, trimOws } from '../http/field-list.ts';
import { llhttp, type ParserAddress, type ParserEvents, parserError } from './llhttp.ts';
import type { ResponseHead } from './port.ts';

/** Maximum bytes in the heads of one response; more is a malformed response. */
export const responseHeadBytes = 65_536;

const none: never[] = [];

/**
 * Parses the responses of one connection, one after the other. After each buffer, the fields of this object have its
 * contents; there are no callbacks.
 */
export class ResponseParser implements ParserEvents {
  /** Interim responses that were complete in the last buffer (RFC 9110 section 15.2). */
  informational: ResponseHead[] = none;
  /** The final head, if the last buffer completed it. */
  head: ResponseHead | undefined;
  /** Range of the body octets in the last buffer, after its chunks were moved together. */
  bodyStart = 0;
  bodyEnd = 0;
  /** Number of chunks, or parts of one, in that range. */
  bodyChunks = 0;
  /** The response was complete with the last buffer. */
  isComplete = false;
  /** Whether the connection may be used again; valid once the response is complete. */
  isReusable = false;
  /** The response is a 101 that was asked for; from `bodyStart` on the octets are those of a WebSocket. */
  isUpgrade = false;
  /** Why the bytes are not a response. */
  fault: Error | undefined;

  readonly #address: ParserAddress;
  readonly #heads: ResponseHeadCheck;
  readonly #maxHeadBytes: number;
  #isHeadRequest = false;
  #asksForUpgrade = false;
  #isHeadDone = false;
  #isFree = false;
  #mayBeFollowed = false;
  #trailerBytes = 0;
  #reason = '';
  #fields: string[] = [];
  #buffer: Buffer | undefined;

  constructor(maxHeadBytes: number) {
    this.#heads = new ResponseHeadCheck(maxHeadBytes);
    this.#maxHeadBytes = maxHeadBytes;
    this.#address = llhttp.allocate();
  }

  /** Begins a response, before anything of it is read. */
  begin(isHeadRequest: boolean, asksForUpgrade = false): void {
    llhttp.reset(this.#address);
    this.#isHeadRequest = isHeadRequest;
    this.#asksForUpgrade = asksForUpgrade;
    this.#isHeadDone = false;
    this.#heads.begin();
    this.#trailerBytes = 0;
    this.#forget();
    this.#clearHead();
  }

  /** Parses the next bytes of a response that was begun and is not complete. */
  read(buffer: Buffer, length: number): void {
    this.#forget();
    const unread = this.#isHeadDone ? undefined : this.#heads.read(buffer, length);
    if (unread !== undefined) {
      this.fault = new MalformedResponse(unread);
      return;
    }
    this.#buffer = buffer;
    const error = llhttp.execute(this.#address, this, buffer, length);
    this.#buffer = undefined;
    this.#heads.text = '';
    const isRead = error === parserError.none || error === parserError.paused;
    if (isRead && this.#isHeadDone !== this.#heads.isDone) {
      this.#forget();
      this.fault = new MalformedResponse('a head that ends elsewhere');
      return;
    }
    if (error === parserError.none) return;
    if (this.isComplete && error === parserError.paused) {
      // Bytes after the end: if the connection were used again, they would be read as the response to the next request.
      const consumed = llhttp.consumed(this.#address);
      if (this.isUpgrade) [this.bodyStart, this.bodyEnd] = [consumed, length];
      else if (consumed !== length) this.isReusable = false;
    } else this.fault ??= new MalformedResponse(llhttp.reasonOf(this.#address));
  }

  /** Called at the end of the connection: it completes a body without a length; anything else is a fault. */
  finish(): void {
    this.#forget();
    llhttp.finish(this.#address, this);
    this.isReusable = false;
    if (!this.isComplete) this.fault ??= new MalformedResponse('ended early');
  }

  /** Frees the parser's memory; nothing may be parsed any more. */
  free(): void {
    if (this.#isFree) return;
    this.#isFree = true;
    llhttp.free(this.#address);
  }

  onStatus(start: number, length: number): number {
    this.#reason += this.#textOf(start, length);
    return 0;
  }

  onFieldName(start: number, length: number): number {
    if (!this.#isHeadDone) this.#addText(this.#fields.length % 2 === 0, start, length);
    return this.#isHeadDone ? this.#countTrailer(length) : 0;
  }

  onFieldValue(start: number, length: number): number {
    if (!this.#isHeadDone) this.#addText(this.#fields.length % 2 === 1, start, length);
    return this.#isHeadDone ? this.#countTrailer(length) : 0;
  }

  onHeadComplete(status: number): number {
    const fields = this.#fields;
    // RFC 9112 section 5.1: trailing whitespace is not part of the value; llhttp leaves it there.
    for (let i = 1; i < fields.length; i += 2) fields[i] = trimEndWhile(fields[i] as string, isOws);
    const isUpgrade = status === 101 && this.#asksForUpgrade && isForWebSocket(fields);
    if (status < 100 || status > 599 || (status === 101 && !isUpgrade)) {
      this.fault = new MalformedResponse(`status ${status}`);
      return parserError.callback;
    }
    const head = { status, reason: this.#reason, fields };
    this.#clearHead();
    const fault = framingFault(fields);
    if (fault !== undefined) {
      this.fault = new MalformedResponse(fault);
      return parserError.callback;
    }
    if (status < 200 && !isUpgrade) {
      if (this.informational === none) this.informational = [head];
      else this.informational.push(head);
      return noBody;
    }
    this.head = head;
    this.#isHeadDone = true;
    this.isUpgrade = isUpgrade;
    this.#mayBeFollowed = !isUpgrade && maySucceed(this.#isHeadRequest, status);
    return this.#mayBeFollowed ? 0 : noBody;
  }

  onBody(start: number, length: number): number {
    if (this.bodyEnd === 0) this.bodyEnd = this.bodyStart = start;
    else this.#buffer?.copyWithin(this.bodyEnd, start, start + length);
    this.bodyEnd += length;
    this.bodyChunks += 1;
    return 0;
  }

  onComplete(): number {
    if (!this.#isHeadDone) return 0;
    this.isComplete = true;
    this.isReusable = this.#mayBeFollowed && llhttp.shouldKeepAlive(this.#address);
    return parserError.paused;
  }

  /** Adds a part of the head, or the rest of one that was cut between two reads. */
  #addText(isNew: boolean, start: number, length: number): void {
    const text = this.#textOf(start, length);
    if (isNew) this.#fields.push(text);
    else this.#fields[this.#fields.length - 1] += text;
  }

  #countTrailer(length: number): number {
    this.#trailerBytes += length;
    return this.#trailerBytes > this.#maxHeadBytes ? parserError.callback : 0;
  }

  #textOf(start: number, length: number): string {
    const end = start + length;
    // A substring of the decoded head costs a tenth of decoding each range by itself.
    const { text } = this.#heads;
    if (end <= text.length) return text.substring(start, end);
    return this.#buffer?.toString('latin1', start, end) ?? '';
  }

  #forget(): void {
    this.informational = none;
    this.head = undefined;
    this.bodyStart = 0;
    this.bodyEnd = 0;
    this.bodyChunks = 0;
    this.isComplete = false;
    this.isReusable = false;
    this.isUpgrade = false;
    this.fault = undefined;
  }

  #clearHead(): void {
    this.#reason = '';
    this.#fields = [];
  }
}

/** `onHeadComplete` returns this for a response without a body, whatever its fields say (RFC 9112 section 6.3). */
const noBody = 1;

/** Why an answer is refused. `code`, the message as one word, may be logged: of the answer it has at most the status. */
class MalformedResponse extends Error {
  readonly code: string;

  constructor(why: string) {
    super(why);
    this.code = why.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  }
}

/** A head, with the empty line after it (RFC 9112 sections 4 and 5): no bare CR or LF, no folded line, no NUL. */
const head =
  /^HTTP\/1\.[01] \d{3}(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n$/;

/**
 * No `TE` is sent, so `chunked` is the only coding (RFC 9112 section 7.4). No space may follow: a parser may read `chunked `
 * as another.
 */
const otherCoding = /\r\ntransfer-encoding:(?![ \t]*chunked\r\n)/i;

/**
 * Maximum number of interim responses before a final one (RFC 9110 section 15.2): each may be written to the client by
 * itself, and some thousands of them fit into one read.
 */
const mostInterim = 512;

const carriageReturn = 0x0d;
const emptyLine = '\r\n\r\n';

/**
 * Checks the heads of one response, interim and final, in addition to the parser. Parsers are lenient: a client may find
 * another field, body or end in a response that the parser accepts. Exported for its tests.
 */
export class ResponseHeadCheck {
  readonly #maxBytes: number;
  /** Parts of a head that is not complete yet. */
  #parts: string[] = [];
  /** How many octets of the empty line these parts end with. */
  #matched = 0;
  #bytes = 0;
  #interim = 0;
  /** The final head was read to its end. */
  isDone = false;
  /** The first head, if it is at the start of the last chunk. */
  text = '';

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  begin(): void {
    this.#parts = none;
    this.#matched = 0;
    this.#bytes = 0;
    this.#interim = 0;
    this.isDone = false;
    this.text = '';
  }

  /** Checks the next bytes; returns why they are no response, if that is certain already. */
  read(chunk: Buffer, length: number): string | undefined {
    this.text = '';
    let at = 0;
    while (!this.isDone && at < length) {
      const end = this.#endOfHead(chunk, at, length);
      const text = chunk.toString('latin1', at, Math.min(end, length));
      this.#bytes += text.length;
      if (this.#bytes > this.#maxBytes) return 'response fields are too long';
      if (end > length) {
        if (this.#parts === none) this.#parts = [];
        this.#parts.push(text);
        return undefined;
      }
      const whole = this.#parts.length === 0 ? text : this.#parts.join('') + text;
      if (at === 0 && this.#parts.length === 0) this.text = text;
      this.#parts = none;
      this.#matched = 0;
      if (!head.test(whole)) return 'not the head of a response';
      if (otherCoding.test(whole)) return 'a transfer coding that was not asked for';
      this.isDone = whole.charCodeAt(9) !== interimDigit || whole.startsWith('101', 9);
      if (!this.isDone && ++this.#interim > mostInterim) return 'too many interim responses';
      at = end;
    }
    return undefined;
  }

  /** Index after the empty line that ends a head; more than `length` if the chunk does not end it. */
  #endOfHead(chunk: Buffer, start: number, length: number): number {
    if (this.#parts.length === 0) {
      const at = chunk.indexOf(emptyLine, start, 'latin1');
      if (at !== -1 && at + emptyLine.length <= length) return at + emptyLine.length;
    }
    for (let at = start; at < length; at += 1) {
      const octet = chunk[at] as number;
      if (octet === emptyLine.charCodeAt(this.#matched)) this.#matched += 1;
      else this.#matched = octet === carriageReturn ? 1 : 0;
      if (this.#matched === emptyLine.length) return at + 1;
    }
    return length + 1;
  }
}

const interimDigit = '1'.charCodeAt(0);

/** Names the fields that make the end of a body ambiguous: two codings, or a length beside one (RFC 9112 section 6.3). */
function framingFault(fields: FieldList): string | undefined {
  if (fieldValue(fields, 'transfer-encoding') === undefined) return undefined;
  const codings = fieldValues(fields, 'transfer-encoding').length;
  if (codings > 1) return 'two transfer codings';
  if (fieldValue(fields, 'content-length') !== undefined) return 'a length beside a coding';
  return undefined;
}

/** Whether a 101 is for the protocol that was asked for, and no other (RFC 9110 section 15.2.2). */
function isForWebSocket(fields: FieldList): boolean {
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
 * Whether another request may follow on the connection of this response. None may after a response without a body (HEAD, 204,
 * 304): an upstream may send a body all the same, at any time, and it would be read as the next answer.
 */
function maySucceed(isHeadRequest: boolean, status: number): boolean {
  return !isBodiless(isHeadRequest ? 'HEAD' : undefined, status);
}
