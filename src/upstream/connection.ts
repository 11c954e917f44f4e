import { connect as connectTcp, type OnReadOpts, Socket } from 'node:net';
import { connect as connectTls, createSecureContext } from 'node:tls';
import { EndOfTick } from '../lib/end-of-tick.ts';
import type { Linked, LinkedList } from '../lib/fair-queue.ts';
import { isolate, isolated } from '../lib/faults.ts';
import { longestRead } from './llhttp.ts';
import type { ClientOptions } from './port.ts';
import { ResponseParser, responseHeadBytes } from './response-parser.ts';

/** Reads the response on a connection. */
export interface ResponseReader {
  /** With `release` the buffer belongs to the reader until it calls `release`; otherwise the next read overwrites the buffer. */
  onRead(response: ResponseParser, buffer: Buffer, release: (() => void) | undefined): void;
  /** The connection is closed. `response`: the upstream ended it; undefined: it broke, or was destroyed here. */
  onClosed(response: ResponseParser | undefined, cause: unknown): void;
  /** An exception while reading: it must end only this exchange. */
  onThrown(cause: unknown): void;
}

/** Receives the events of each connection: `onOpen` at most once, `onClosed` once and last. The constructor calls none. */
export interface ConnectionOwner {
  onOpen(connection: Connection): void;
  /** The upstream has ended the connection. */
  onEnd(connection: Connection): void;
  onClosed(connection: Connection): void;
}

/** Opens a socket; tests replace it. */
export type OpenSocket = (options: ClientOptions, onread: OnReadOpts) => Socket;

/** If one read brings more body bytes than this, the buffer itself is passed on, not a copy, and the next read uses another. */
const copiedBytes = longestRead / 2;

/** If one read brings more chunks of a body than this, the next read waits for the next tick of the event loop. */
const chunksPerTick = 1_024;

const paused = new EndOfTick<Connection>(
  (connection) => connection.continueReading(),
  ({ socket }) => socket.destroy(),
);

/**
 * A socket to the upstream, from the attempt to connect until it is closed. Its bytes go to the parser without a stream.
 * It is open once a request can be sent: after the TCP connection, and for https after the TLS handshake.
 */
export class Connection implements Linked<Connection> {
  readonly socket: Socket;
  /** Kept by the client (docs/decisions/upstream-client.md). */
  phase: 'connecting' | 'busy' | 'idle' | 'ending' | 'closed' = 'connecting';
  /** Exchanges begun on this connection, the current one included. */
  exchanges = 0;
  /** It takes no new exchange after this time (`performance.now()`). */
  retireAtMs = Number.POSITIVE_INFINITY;
  /** Until when a request that must not be lost may use the idle connection, and until when any other may. */
  recentUntilMs = 0;
  idleUntilMs = 0;
  /** How long the upstream keeps it open while idle, by its own `Keep-Alive` field, less a margin. */
  saidIdleTimeoutMs: number | undefined;
  /** Why it could not be opened, or why it broke; undefined if it was closed without an error. */
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
  /** This connection has paused the socket after a long read; the reader has not. */
  #hasPaused = false;

  constructor(options: ClientOptions, owner: ConnectionOwner, open: OpenSocket = openSocket) {
    this.#owner = owner;
    const onread: OnReadOpts = { buffer: () => this.#buffer, callback: (length) => this.#read(length) };
    this.socket = openOrFail(options, onread, open);
    if (options.forUpgrades === true) this.socket.on('data', this.#onChunk);
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

  /** Call it as a request is sent. Until then any byte from the upstream closes the connection. */
  begin(isHeadRequest: boolean, asksForUpgrade = false): void {
    this.#isAsked = true;
    this.#response.begin(isHeadRequest, asksForUpgrade);
  }

  /** Stops reading and returns the socket, which belongs to the caller after a 101. */
  detach(): Socket {
    this.#reader = undefined;
    this.#isDetached = true;
    this.#response.free();
    returnReadBuffer(this.#buffer);
    return this.socket.off('data', this.#onChunk).pause();
  }

  /** The exchange has ended. From now on any byte from the upstream closes the connection. */
  leave(): void {
    this.#reader = undefined;
    // Node's TLS delivers bytes that it has decrypted even while paused, so a response may end on a paused socket.
    if (this.socket.isPaused()) this.socket.resume();
  }

  /** Resumes after a long read, unless the reader itself has paused the socket. */
  continueReading(): void {
    if (this.#hasPaused || !this.socket.isPaused()) this.socket.resume();
    this.#hasPaused = false;
  }

  /** A socket that a 101 may hand over is read as a stream; its chunks are copied to the buffer. */
  readonly #onChunk = isolated(
    (chunk: Buffer) => {
      this.#hasPaused = false;
      chunk.copy(this.#buffer);
      if (this.#read(chunk.length) || this.socket.isPaused()) return;
      this.#hasPaused = true;
      this.socket.pause();
    },
    () => void this.socket.destroy(),
  );

  /** `false`: Node reads nothing more until the socket is resumed. */
  #read(length: number): boolean {
    const reader = this.#reader;
    const response = this.#response;
    if (reader === undefined || !this.#isAsked) {
      // Bytes outside an exchange would be read as the response to the next request.
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
    if (response.bodyChunks <= chunksPerTick) return true;
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

/** If no socket can be created, returns one that is destroyed with that error. */
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
    // Bounds the bytes that TLS decrypts while paused: one buffer.
    highWaterMark: longestRead,
    ...(options.forUpgrades !== true && { onread }),
  };
  return scheme === 'https'
    ? connectTls({ ...address, ALPNProtocols: ['http/1.1'], ...verification(options) })
    : connectTcp(address);
}

/**
 * Read buffers for reuse, 64 KiB each. The garbage collector counts these bytes although they are outside the heap, so a
 * new buffer for each read would cause frequent full collections.
 */
const spareBuffers: Buffer[] = [];
const maxSpareBuffers = 64;

function takeReadBuffer(): Buffer {
  return spareBuffers.pop() ?? Buffer.allocUnsafeSlow(longestRead);
}

/** The buffer must have no other user: the next response, perhaps for another client, overwrites it. */
function returnReadBuffer(buffer: Buffer): void {
  if (spareBuffers.length < maxSpareBuffers) spareBuffers.push(buffer);
}

/** The function returns `buffer` at its first call only: a buffer returned twice would serve two clients at once. */
function createRelease(buffer: Buffer): () => void {
  let owned: Buffer | undefined = buffer;
  return () => {
    if (owned !== undefined) returnReadBuffer(owned);
    owned = undefined;
  };
}

/**
 * How the certificate of the upstream is checked. `servername` is set because `tls.connect` sends no SNI without it; it is
 * the configured name, never one from a client's `Host`.
 */
function verification({ upstream: { hostname }, tls }: ClientOptions) {
  return { rejectUnauthorized: true, servername: serverName(hostname), ...tls };
}

/** RFC 6066 section 3: an address is not a server name; the certificate has to contain the address. */
function serverName(hostname: string): string {
  return /[a-z]/i.test(hostname) && !hostname.includes(':') ? hostname : '';
}

/** PEM texts: `ca` replaces the system's authorities; `cert` and `key` are a client certificate. */
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
