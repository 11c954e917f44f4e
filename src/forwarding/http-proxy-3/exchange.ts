import type { ClientRequest, IncomingMessage } from 'node:http';
import type { ConnectionFault } from '../connection.ts';
import { type ConnectionPool, type ConnectionWaiter, idleTimeoutSaid } from '../connection-pool.ts';
import type { UpstreamExchange, UpstreamFault, UpstreamHandler, UpstreamRequest } from '../engine.ts';
import { type BodySink, pumpBody } from '../request-body-pump.ts';
import { fieldsToObject } from '../request-framing.ts';
import type { HttpProxy3Connection } from './connection.ts';

export type HttpProxy3Pool = ConnectionPool<HttpProxy3Connection>;

/** http-proxy-3 asks its request whether the client has gone; that question is ours, so the answer is always no. */
const neverDestroyed = { destroyed: false };

/**
 * One exchange, in the two shapes that http-proxy-3 handles: the request that it copies from (`method`, `url`,
 * `headers`) and the `buffer` that it pipes (`pipe`). It sees this object instead of the client's own request, so
 * nothing that was not decided on can pass.
 */
export class HttpProxy3Exchange implements UpstreamExchange, ConnectionWaiter<HttpProxy3Connection> {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string | string[]>;
  readonly httpVersionMajor = 1;
  readonly socket = neverDestroyed;
  isOver = false;

