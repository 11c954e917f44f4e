import type { ClientRequest, IncomingMessage } from 'node:http';
import { gatherPiecesOf } from '../../lib/gathered-pieces.ts';
import type { ConnectionPool } from '../connection-pool.ts';
import type { UpstreamHandler, UpstreamRequest } from '../engine.ts';
import { idleTimeoutSaid } from '../idle-timeout.ts';
import { PooledExchange } from '../pooled-exchange.ts';
import { type BodySink, pumpBody } from '../request-body-pump.ts';
import { fieldsToObject } from '../request-framing.ts';
import { framingFault, MalformedResponse, maySucceed } from '../response-framing.ts';
import type { ConnectionUser, HttpProxy3Connection } from './connection.ts';

export type HttpProxy3Pool = ConnectionPool<HttpProxy3Connection>;

/** Has http-proxy-3 build and send the request of an exchange. Throws where Node refuses to write it. */
export type SendThroughProxy = (exchange: HttpProxy3Exchange) => void;

/** http-proxy-3 looks whether the client has disconnected; shopward handles that itself, so the answer is always no. */
const neverDestroyed = { destroyed: false };

/**
 * One exchange, in the two roles that http-proxy-3 knows: the request that it copies (`method`, `url`, `headers`) and the
 * `buffer` whose body it pipes (`pipe`). It never sees the client's own request, so that it can only send what was decided on.
 */
export class HttpProxy3Exchange extends PooledExchange<HttpProxy3Connection> implements ConnectionUser {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string | string[]>;
  readonly httpVersionMajor = 1;
  readonly socket = neverDestroyed;

  readonly #sendThroughProxy: SendThroughProxy;
  #clientRequest: ClientRequest | undefined;
  #response: IncomingMessage | undefined;
  #stopBody: (() => void) | undefined;
  #bytesBefore = 0;
  /** Whether Node has released the socket in a reusable state. */
  #isFreed = false;

  constructor(
    request: UpstreamRequest,
    handler: UpstreamHandler,
    pool: HttpProxy3Pool,
    sendThroughProxy: SendThroughProxy,
  ) {
    super(request, handler, pool);
    this.#sendThroughProxy = sendThroughProxy;
    this.method = request.method;
    this.url = request.target;
    this.headers = fieldsToObject(request.fields);
    const length = Buffer.isBuffer(request.body) ? request.body.length : request.body?.length;
    if (length !== undefined) this.headers['content-length'] = String(length);
  }

  /** http-proxy-3 adds listeners to its request; this object emits nothing. */
  on(): this {
    return this;
  }

