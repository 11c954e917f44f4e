import { PassThrough } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { FieldList } from '../../request/field-list.ts';
import type { UpstreamExchange, UpstreamFault, UpstreamHandler, UpstreamRequest } from '../engine.ts';
import { isFramingField } from '../request-framing.ts';
import { NoConnection, type UndiciClientPool, type UndiciConnection } from './client-pool.ts';

/** One exchange as undici's dispatch handler: no streams, no parsed fields, no promise. */
export class UndiciExchange implements UpstreamExchange, Dispatcher.DispatchHandler {
  readonly #request: UpstreamRequest;
  readonly #handler: UpstreamHandler;
  readonly #pool: UndiciClientPool;
  readonly #connection: UndiciConnection;
  #controller: Dispatcher.DispatchController | undefined;
  /** Between the client's body and undici, which destroys what it was given when anything goes wrong. */
  #pipe: PassThrough | undefined;
  #bytesBefore = 0;
  #sent = false;
  #isWritten = false;
  #isOver = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler, pool: UndiciClientPool) {
    this.#request = request;
    this.#handler = handler;
    this.#pool = pool;
    this.#connection = pool.take(request.freshConnection === true);
  }

  start(): void {
    if (this.#pool.isClosing) {
      this.#fail('unreachable', new Error('shutting down'));
      return;
    }
    const { method, target, fields, body } = this.#request;
    const headers: string[] = [];
    for (let i = 0; i + 1 < fields.length; i += 2) {
      const name = fields[i] as string;
      if (!isFramingField(name)) headers.push(name, fields[i + 1] as string);
    }
    if (body !== null && !Buffer.isBuffer(body) && body.length !== undefined) {
      headers.push('content-length', String(body.length));
    }
    this.#connection.client.dispatch(
      {
        method: method as Dispatcher.HttpMethod,
        path: target,
        headers,
        reset: false,
        body: this.#bodyFor(body),
      },
      this,
    );
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    const { socket } = this.#connection;
    if (this.#isOver || socket === undefined) {
      controller.abort(abandoned);
      return;
    }
    this.#connection.exchanges += 1;
    this.#bytesBefore = socket.bytesRead;
    let may = true;
    let cause: unknown;
    try {
      may = this.#request.maySend?.() !== false;
    } catch (error) {
      may = false;
      cause = error;
    }
    if (may) this.#sent = true;
    else this.#fail('not-sent', cause);
  }

  onRequestSent(): void {
    this.#isWritten = true;
    const { socket } = this.#connection;
    if (this.#handler.onSent === undefined || socket === undefined) return;
    // Undici has written; the kernel may not have taken all of it yet.
    if (socket.writableLength === 0) this.#tellSent();
    else socket.write('', () => this.#tellSent());
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    reason?: string,
  ): void {
    if (this.#isOver) return;
    const fields = rawFields(controller.rawHeaders);
    if (status < 100 || status > 599 || status === 101)
      this.#fail('malformed', new Error(`status ${status}`));
    else if (status < 200) this.#handler.onInformational?.(status, fields);
    else this.#handler.onHead(status, reason ?? '', fields);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#isOver && !this.#handler.onData(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    if (this.#connection.broken !== undefined) {
      this.#fail('reset', this.#connection.broken);
      return;
    }
    this.#isOver = true;
    if (this.#isWritten && this.#connection.socket?.writableLength === 0) {
      this.#pool.give(this.#connection);
    } else {
      // An answer that came before the whole request had left: what is not sent yet never will be.
      this.#unpipe();
      this.#pool.drop(this.#connection);
    }
    this.#handler.onEnd();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (error instanceof NoConnection) this.#fail(error.fault.kind, error.fault.cause);
    else this.#fail(faultOf(error), error);
  }

  resume(): void {
    if (!this.#isOver) this.#controller?.resume();
  }

  abort(): void {
    this.#fail('aborted');
  }

  #bodyFor(body: UpstreamRequest['body']): Buffer | PassThrough | null {
    if (body === null || Buffer.isBuffer(body)) return body;
    const { stream } = body;
    const pipe = new PassThrough();
    this.#pipe = pipe;
    pipe.on('error', () => {});
    stream.once('error', (cause) => this.#fail('request-body', cause));
    stream.once('close', () => {
      if (!stream.readableEnded) this.#fail('request-body');
    });
    return stream.pipe(pipe);
  }

  #tellSent(): void {
    if (!this.#isOver) this.#handler.onSent?.();
  }

  #fail(kind: UpstreamFault['kind'], cause?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { socket, exchanges } = this.#connection;
    const answerBegun = this.#sent && socket !== undefined && socket.bytesRead > this.#bytesBefore;
    this.#unpipe();
    this.#controller?.abort(abandoned);
    this.#pool.drop(this.#connection);
    this.#handler.onFault({ kind, sent: this.#sent, reusedConnection: exchanges > 1, answerBegun, cause });
  }

  #unpipe(): void {
    const { body } = this.#request;
    if (this.#pipe === undefined || body === null || Buffer.isBuffer(body)) return;
    body.stream.unpipe(this.#pipe);
    this.#pipe.destroy();
  }
}

const abandoned = new Error('abandoned');

/** Undici's field lines are pairs of buffers, latin-1 on the wire. */
function rawFields(raw: Dispatcher.DispatchController['rawHeaders']): FieldList {
  if (!Array.isArray(raw)) return [];
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}

function faultOf(error: Error & { code?: string }): UpstreamFault['kind'] {
  const { code = '', name, message } = error;
  if (code.startsWith('UND_ERR_INVALID_ARG') || code === 'UND_ERR_NOT_SUPPORTED') return 'not-sent';
  if (code === 'UND_ERR_HEADERS_OVERFLOW' || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH')
    return 'malformed';
  if (name === 'HTTPParserError' || code.startsWith('HPE_')) return 'malformed';
  if (message === 'bad response' || message === 'bad upgrade') return 'malformed';
  if (code === 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH') return 'request-body';
  return 'reset';
}