  readonly #request: UpstreamRequest;
  readonly #handler: UpstreamHandler;
  #clientRequest: ClientRequest | undefined;
  #connection: HttpProxy3Connection | undefined;
  #response: IncomingMessage | undefined;
  #stopBody: (() => void) | undefined;
  #bytesBefore = 0;
  #sent = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler) {
    this.#request = request;
    this.#handler = handler;
    this.method = request.method;
    this.url = request.target;
    this.headers = fieldsToObject(request.fields);
    const length = Buffer.isBuffer(request.body) ? request.body.length : request.body?.length;
    if (length !== undefined) this.headers['content-length'] = String(length);
  }

  /** http-proxy-3 listens to its request and response; theirs are no events of ours. */
  on(): this {
    return this;
  }

  /** The agent's turn: node's request is built, not a byte of its head is written, and no connection is assigned. */
  attach(clientRequest: ClientRequest, pool: HttpProxy3Pool): void {
    this.#clientRequest = clientRequest;
    // http-proxy-3 has dropped a lone `?` at the end.
    if (clientRequest.path !== this.url) clientRequest.path = this.url;
    // Every field was counted by the size of the head; a thousand and first one must not hide an ETag.
    clientRequest.maxHeadersCount = 0;
    this.#frame(clientRequest);
    clientRequest.on('socket', () => this.#onSocket());
    clientRequest.on('information', (information) => this.#onInformation(information));
    clientRequest.on('upgrade', (response, socket) => {
      socket.destroy();
      this.fail('malformed', new Error(`unasked ${response.statusCode}`));
    });
    clientRequest.on('close', () => {
      if (this.#response?.complete !== true) this.fail('reset');
    });
    if (this.#handler.onSent !== undefined) {
      clientRequest.on('finish', () => {
        if (!this.isOver) this.#handler.onSent?.();
      });
    }
    pool.acquire(this, this.#request.freshConnection === true);
  }

  /** Our own body, in place of the client's request; one that still arrives is read once there is a connection. */
  pipe(clientRequest: ClientRequest): void {
    const { body } = this.#request;
    if (body === null) clientRequest.end();
    else if (Buffer.isBuffer(body)) clientRequest.end(body);
    else {
      const { stream } = body;
      if (stream.destroyed && !stream.readableEnded) {
        this.fail('request-body');
        return;
      }
      stream.once('error', (cause) => this.fail('request-body', cause));
      stream.once('close', () => {
        if (!stream.readableEnded) this.fail('request-body');
      });
    }
  }

  onConnection(connection: HttpProxy3Connection): void {
    this.#connection = connection;
    this.#bytesBefore = connection.socket.bytesRead;
    this.#clientRequest?.onSocket(connection.socket);
  }

  onConnectionFault(fault: ConnectionFault): void {
    this.fail(fault.kind, fault.cause);
  }

  onResponse(response: IncomingMessage): void {
    if (this.isOver) return;
    this.#response = response;
    if (this.#connection !== undefined) {
      this.#connection.response = response;
      this.#connection.idleTimeoutMs = idleTimeoutSaid(response.rawHeaders) ?? this.#connection.idleTimeoutMs;
    }
    const status = response.statusCode ?? 0;
    if (status < 200 || status > 599) {
      this.fail('malformed', new Error(`status ${status}`));
      return;
    }
    this.#handler.onHead(status, response.statusMessage ?? '', response.rawHeaders);
    if (this.isOver) return;
    response.on('error', ignore);
    response.on('data', (chunk: Buffer) => {
      if (!this.isOver && !this.#handler.onData(chunk)) response.pause();
    });
    response.on('end', () => this.#onEnd());
  }

  onError(cause: NodeJS.ErrnoException): void {
    this.fail(cause.code?.startsWith('HPE_') === true ? 'malformed' : 'reset', cause);
  }

  resume(): void {
    if (!this.isOver) this.#response?.resume();
  }

  abort(): void {
    this.fail('aborted');
  }

  fail(kind: UpstreamFault['kind'], cause?: unknown): void {
    if (this.isOver) return;
    this.#leave();
    const connection = this.#connection;
    this.#handler.onFault({
      kind,
      sent: this.#sent,
      reusedConnection: connection !== undefined && connection.exchanges > 1,
      answerBegun: connection !== undefined && connection.socket.bytesRead > this.#bytesBefore,
      cause,
    });
  }

  /** Same tick as the first write: node flushes right behind this event. */
  #onSocket(): void {
    const socket = this.#connection?.socket;
    if (this.isOver || socket === undefined) return;
    if (socket.destroyed || !socket.writable) {
      this.fail('reset');
      return;
    }
    let may = true;
    let cause: unknown;
    try {
      may = this.#request.maySend?.() !== false;
    } catch (error) {
      may = false;
      cause = error;
    }
    if (!may) {
      this.fail('not-sent', cause);
      return;
    }
    this.#sent = true;
    this.#pump();
  }

  #pump(): void {
    const { body } = this.#request;
    const clientRequest = this.#clientRequest;
    if (clientRequest === undefined || body === null || Buffer.isBuffer(body)) return;
    // An upstream may answer the head alone, and a client may wait for that.
    clientRequest.flushHeaders();
    const sink: BodySink = {
      write(octets, taken) {
        clientRequest.write(octets, taken);
        return clientRequest.writableLength === 0;
      },
      end: () => void clientRequest.end(),
    };
    this.#stopBody = pumpBody(body.stream, body.length, sink, {
      onWritten() {},
      onBroken: (cause) => this.fail('request-body', cause),
    });
  }

  #onInformation(information: { statusCode: number; rawHeaders: string[] }): void {
    if (!this.isOver) this.#handler.onInformational?.(information.statusCode, information.rawHeaders);
  }

  #onEnd(): void {
    if (this.isOver) return;
    if (this.#response?.complete !== true) {
      this.fail('reset');
      return;
    }
    // An answer that came before the whole request had left: what is not sent yet never will be.
    if (this.#clientRequest?.writableFinished !== true) this.#leave();
    this.isOver = true;
    this.#handler.onEnd();
  }

  #leave(): void {
    this.isOver = true;
    const clientRequest = this.#clientRequest;
    if (clientRequest === undefined) return;
    this.#stopBody?.();
    clientRequest.destroy();
  }

  /** http-proxy-3 gives a DELETE or OPTIONS a `content-length: 0` and then pipes its body all the same (F4). */
  #frame(clientRequest: ClientRequest): void {
    const { body } = this.#request;
    if (body === null) {
      if (clientRequest.hasHeader('content-length')) clientRequest.removeHeader('content-length');
    } else if (!Buffer.isBuffer(body) && body.length === undefined) {
      clientRequest.removeHeader('content-length');
      clientRequest.setHeader('Transfer-Encoding', 'chunked');
    }
  }
}

function ignore(): void {}
