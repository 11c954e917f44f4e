import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type CanonicalRequest, requestTarget } from '../http/canonical-request.ts';
import { editFields, type FieldList, fieldValue } from '../http/field-list.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import { isolated } from '../lib/faults.ts';
import { gatherPiecesOf } from '../lib/gathered-pieces.ts';
import type { ClientOptions } from './port.ts';
import type { PublicReferences } from './public-references.ts';
import { fieldsToObject } from './request-framing.ts';
import { endToEndFields } from './response-fields.ts';
import { isBodiless } from './response-framing.ts';

export interface WebSocketOptions extends Pick<ClientOptions, 'upstream' | 'connectTimeoutMs' | 'tls'> {
  /** Milliseconds for the upstream to answer the handshake; 504 otherwise. */
  readonly handshakeTimeoutMs: number;
  /** Put before every target. Default: nothing. */
  readonly path?: string;
  /** Default: `Location` of a shop that declines stays as it is. */
  readonly references?: PublicReferences | undefined;
  /** Open WebSockets at a time; one more is 503. */
  readonly limit: number;
  /** Milliseconds for one end to take what is written to it, or to end when the other has. Default 30000. */
  readonly stallTimeoutMs?: number;
}

export interface WebSocketResult {
  /**
   * 101 once both sides are connected, the upstream's status if it declined, 0 if `rejection` says why not or the
   * client left.
   */
  readonly status: number;
  readonly rejection: Rejection | undefined;
  readonly cause: unknown;
}

/** The request target upstream. */
export function targetOf(request: CanonicalRequest, { path = '' }: WebSocketOptions): string {
  return path + requestTarget(request);
}

type EditFields = (fields: FieldList) => FieldList;
const unchanged: EditFields = (fields) => fields;

/** From the upstream request to the client's answer: both sides connected, declined, or refused. */
export class Handshake {
  readonly #request: CanonicalRequest;
  readonly #socket: Socket;
  readonly #options: WebSocketOptions;
  readonly #refuse: (rejection: Rejection) => void;
  readonly #resolve: (result: WebSocketResult) => void;
  readonly #edit: EditFields;
  #timer: NodeJS.Timeout | undefined;
  #upstream: ClientRequest | undefined;
  #upstreamSocket: Socket | undefined;
  #isTooLate = false;
  #isOver = false;

  constructor(
    request: CanonicalRequest,
    socket: Socket,
    options: WebSocketOptions,
    refuse: (rejection: Rejection) => void,
    resolve: (result: WebSocketResult) => void,
    edit: EditFields = unchanged,
  ) {
    this.#request = request;
    this.#socket = socket;
    this.#options = options;
    this.#refuse = refuse;
    this.#resolve = resolve;
    this.#edit = edit;
  }

