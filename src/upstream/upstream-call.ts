import { type FieldList, fieldValue } from '../http/field-list.ts';
import { EndOfTick } from '../lib/end-of-tick.ts';
import { QueueMember } from '../lib/fair-queue.ts';
import { endAlone, isolate, isolated } from '../lib/faults.ts';
import type { Connection, ResponseReader } from './connection.ts';
import type {
  ResponseHead,
  UpstreamExchange,
  UpstreamFault,
  UpstreamHandler,
  UpstreamRequest,
} from './port.ts';
import { type BodySink, chunkedSink, plainSink, pumpBody, requestHead } from './request-framing.ts';
import type { ResponseParser } from './response-parser.ts';

/** The connections and the queue, as a call sees them. */
export interface CallConnections {
  /** Calls `onConnection` or `onConnectionFault`, unless the call leaves before. */
  enter(call: UpstreamCall): void;
  replace(call: UpstreamCall, connection: Connection): void;
  /** Called once. */
  leave(call: UpstreamCall, isReusable: boolean): void;
  faultOfWait(call: UpstreamCall): 'connect-timeout' | 'overloaded';
  readonly queueTimeoutMs: number;
}

/** Longest body, in bytes, that is appended to its head, so that both leave in one write. */
const copiedBytes = 4_096;

const requests = new EndOfTick<UpstreamCall>(
  (call) => call.send(),
  (call) => call.abort(),
);

