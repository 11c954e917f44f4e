import cluster from 'node:cluster';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { createServer, stoppedParser } from '../http/node-http.ts';
import { maxFields } from '../http/request-fields.ts';
import { shakeHands } from '../lib/bound-handshake.ts';
import { isolated } from '../lib/faults.ts';
import { noteProgress } from '../lib/per-tick.ts';
import { beginnings, ClientConnection, type ClientConnectionOptions } from './client-connection.ts';
import { readMalformedHead, rejectionOfParserFault } from './client-error.ts';
import { ClientMessage } from './client-message.ts';
import type { ConnectionSlots } from './in-flight.ts';
import { ReadQueue } from './read-queue.ts';

/** Exported for its tests. */
export interface ListenerOptions extends ClientConnectionOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly keepAliveTimeoutMs: number;
  /** Bytes of all request fields together, request line included; more gets 431. */
  readonly requestHeadersBytes: number;
  /** PEM texts. `requestCert`: clients are asked for a certificate, which may have any issuer. Default: false. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly requestCert?: boolean };
  /** The limit of connections. Default: no limit. */
  readonly slots?: ConnectionSlots;
  /** A WebSocket handshake; undefined: WebSockets are switched off. Any other upgrade is an ordinary request. */
  handleUpgrade?(incoming: IncomingMessage, socket: Duplex, head: Buffer): void;
}

interface DrainOptions {
  /**
   * Milliseconds in which requests are still accepted, also on new connections, and every answer says `Connection: close`,
   * so that balancers use other replicas. When a listener closes, connections that still wait to be accepted are reset.
   */
  readonly graceMs: number;
  /** Milliseconds after the grace in which requests in flight may finish; then every connection is cut. */
  readonly withinMs: number;
  /** Set before the first request is cut. */
  readonly cut?: { isDue: boolean };
}

/** Milliseconds for which a drain waits for the rest of a request head. */
const lateHeadMs = 5_000;

/** Node's defaults for time-outs and sizes, replaced by shopward's own. */
const fixedSettings = {
  IncomingMessage: ClientMessage,
  headersTimeout: 10_000,
  handshakeTimeout: 10_000,
  requestTimeout: 300_000,
  connectionsCheckingInterval: 1_000,
  insecureHTTPParser: false,
  // The canonical request checks Host, so that a refusal has shopward's error body.
  requireHostHeader: false,
  rejectNonStandardBodyWrites: false,
  // Tokens are bound to a certificate by its thumbprint (RFC 8705 section 3): who signed it does not matter.
  rejectUnauthorized: false,
  noDelay: true,
  // A request without a body then has no stream to end and destroy.
  optimizeEmptyRequests: true,
} satisfies https.ServerOptions<typeof ClientMessage>;