  /** Node's request, before its head is written and before http-proxy-3 listens to it. */
  onRequest(upstream: ClientRequest): void {
    upstream.path = targetOf(this.#request, this.#options);
    // Ours and those of http-proxy-3: what one of them throws is a fault of this handshake alone.
    const { on } = upstream;
    // biome-ignore lint/suspicious/noExplicitAny: as node has it
    upstream.on = (event: string, listener: (...given: any[]) => void) =>
      on.call(upstream, event, isolated(listener, this.#onThrown));
    this.#timer = setTimeout(() => this.#onTimeout(upstream), this.#options.handshakeTimeoutMs);
    this.#upstream = upstream;
    upstream.once(
      'upgrade',
      isolated((response: IncomingMessage, upstreamSocket: Duplex) => {
        this.#upstreamSocket = upstreamSocket as Socket;
        this.#onUpgrade(response, upstreamSocket as Socket);
      }, this.#onThrown),
    );
    upstream.once(
      'response',
      isolated((response: IncomingMessage) => this.#onDeclined(response), this.#onThrown),
    );
  }

  /** During the handshake or later: nothing is certain any more of what the client would read. */
  readonly #onThrown = (): void => {
    clearTimeout(this.#timer);
    this.#socket.destroy();
    this.#upstreamSocket?.destroy();
    this.#upstream?.destroy();
    const rejection = reject('internal-error', { reason: 'websocket' });
    this.#end({ status: 0, rejection, cause: undefined });
  };

  onClientGone(): void {
    clearTimeout(this.#timer);
    this.#upstream?.destroy();
    this.#upstreamSocket?.destroySoon();
  }

  #onTimeout(upstream: ClientRequest): void {
    this.#isTooLate = true;
    // Declined, and not to its end; or a client that does not take its answer.
    if (this.#isOver) this.#socket.destroy();
    else upstream.destroy(new Error('no answer to the handshake'));
  }

  onFault(cause: unknown): void {
    if (this.#isOver) return;
    const isTimeout = this.#isTooLate || (cause as NodeJS.ErrnoException)?.code === 'ECONNECT_TIMEOUT';
    if (this.#socket.destroyed) {
      this.#end({ status: 0, rejection: undefined, cause });
      return;
    }
    const rejection = reject(isTimeout ? 'upstream-timeout' : 'upstream-unreachable', {
      reason: 'websocket',
    });
    try {
      this.#refuse(rejection);
    } finally {
      this.#end({ status: 0, rejection, cause });
    }
  }

  #onUpgrade(response: IncomingMessage, upstreamSocket: Socket): void {
    if (response.headers.upgrade?.toLowerCase() !== 'websocket') {
      const rejection = reject('upstream-invalid', { reason: 'websocket' });
      this.#end({ status: 0, rejection, cause: undefined });
      this.#socket.destroy();
      upstreamSocket.destroy();
      return;
    }
    upstreamSocket.on('error', () => this.#socket.destroy());
    this.#setFields(response, 101, {
      ...this.#ownSubprotocol(response),
      ...{ connection: 'Upgrade', upgrade: 'websocket' },
    });
    watchPair(this.#socket, upstreamSocket, this.#options.stallTimeoutMs ?? defaultStallTimeoutMs);
    clearTimeout(this.#timer);
    this.#end({ status: 101, rejection: undefined, cause: undefined });
  }

  /** A browser that has offered subprotocols gives up where none is chosen (RFC 6455 section 4.1, WHATWG WebSockets). */
  #ownSubprotocol({ headers }: IncomingMessage): Readonly<Record<string, string>> {
    const { offeredSubprotocol } = this.#request;
    const isChosen = headers['sec-websocket-protocol'] !== undefined;
    return offeredSubprotocol === undefined || isChosen
      ? {}
      : { 'sec-websocket-protocol': offeredSubprotocol };
  }

  /**
   * The upstream declined with an ordinary response. http-proxy-3 relays it with the fields that are left here, and
   * ends the socket; the handshake's deadline still applies. http-proxy-3 does not wait for a slow client; that is
   * done here.
   */
  #onDeclined(response: IncomingMessage): void {
    const status = response.statusCode ?? 0;
    this.#setFields(response, status, { connection: 'close' });
    if (isBodiless('GET', status)) hideFraming(response);
    const socket = this.#socket;
    response.on('error', () => socket.destroy());
    response.on('close', () => {
      if (!response.complete) socket.destroy();
    });
    gatherPiecesOf(response);
    response.on('data', () => {
      if (socket.writableNeedDrain) response.pause();
    });
    socket.on('drain', () => response.resume());
    this.#end({ status, rejection: undefined, cause: undefined });
  }

  /** Leaves http-proxy-3 the fields that may be forwarded, as for every other response, and our own `Connection`. */
  #setFields(response: IncomingMessage, status: number, own: Readonly<Record<string, string>>): void {
    const kept = endToEndFields(response.rawHeaders, status, this.#options.references, this.#request);
    const length = fieldValue(kept, 'content-length');
    // The shop's tags are for shopward alone; its own tags come with ordinary requests.
    const fields = editFields(kept, { etag: null });
    response.headers = {
      ...fieldsToObject(this.#edit(fields)),
      ...(length !== undefined && { 'content-length': length }),
      ...own,
    };
  }

  #end(result: WebSocketResult): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#resolve(result);
  }
}

const defaultStallTimeoutMs = 30_000;

/**
 * Ends both sides of an open WebSocket. http-proxy-3 waits for ever for a side that reads nothing; and once the client
 * is gone, it reads nothing more, and so does not notice that the upstream has gone, too. Silence is not an error.
 */
function watchPair(client: Socket, upstream: Socket, timeoutMs: number): void {
  let timer: NodeJS.Timeout | undefined;
  const held = new Set<Socket>();
  let isEnding = false;
  const endBoth = () => {
    client.destroy();
    upstream.destroy();
  };
  const watch = () => {
    timer ??= setTimeout(endBoth, timeoutMs);
  };
  for (const socket of [client, upstream]) {
    // The other side's pipe pauses it while that side takes nothing.
    socket.on('pause', () => {
      held.add(socket);
      watch();
    });
    socket.on('resume', () => {
      held.delete(socket);
      if (isEnding || held.size > 0) return;
      clearTimeout(timer);
      timer = undefined;
    });
    const ending = () => {
      isEnding = true;
      watch();
    };
    socket.once('end', ending).once('close', () => {
      ending();
      if (client.destroyed && upstream.destroyed) clearTimeout(timer);
    });
  }
}

/**
 * Where http-proxy-3 finds no length it writes chunks, and their end, also for a 204 or 304, which has neither (RFC 9112
 * section 6.3): its client would read the end for the next response. A length that is looked up, and not copied, stops that.
 */
function hideFraming({ headers }: IncomingMessage): void {
  const value = headers['content-length'] ?? '0';
  const enumerable = headers['content-length'] !== undefined;
  Object.defineProperty(headers, 'content-length', { value, enumerable });
}
