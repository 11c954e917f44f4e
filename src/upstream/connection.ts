import { type OnReadOpts, Socket, connect as connectTcp } from 'node:net';
import { connect as connectTls, createSecureContext } from 'node:tls';
import { EndOfTurn } from '../lib/end-of-turn.ts';
import { isolate, isolated } from '../lib/faults.ts';
import type { Linked, LinkedList } from '../lib/fair-queue.ts';
import { longestRead } from './llhttp.ts';
import type { ClientOptions } from './port.ts';
import { ResponseParser, responseHeadBytes } from './response-parser.ts';

/** Reads the response on a connection. */
export interface ResponseReader {
  /** With `release` the buffer belongs to the reader until it calls that; without it the next read overwrites the buffer. */
  onRead(response: ResponseParser, buffer: Buffer, release: (() => void) | undefined): void;
  /** The upstream has ended the connection; without `response` it broke. */
  onClosed(response: ResponseParser | undefined, cause: unknown): void;
  /** An exception while reading: it must end only this exchange. */
  onThrown(cause: unknown): void;
}

/** Receives the events of each connection: `onOpen` at most once, and `onClosed` exactly once as the last, never within the constructor. */
export interface ConnectionOwner {
  onOpen(connection: Connection): void;
  /** The upstream has ended an idle connection. */
  onEnd(connection: Connection): void;
  onClosed(connection: Connection): void;
}

/** Opens a socket; tests give another one. */
export type OpenSocket = (options: ClientOptions, onread: OnReadOpts) => Socket;

/** A body longer than this is passed on in its buffer instead of a copy; the next bytes are read into another buffer. */
const copiedBytes = longestRead / 2;

/** Chunks of a body that are parsed in one tick of the event loop; the rest waits for the next. */
const chunksPerTurn = 1_024;

const paused = new EndOfTurn<Connection>(
  (connection) => connection.continueReading(),
  ({ socket }) => socket.destroy(),
);

/**
 * A socket to the upstream, from the attempt to connect to its end. Its bytes go to the parser without a stream. It is
 * open when a request can be sent at once: connected, and for https after the TLS handshake.
 */
export class Connection implements Linked<Connection> {
  readonly socket: Socket;
  /** Kept by the client (docs/decisions/upstream-client.md). */
  phase: 'connecting' | 'busy' | 'idle' | 'ending' | 'closed' = 'connecting';
  /** Exchanges that it has begun, including the present one. */
  exchanges = 0;
  /** `performance.now()` from which on it takes no exchange. */
  retireAtMs = Number.POSITIVE_INFINITY;
  /** While it is idle: until when a request that must not be lost may use it, and until when any other may. */
  recentUntilMs = 0;
  idleUntilMs = 0;
  /** Milliseconds for which the upstream keeps it idle, as it said, less a margin. */
  saidIdleTimeoutMs: number | undefined;
  /** Why it could not be opened, or broke; `undefined` if it ended. */
  cause: unknown;
  isTimedOut = false;
  older: Connection | undefined;
  newer: Connection | undefined;
  list: LinkedList<Connection> | undefined;
  readonly #owner: ConnectionOwner;
  readonly #response = new ResponseParser(responseHeadBytes);
  #buffer = takeReadBuffer();
  #reader: ResponseReader | undefined;
  #isAsked = false;
  #isDetached = false;

