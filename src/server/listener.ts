import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RejectionName } from '../rejections/table.ts';
import { ClientConnection } from './client-connection.ts';
import { rejectionOfParserFault } from './client-error.ts';
import { ClientMessage } from './client-message.ts';

/** PEM texts. */
interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface ListenerOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly keepAliveTimeoutMs: number;
  /** Bytes of all request fields together, request line included; more is 431. */
  readonly requestHeadersBytes: number;
  readonly tls?: Certificate;
  /** What node could not read as a request is refused on its bare socket, which ends. */
  refuseUnread(why: RejectionName, socket: Duplex): void;
  /**
   * One whole request head. `continueWanted` is set for `Expect: 100-continue`: nothing was sent yet, the interim
   * response is the handler's to give once every check has passed.
   */
  handle(incoming: IncomingMessage, response: ServerResponse): void;
  /** Its response is over, or its connection. */
  ended?(): void;
  /** A WebSocket handshake, where they are switched on; any other upgrade is an ordinary request. */
  handleUpgrade?(incoming: IncomingMessage, socket: Duplex, head: Buffer): void;
}

export interface Listener {
  readonly server: http.Server;
  listen(): Promise<AddressInfo>;
  /** Another certificate for connections to come; of no effect without TLS. */
  useCertificate(tls: Certificate): void;
  /** Lets every connection end without losing a request; resolves when none is left. */
  drain(options: DrainOptions): Promise<void>;
}

export interface DrainOptions {
  /**
   * Milliseconds in which requests are still taken, on new connections too, and every answer says `Connection: close`:
   * balancers look elsewhere meanwhile. A connection that waits to be accepted when a listener closes is reset.
   */
  readonly graceMs: number;
  /** Milliseconds after that in which requests in flight may finish; then every connection is cut. */
  readonly withinMs: number;
}

/** How long a drain waits for the rest of a request head. */
const lateHeadMs = 5_000;

/** The public listener: node's own parser, every time-out and size set by hand, no request ever left without an end. */
export function createListener(options: ListenerOptions): Listener {
  /** Asks for an upgrade that is not made; its `request` event comes in the same turn. */
  let declined: IncomingMessage | undefined;
  const connections = new Map<Duplex, ClientConnection>();
  /** As they were accepted, those in the middle of a TLS handshake included. */
  const sockets = new Set<Socket>();
  const limits: https.ServerOptions<typeof ClientMessage> = {
    IncomingMessage: ClientMessage,
    maxHeaderSize: options.requestHeadersBytes,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    headersTimeout: 10_000,
    handshakeTimeout: 10_000,
    requestTimeout: 300_000,
    connectionsCheckingInterval: 1_000,
    insecureHTTPParser: false,
    // The canonical request judges Host itself, so that a refusal has our error body.
    requireHostHeader: false,
    rejectNonStandardBodyWrites: false,
    noDelay: true,
    // A request without a body has no stream that would have to be ended and destroyed.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: (incoming) => {
      const { method, headers } = incoming;
      const isMade =
        options.handleUpgrade !== undefined &&
        method === 'GET' &&
        headers.upgrade?.toLowerCase() === 'websocket';
      if (!isMade) declined = incoming;
      return isMade;
    },
  };
  const server = options.tls ? https.createServer({ ...limits, ...options.tls }) : http.createServer(limits);
  server.maxHeadersCount = 1000;
  server.maxRequestsPerSocket = 0;
  let draining = false;

  const connectionOf = (socket: Duplex): ClientConnection => {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const connection = new ClientConnection(socket, options);
    if (draining) connection.drain();
    connections.set(socket, connection);
    socket.once('close', () => connections.delete(socket));
    return connection;
  };
  const take = (incoming: IncomingMessage, response: ServerResponse) => {
    // Node's parser stops behind it and drops what else came in the same read: whoever waits for an answer to that has to know.
    if (incoming === declined) response.shouldKeepAlive = false;
    declined = undefined;
    connectionOf(incoming.socket).take(incoming, response);
  };
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on(options.tls ? 'secureConnection' : 'connection', connectionOf);
  server.on('request', take);
  // Without these two node answers 100 and 417 by itself, before anybody was asked for a token.
  server.on('checkContinue', take);
  server.on('checkExpectation', take);
  server.on('clientError', (fault: NodeJS.ErrnoException, socket) => {
    // Without a finished handshake nothing can be said over TLS: what was written would wait, and the socket with it.
    const isHandshake = options.tls !== undefined && !connections.has(socket);
    if (isHandshake || fault.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else connectionOf(socket).breakOff(rejectionOfParserFault(fault.code));
  });
  // CONNECT asks for a tunnel; there is none (RFC 9110 section 9.3.6). Node leaves the socket to us.
  server.on('connect', (_incoming, socket) => {
    socket.on('error', () => socket.destroy());
    connectionOf(socket).breakOff('method-not-allowed');
  });
  const { handleUpgrade } = options;
  if (handleUpgrade) {
    server.on('upgrade', (incoming, socket, head) => {
      socket.on('error', () => socket.destroy());
      const connection = connectionOf(socket);
      if (connection.isIdle) handleUpgrade(incoming, socket, head);
      else connection.breakOff('bad-request');
    });
  }

  return {
    server,
    listen: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(options.port, options.host, () => {
          server.off('error', reject);
          // EMFILE and the like while accepting: the connection is lost, the process is not.
          server.on('error', () => {});
          resolve(server.address() as AddressInfo);
        });
      }),
    useCertificate(tls) {
      if (server instanceof https.Server) server.setSecureContext(tls);
    },
    async drain({ graceMs, withinMs }) {
      draining = true;
      for (const connection of connections.values()) connection.drain();
      if (graceMs > 0) await sleep(graceMs);
      const closed = closeListening(server, connections.values());
      const end = (isDue: (socket: Duplex, connection: ClientConnection) => boolean) => {
        for (const [socket, connection] of connections) if (isDue(socket, connection)) connection.end();
      };
      // Node has ended those between two requests. It waits for ever for those that never sent one, or half of one.
      end((socket, connection) => !connection.isIdle || (socket as Socket).bytesRead === 0);
      const halves = setTimeout(() => end(() => true), lateHeadMs);
      const deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, withinMs);
      await closed;
      clearTimeout(halves);
      clearTimeout(deadline);
    },
  };
}

/**
 * Takes no more connections, and ends those between two requests. Node counts a response among the sent ones as soon as
 * it is handed over, and would cut those that their clients still read: it is told otherwise meanwhile.
 */
function closeListening(server: http.Server, connections: Iterable<ClientConnection>): Promise<void> {
  const unsent = [...connections].map((connection) => connection.unsent).filter((one) => one !== undefined);
  for (const response of unsent) response.finished = false;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  for (const response of unsent) response.finished = true;
  return closed;
}