/** One request and its response: waits for a connection, sends, retries once on a stale connection, ends. */
export class UpstreamCall extends QueueMember implements UpstreamExchange, ResponseReader {
  /** The connection that it has, or that is reserved for it. */
  connection: Connection | undefined;
  /** RFC 9110 section 9.2.2: safe and without a body, so it may be sent twice. */
  readonly isRepeatable: boolean;
  readonly #request: UpstreamRequest;
  readonly #handler: UpstreamHandler;
  readonly #connections: CallConnections;
  #waitTimer: NodeJS.Timeout | undefined;
  #stopBody: (() => void) | undefined;
  #hadConnection = false;
  #isSent = false;
  #isWritten = false;
  #isRetried = false;
  #answerBegun = false;
  #isOver = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler, connections: CallConnections) {
    super(request.sender);
    const { method, body } = request;
    this.isRepeatable = (method === 'GET' || method === 'HEAD') && body === null;
    this.#request = request;
    this.#handler = handler;
    this.#connections = connections;
  }

  start(): void {
    this.#watchBody();
    if (this.#isOver) return;
    this.#connections.enter(this);
    if (this.state !== 'waiting') return;
    const onTimeout = isolated(() => this.#fail(this.#connections.faultOfWait(this)));
    this.#waitTimer = setTimeout(onTimeout, this.#connections.queueTimeoutMs);
  }

  onConnection(connection: Connection): void {
    clearTimeout(this.#waitTimer);
    this.connection = connection;
    connection.assign(this);
    if (!this.#hadConnection) {
      this.#hadConnection = true;
      this.#guard(() => this.#handler.onConnection?.());
    }
    if (!this.#isOver) requests.add(this);
  }

  onConnectionFault(kind: 'overloaded' | 'unreachable' | 'connect-timeout', cause: unknown): void {
    this.#fail(kind, cause);
  }

  /** Called at the end of the tick in which it got the connection: the last moment to withhold the request. */
  send(): void {
    const { connection } = this;
    if (this.#isOver || connection?.phase !== 'busy') return;
    try {
      if (connection.socket.writable) this.#transmit(connection);
      else this.#loseUnsent(connection);
    } catch (cause) {
      this.#fail(this.#isSent ? 'internal' : 'not-sent', cause);
    }
  }

  resume(): void {
    if (!this.#isOver) this.connection?.socket.resume();
  }

  abort(cause?: unknown): void {
    this.#fail('aborted', cause);
  }

  onRead(response: ResponseParser, buffer: Buffer, release: (() => void) | undefined): void {
    this.#answerBegun = true;
    this.#guard(() => this.#take(response, buffer, release));
  }

  onClosed(response: ResponseParser | undefined, cause: unknown): void {
    const { connection } = this;
    if (!this.#isSent && connection !== undefined) {
      this.#loseUnsent(connection);
      return;
    }
    response?.finish();
    if (response?.isComplete === true) this.#complete(response);
    else this.#fail('reset', cause ?? response?.fault);
  }

  onThrown(cause: unknown): void {
    this.#fail('internal', cause);
  }

  #transmit(connection: Connection): void {
    const { body, method } = this.#request;
    const head = requestHead(this.#request);
    if (!this.#mayLeave()) return;
    connection.begin(method === 'HEAD', this.#request.isUpgrade);
    const { socket } = connection;
    if (body !== null && !Buffer.isBuffer(body)) {
      socket.write(head, 'latin1');
      this.#pump(body, body.length === undefined ? chunkedSink(socket) : plainSink(socket));
      return;
    }
    if (body === null) socket.write(head, 'latin1');
    else if (body.length <= copiedBytes) socket.write(head + body.toString('latin1'), 'latin1');
    else {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(body);
      socket.uncork();
    }
    this.#written();
  }

  #pump(body: Exclude<UpstreamRequest['body'], Buffer | null>, sink: BodySink): void {
    this.#stopBody = pumpBody(body.stream, body.length, sink, {
      onWritten: () => this.#written(),
      onBroken: (cause) => this.#fail('request-body', cause),
    });
  }

  /** Calls `maySend` in the tick of the first byte; `false`: the call has failed. */
  #mayLeave(): boolean {
    try {
      if (this.#request.maySend?.() === false) this.#fail('not-sent');
      else this.#isSent = !this.#isOver;
    } catch (cause) {
      this.#fail('not-sent', cause);
    }
    return this.#isSent && !this.#isOver;
  }

  #written(): void {
    this.#isWritten = true;
    const socket = this.connection?.socket;
    if (this.#handler.onSent === undefined || socket === undefined) return;
    const onTaken = isolated((broken: Error | null | undefined) => {
      if (!broken && !this.#isOver) this.#guard(() => this.#handler.onSent?.());
    });
    // The kernel may not have taken all of it yet.
    if (socket.writableLength === 0) onTaken(undefined);
    else socket.write('', onTaken);
  }

  /** Passes on the contents of the buffer in their order. The handler may end the call at any step. */
  #take(response: ResponseParser, buffer: Buffer, release: (() => void) | undefined): void {
    const handler = this.#handler;
    for (const { status, fields } of response.informational) {
      if (!this.#isOver) handler.onInformational?.(status, fields);
    }
    const { head, bodyStart, bodyEnd, isUpgrade } = response;
    if (head !== undefined && isUpgrade && !this.#isOver) {
      this.#upgrade(head, buffer.subarray(bodyStart, bodyEnd));
      return;
    }
    if (head !== undefined && !this.#isOver) this.#takeHead(head);
    let mayContinue = true;
    if (bodyEnd > bodyStart && !this.#isOver) {
      const body = buffer.subarray(bodyStart, bodyEnd);
      mayContinue = release === undefined ? handler.onData(Buffer.from(body)) : handler.onData(body, release);
    }
    if (this.#isOver) return;
    if (response.fault !== undefined) this.#fail('malformed', response.fault);
    else if (response.isComplete) this.#complete(response);
    else if (!mayContinue) this.connection?.socket.pause();
  }

  /** The connection counts as used until the socket is closed. */
  #upgrade({ fields }: ResponseHead, early: Buffer): void {
    const { connection } = this;
    if (connection === undefined) return;
    this.#isOver = true;
    const socket = connection.detach();
    const onClose = isolated(() => this.#connections.leave(this, false));
    socket.once('close', onClose);
    if (early.length > 0) socket.unshift(Buffer.from(early));
    try {
      this.#handler.onUpgrade?.(fields, socket);
    } catch (cause) {
      socket.destroy();
      this.#tell({ kind: 'internal', sent: true, answerBegun: true, cause });
    }
  }

  #takeHead({ status, reason, fields }: ResponseHead): void {
    const { connection } = this;
    if (connection !== undefined) {
      connection.saidIdleTimeoutMs = idleTimeoutSaid(fields) ?? connection.saidIdleTimeoutMs;
    }
    this.#handler.onHead(status, reason, fields);
  }

  /** A response that comes before the whole request was sent ends the connection: the rest will never be sent. */
  #complete(response: ResponseParser): void {
    const isSent = this.#isWritten && this.connection?.socket.writableLength === 0;
    this.#isOver = true;
    this.#detach(isSent && response.isReusable && this.#request.isUpgrade !== true);
    try {
      this.#handler.onEnd();
    } catch (cause) {
      this.#tell({ kind: 'internal', sent: true, answerBegun: true, cause });
    }
  }

  /** Nothing was sent, so any request may use another connection, unless the one that failed was new. */
  #loseUnsent(connection: Connection): void {
    if (connection.exchanges > 1) this.#replace(connection);
    else this.#fail('reset', connection.cause);
  }

  #replace(connection: Connection): void {
    connection.leave();
    this.#connections.replace(this, connection);
  }

  /** A reset before any byte of the answer may mean that a reused connection was stale: a repeatable request is sent once more. */
  #fail(kind: UpstreamFault['kind'], cause?: unknown): void {
    if (this.#isOver) return;
    const { connection } = this;
    const isStale = kind === 'reset' && connection !== undefined && connection.exchanges > 1;
    if (isStale && this.isRepeatable && !this.#answerBegun && !this.#isRetried) {
      this.#isRetried = true;
      try {
        this.#handler.onRetry?.();
        if (!this.#isOver) this.#replace(connection);
      } catch (thrown) {
        this.#end('internal', thrown);
      }
    } else this.#end(kind, cause);
  }

  #end(kind: UpstreamFault['kind'], cause: unknown): void {
    this.#isOver = true;
    this.#detach(false);
    this.#tell({ kind, sent: this.#isSent, answerBegun: this.#answerBegun, cause });
  }

  #tell(fault: UpstreamFault): void {
    const tell = () => this.#handler.onFault(fault);
    if (fault.kind === 'internal') endAlone(fault.cause, tell);
    else isolate(tell);
  }

  /** Stops reading the body, and gives the connection back. */
  #detach(isReusable: boolean): void {
    clearTimeout(this.#waitTimer);
    let isIntact = isReusable;
    isolate(
      () => {
        if (!this.#isWritten) this.#stopBody?.();
      },
      () => {
        isIntact = false;
      },
    );
    isolate(
      () => {
        this.connection?.leave();
        this.#connections.leave(this, isIntact);
      },
      () => this.connection?.socket.destroy(),
    );
  }

  #guard(act: () => void): void {
    try {
      act();
    } catch (cause) {
      this.#fail('internal', cause);
    }
  }

  /** The client's stream is read once there is a connection. It is never destroyed here. */
  #watchBody(): void {
    const { body } = this.#request;
    if (body === null || Buffer.isBuffer(body)) return;
    const { stream } = body;
    if (stream.destroyed && !stream.readableEnded) {
      this.#fail('request-body');
      return;
    }
    stream.once('error', (cause) => this.#fail('request-body', cause));
    stream.once('close', () => {
      if (!stream.readableEnded) this.#fail('request-body');
    });
  }
}

const timeoutSaid = /(?:^|[,; \t])timeout="?(\d{1,6})/i;
/** Milliseconds of margin: a request and the upstream's FIN may cross on the way. */
const marginMs = 1_000;
const longestIdleMs = 600_000;

/** Milliseconds of `Keep-Alive: timeout=5`, less a margin; undefined: the upstream does not say. Exported for its tests. */
export function idleTimeoutSaid(fields: FieldList): number | undefined {
  const said = fieldValue(fields, 'keep-alive');
  const seconds = said === undefined ? undefined : timeoutSaid.exec(said)?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds) * 1_000 - marginMs, longestIdleMs);
}