  constructor(options: ClientOptions, owner: ConnectionOwner, open: OpenSocket = openSocket) {
    this.#owner = owner;
    const onread: OnReadOpts = {
      buffer: () => this.#buffer,
      callback: (length) => this.#read(length),
    };
    this.socket = openOrFail(options, onread, open);
    if (options.forUpgrades === true) this.socket.on('data', this.#onPiece);
    const timer = setTimeout(() => {
      this.isTimedOut = true;
      this.socket.destroy();
    }, options.connectTimeoutMs);
    const ready = options.upstream.scheme === 'https' ? 'secureConnect' : 'connect';
    const destroy = () => void this.socket.destroy();
    const onReady = isolated(() => {
      clearTimeout(timer);
      if (this.phase === 'connecting' && this.socket.writable) owner.onOpen(this);
    }, destroy);
    const onEnd = isolated(() => this.#end(), destroy);
    const onClose = isolated(() => {
      clearTimeout(timer);
      this.#close();
    });
    this.socket
      .once(ready, onReady)
      .on('end', onEnd)
      .once('close', onClose)
      .on('error', (cause) => {
        this.cause = cause;
      });
  }

  /** From now on `reader` gets the events of the connection. */
  assign(reader: ResponseReader): void {
    this.#reader = reader;
    this.#isAsked = false;
  }

  /** A request is sent: its response is read. Until then any byte closes the connection. */
  begin(isHeadRequest: boolean, asksForUpgrade = false): void {
    this.#isAsked = true;
    this.#response.begin(isHeadRequest, asksForUpgrade);
  }

  /** Hands the socket over after a 101 and stops reading it. */
  detach(): Socket {
    this.#reader = undefined;
    this.#isDetached = true;
    this.#response.free();
    returnReadBuffer(this.#buffer);
    return this.socket.off('data', this.#onPiece).pause();
  }

  /** The exchange has ended: bytes that arrive from now on close the connection. */
  leave(): void {
    this.#reader = undefined;
    // Node's TLS delivers what it has decrypted even while paused, so the response may end on a paused socket.
    if (this.socket.isPaused()) this.socket.resume();
  }

  /** Continues in the next tick, unless the reader itself has paused the socket. */
  continueReading(): void {
    if (!this.socket.isPaused()) this.socket.resume();
  }

  /** A socket that may be handed over after a 101 is read as a stream, whose chunks are copied to the buffer. */
  readonly #onPiece = isolated(
    (piece: Buffer) => {
      piece.copy(this.#buffer);
      if (!this.#read(piece.length)) this.socket.pause();
    },
    () => void this.socket.destroy(),
  );

  /** `false`: Node reads nothing more until the socket is resumed. */
  #read(length: number): boolean {
    const reader = this.#reader;
    const response = this.#response;
    if (reader === undefined || !this.#isAsked) {
      // Unasked bytes would be taken for the answer to the next request.
      this.socket.destroy();
      return true;
    }
    try {
      const buffer = this.#buffer;
      response.read(buffer, length);
      const isPassedOn = response.bodyEnd - response.bodyStart > copiedBytes;
      if (isPassedOn) this.#buffer = takeReadBuffer();
      reader.onRead(response, buffer, isPassedOn ? createRelease(buffer) : undefined);
    } catch (cause) {
      this.#throwTo(reader, cause);
    }
    if (response.bodyChunks <= chunksPerTurn) return true;
    paused.add(this);
    return false;
  }

  #tellClosed(response: ResponseParser | undefined): void {
    const reader = this.#reader;
    this.#reader = undefined;
    try {
      reader?.onClosed(response, this.cause);
    } catch (cause) {
      this.#throwTo(reader, cause);
    }
  }

  #throwTo(reader: ResponseReader | undefined, cause: unknown): void {
    this.socket.destroy();
    isolate(() => reader?.onThrown(cause));
  }

  #end(): void {
    this.#tellClosed(this.#response);
    this.#owner.onEnd(this);
  }

  #close(): void {
    this.#tellClosed(undefined);
    this.#response.free();
    if (!this.#isDetached) returnReadBuffer(this.#buffer);
    this.#owner.onClosed(this);
  }
}

/** If the socket cannot even be created, one that breaks with that cause. */
function openOrFail(options: ClientOptions, onread: OnReadOpts, open: OpenSocket): Socket {
  try {
    return open(options, onread);
  } catch (cause) {
    return new Socket().destroy(cause as Error);
  }
}

function openSocket(options: ClientOptions, onread: OnReadOpts): Socket {
  const { scheme, hostname, port } = options.upstream;
  const address = {
    host: hostname,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    // TLS keeps what it has decrypted while paused: no more than one buffer.
    highWaterMark: longestRead,
    ...(options.forUpgrades !== true && { onread }),
  };
  return scheme === 'https'
    ? connectTls({ ...address, ALPNProtocols: ['http/1.1'], ...verification(options) })
    : connectTcp(address);
}

/**
 * Read buffers for reuse. Each has 64 KiB outside the heap, which the garbage collector counts: with a new one for each
 * read it collected the whole heap after every two hundred bodies of 100 KB.
 */
const spareBuffers: Buffer[] = [];
const maxSpareBuffers = 64;

function takeReadBuffer(): Buffer {
  return spareBuffers.pop() ?? Buffer.allocUnsafeSlow(longestRead);
}

/** Only for a buffer that has no other user: another client's response may be read into it next. */
function returnReadBuffer(buffer: Buffer): void {
  if (spareBuffers.length < maxSpareBuffers) spareBuffers.push(buffer);
}

/** Returns `buffer` once, however often it is called: returned twice, it would be used for two clients at a time. */
function createRelease(buffer: Buffer): () => void {
  let owned: Buffer | undefined = buffer;
  return () => {
    if (owned !== undefined) returnReadBuffer(owned);
    owned = undefined;
  };
}

/**
 * What the certificate of the upstream is checked against. The name is always given: without it Node's client would
 * take it from the `Host` field, and so from the client.
 */
function verification({ upstream: { hostname }, tls }: ClientOptions) {
  return { rejectUnauthorized: true, servername: serverName(hostname), ...tls };
}

/** RFC 6066 section 3: an address is not a server name; the certificate has to contain the address. */
function serverName(hostname: string): string {
  return /[a-z]/i.test(hostname) && !hostname.includes(':') ? hostname : '';
}

/** PEM texts: authorities in place of the system's, and a client certificate with its key. */
export interface UpstreamCertificates {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** TLS settings of the client; `use` applies to every connection that is opened afterwards. */
export class UpstreamTls {
  secureContext: NonNullable<ClientOptions['tls']>['secureContext'];
  declare readonly servername?: string;

  constructor(serverName: string | undefined) {
    if (serverName !== undefined) this.servername = serverName;
  }

  /** One context for all connections: a context for each would parse the authorities each time. */
  use({ ca, cert, key }: UpstreamCertificates): void {
    this.secureContext = createSecureContext({
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert, key }),
    });
  }
}