  /** Called by the agent, when Node's request is built and nothing of its head is written. */
  attach(clientRequest: ClientRequest): void {
    const { connection } = this;
    if (connection === undefined) return;
    this.#clientRequest = clientRequest;
    // http-proxy-3 drops a lone `?` at the end.
    if (clientRequest.path !== this.url) clientRequest.path = this.url;
    // No limit of fields: Node would ignore those after the 1000th, perhaps an ETag. The size of the head is limited already.
    clientRequest.maxHeadersCount = 0;
    this.#frame(clientRequest);
    const mine = (heard: () => void) => () => {
      if (clientRequest === this.#clientRequest) this.#guard(heard);
    };
    clientRequest.on(
      'socket',
      mine(() => this.#onSocket(clientRequest)),
    );
    clientRequest.on('information', (information) => this.#guard(() => this.#onInformation(information)));
    clientRequest.on('upgrade', (response, socket) => {
      socket.destroy();
      this.onMalformed(`unasked ${response.statusCode}`);
    });
    clientRequest.on(
      'close',
      mine(() => this.fail('reset')),
    );
    if (this.handler.onSent !== undefined) {
      clientRequest.on(
        'finish',
        mine(() => this.#onFinish()),
      );
    }
    clientRequest.onSocket(connection.socket);
  }

  /** Writes the exchange's body. A body that is still arriving is read once the head is sent. */
  pipe(clientRequest: ClientRequest): void {
    const { body } = this.request;
    if (body === null) clientRequest.end();
    else if (Buffer.isBuffer(body)) clientRequest.end(body);
  }

  onResponse(response: IncomingMessage): void {
    if (this.isOver) return;
    this.#guard(() => this.#take(response));
  }

  onError(cause: NodeJS.ErrnoException): void {
    this.fail(cause.code?.startsWith('HPE_') === true ? 'malformed' : 'reset', cause);
  }

  onMalformed(why: string): void {
    this.fail('malformed', new MalformedResponse(why));
  }

  onThrown(cause: unknown): void {
    this.fail('internal', cause);
  }

  get isAnswered(): boolean {
    return this.#response?.complete === true;
  }

  resume(): void {
    if (!this.isOver) this.#response?.resume();
  }

  protected get answerBegun(): boolean {
    const { connection } = this;
    return connection !== undefined && connection.socket.bytesRead > this.#bytesBefore;
  }

  protected transmit(connection: HttpProxy3Connection): void {
    this.#bytesBefore = connection.socket.bytesRead;
    connection.begin(this);
    this.#sendThroughProxy(this);
  }

  protected detach(): void {
    this.#stopBody?.();
    this.connection?.leave();
    const clientRequest = this.#clientRequest;
    this.#clientRequest = undefined;
    if (clientRequest === undefined || this.#isFreed) return;
    // Its later errors are ignored: by then this exchange may be on another connection.
    clientRequest.removeAllListeners('error').on('error', ignore).destroy();
  }

  /** Called in the tick of the first write: Node flushes right after this event. */
  #onSocket(clientRequest: ClientRequest): void {
    const { connection } = this;
    if (this.isOver || connection === undefined) return;
    if (!connection.socket.writable) this.loseUnsent(connection);
    else if (this.mayLeave()) this.#pump(clientRequest);
  }

  #pump(clientRequest: ClientRequest): void {
    const { body } = this.request;
    if (body === null || Buffer.isBuffer(body)) return;
    // At once: the upstream may respond to the head alone, and a client may wait for that.
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
    if (this.isOver) return;
    const fault = framingFault(information.rawHeaders);
    if (fault !== undefined) this.fail('malformed', new MalformedResponse(fault));
    else this.handler.onInformational?.(information.statusCode, information.rawHeaders);
  }

  #onFinish(): void {
    if (!this.isOver) this.handler.onSent?.();
  }

  #take(response: IncomingMessage): void {
    this.#response = response;
    const { connection } = this;
    if (connection !== undefined) {
      connection.saidIdleTimeoutMs = idleTimeoutSaid(response.rawHeaders) ?? connection.saidIdleTimeoutMs;
    }
    const status = response.statusCode ?? 0;
    const fault = status < 200 || status > 599 ? `status ${status}` : framingFault(response.rawHeaders);
    if (fault !== undefined) {
      this.fail('malformed', new MalformedResponse(fault));
      return;
    }
    gatherPiecesOf(response);
    response.on('error', ignore);
    response.on('data', (chunk: Buffer) => this.#guard(() => this.#onData(response, chunk)));
    response.on('end', () => this.#guard(() => this.#onEnd(response)));
    this.handler.onHead(status, response.statusMessage ?? '', response.rawHeaders);
  }

  #onData(response: IncomingMessage, chunk: Buffer): void {
    if (!this.isOver && !this.handler.onData(chunk)) response.pause();
  }

  #onEnd(response: IncomingMessage): void {
    if (this.isOver) return;
    if (!response.complete) {
      this.fail('reset');
      return;
    }
    const { statusCode = 0 } = response;
    // If the response came before the whole request was sent, the rest will never be: the connection cannot be used again.
    this.#isFreed = this.#clientRequest?.writableFinished === true && this.#clientRequest.shouldKeepAlive;
    this.succeed(this.#isFreed && maySucceed(this.method === 'HEAD', statusCode));
  }

  /** Runs a callback of Node's parser or socket, where an exception would end the process. */
  #guard(heard: () => void): void {
    try {
      heard();
    } catch (cause) {
      this.fail('internal', cause);
    }
  }

  /** Sets the framing itself: http-proxy-3 gives a DELETE or OPTIONS `content-length: 0`, and pipes its body all the same. */
  #frame(clientRequest: ClientRequest): void {
    const { body } = this.request;
    if (body === null) {
      if (clientRequest.hasHeader('content-length')) clientRequest.removeHeader('content-length');
    } else if (!Buffer.isBuffer(body) && body.length === undefined) {
      clientRequest.removeHeader('content-length');
      clientRequest.setHeader('Transfer-Encoding', 'chunked');
    }
  }
}

function ignore(): void {}