/** The public listener, with Node's own parser. It makes sure that every request ends. */
export class Listener {
  readonly server: Server;
  readonly #options: ListenerOptions;
  readonly #connections = new Map<Socket, ClientConnection>();
  readonly #reads = new ReadQueue(this.#connections);
  /** All accepted sockets, including those in the middle of a TLS handshake. */
  readonly #sockets = new Set<Socket>();
  /** A request for an upgrade that is declined; its `request` event comes in the same tick. */
  #declined: IncomingMessage | undefined;
  #draining = false;
  /** Set if clients are asked for a certificate. */
  #context: SecureContext | undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
    const settings = {
      ...fixedSettings,
      maxHeaderSize: options.requestHeadersBytes,
      keepAliveTimeout: options.keepAliveTimeoutMs,
      shouldUpgradeCallback: (incoming: IncomingMessage) => this.#shouldUpgrade(incoming),
    };
    this.server = options.tls ? https.createServer({ ...settings, ...options.tls }) : createServer(settings);
    // Node silently drops fields beyond its limit. This limit is one more than is accepted, to notice that there are too many.
    this.server.maxHeadersCount = maxFields + 1;
    this.server.maxRequestsPerSocket = 0;
    if (options.tls?.requestCert === true) {
      // Node's listener begins a handshake without bounds.
      this.server.removeAllListeners('connection');
      this.#context = contextOf(options.tls);
    }
    this.#hear();
  }

  listen(): Promise<AddressInfo> {
    const { server } = this;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      const { host, port } = this.#options;
      // Each worker has its own listening socket, so that a dead worker takes no connections with it.
      const reusePort = cluster.isWorker && process.platform === 'linux';
      server.listen({ host, port, reusePort }, () => {
        server.off('error', reject);
        // Errors while accepting, such as EMFILE: the connection is lost, the process goes on.
        server.on('error', () => {});
        resolve(server.address() as AddressInfo);
      });
    });
  }

  /** Replaces the certificate for new connections; without TLS it does nothing. */
  useCertificate(tls: NonNullable<ListenerOptions['tls']>): void {
    if (this.#context !== undefined) this.#context = contextOf(tls);
    else if (this.server instanceof https.Server) this.server.setSecureContext(tls);
  }

  /** Lets every connection end without losing a request; resolves when all have ended. */
  async drain({ graceMs, withinMs, cut }: DrainOptions): Promise<void> {
    this.#draining = true;
    for (const connection of this.#connections.values()) connection.drain();
    if (graceMs > 0) await sleep(graceMs);
    const closed = closeListening(this.server, this.#connections.values());
    const end = (isDue: (socket: Socket, connection: ClientConnection) => boolean) => {
      for (const [socket, connection] of this.#connections) if (isDue(socket, connection)) connection.end();
    };
    // Node has closed the connections between two requests. It would wait for ever for connections that never sent a
    // request, or only half of one.
    end((socket, connection) => !connection.isIdle || socket.bytesRead === 0);
    const endAll = isolated(() => end(() => true));
    const halves = setTimeout(endAll, lateHeadMs);
    const deadline = setTimeout(() => {
      if (cut !== undefined) cut.isDue = true;
      for (const socket of this.#sockets) socket.destroy();
    }, withinMs);
    await closed;
    this.#reads.close();
    clearTimeout(halves);
    clearTimeout(deadline);
  }

  #hear(): void {
    const { server } = this;
    const take = isolated(this.#take, destroySocketOf);
    const refuseBytes = isolated(this.#refuseBytes, destroy);
    server.on('connection', isolated(this.#accept, destroy));
    server.on('secureConnection', isolated(this.#secure, destroy));
    server.on('request', take);
    // Without these two listeners Node answers 100 and 417 itself, before the token is checked.
    server.on('checkContinue', take);
    server.on('checkExpectation', take);
    server.on('clientError', (fault, socket) => refuseBytes(socket, fault));
    server.on('connect', isolated(this.#refuseTunnel, destroySocketOf));
    const { handleUpgrade } = this.#options;
    if (handleUpgrade === undefined) return;
    const upgrade = (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on('error', () => socket.destroy());
      const connection = this.#connectionOf(socket);
      if (!connection.isIdle) return connection.breakOff('bad-request', { reason: 'pipelined-upgrade' });
      connection.upgrade();
      const handle = isolated(
        () => handleUpgrade(incoming, socket, head),
        () => socket.destroy(),
      );
      beginnings.run(handle);
    };
    server.on('upgrade', isolated(upgrade, destroySocketOf));
  }

  #shouldUpgrade(incoming: IncomingMessage): boolean {
    const isMade = this.#options.handleUpgrade !== undefined && isHandshake(incoming);
    if (!isMade) this.#declined = incoming;
    return isMade;
  }

  readonly #accept = (socket: Socket): void => {
    noteProgress();
    if (this.#options.slots?.admit(socket, this.#options.tls !== undefined) === false) return;
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    if (this.#options.tls === undefined) this.#connectionOf(socket);
    if (this.#context === undefined) return;
    shakeHands(socket, this.#context, (secure) => this.server.emit('secureConnection', secure));
  };

  readonly #secure = (socket: TLSSocket): void => {
    // The certificate of a client must not change, and each attempt would cost time.
    socket.disableRenegotiation();
    this.#reads.countRecords(socket);
    this.#connectionOf(socket);
  };

  readonly #take = (incoming: IncomingMessage, response: ServerResponse): void => {
    // Node drops the octets that followed in the same read, so the connection must close, or the client waits for an answer.
    if (incoming === this.#declined) response.shouldKeepAlive = false;
    this.#declined = undefined;
    this.#connectionOf(incoming.socket).take(incoming, response);
  };

  readonly #refuseBytes = (socket: Duplex, fault: NodeJS.ErrnoException): void => {
    if (fault.code === stoppedParser) {
      this.#connectionOf(socket).stopAsFull();
      return;
    }
    // Before the TLS handshake has ended nothing can be written: the answer would wait, and the socket with it.
    const isUnfinished = this.#options.tls !== undefined && !this.#connections.has(socket as Socket);
    if (isUnfinished || fault.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else this.#connectionOf(socket).breakOff(rejectionOfParserFault(fault.code), readMalformedHead(fault));
  };

  /**
   * CONNECT asks for a tunnel, which shopward does not offer (RFC 9110 section 9.3.6). Node leaves the socket to this
   * listener.
   */
  readonly #refuseTunnel = ({ socket, method }: IncomingMessage): void => {
    socket.on('error', () => socket.destroy());
    this.#connectionOf(socket).breakOff('method-not-allowed', { reason: 'tunnel', method });
  };

  readonly #connectionOf = (duplex: Duplex): ClientConnection => {
    const socket = duplex as Socket;
    const known = this.#connections.get(socket);
    if (known !== undefined) return known;
    const connection = new ClientConnection(socket, this.#options);
    if (this.#draining) connection.drain();
    this.#connections.set(socket, connection);
    this.#reads.join(socket);
    // Node's own listener, which comes before this one, reads the socket.
    const resumed = isolated(() => this.#reads.resumed(socket));
    socket.on('resume', resumed);
    const leave = isolated(() => {
      this.#connections.delete(socket);
      this.#reads.leave(socket);
    });
    socket.once('close', leave);
    return connection;
  };
}

/** As Node makes it for its own handshakes. */
function contextOf(tls: NonNullable<ListenerOptions['tls']>): SecureContext {
  return createSecureContext({ ...tls, honorCipherOrder: true, sessionIdContext: 'clients' });
}

/** RFC 6455 section 4.2.1: GET, HTTP/1.1, and no body, whose octets would be read as WebSocket frames. */
function isHandshake({ method, headers, httpVersion }: IncomingMessage): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
  const isWebSocket = headers.upgrade?.toLowerCase() === 'websocket';
  return method === 'GET' && httpVersion === '1.1' && isWebSocket && !hasBody;
}

/** An exception in a listener of one connection ends only that connection, because all others share the process. */
function destroy(socket: Duplex): void {
  socket.destroy();
}

function destroySocketOf({ socket }: IncomingMessage): void {
  socket.destroy();
}

/**
 * Stops accepting connections, and closes those between two requests. Node counts a response as sent as soon as its handler
 * has ended it, and would cut responses that clients are still reading: during the call these are marked as unsent.
 */
function closeListening(server: Server, connections: Iterable<ClientConnection>): Promise<void> {
  const unsent = [...connections].map((connection) => connection.unsent).filter((one) => one !== undefined);
  for (const response of unsent) response.finished = false;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  for (const response of unsent) response.finished = true;
  return closed;
}
