import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import type { RejectionName } from '../http/rejection.ts';
import { endAlone } from '../lib/faults.ts';
import { ClientConnection, type Handled } from './client-connection.ts';
import { rejectionOfParserFault } from './client-error.ts';
import { ClientMessage } from './client-message.ts';
import type { ConnectionPlaces } from './connection-places.ts';

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
  /** Connections at once; default: any number. */
  readonly places?: ConnectionPlaces;
  /** What node could not read as a request is refused on its bare socket, which ends. */
  rejectMalformed(why: RejectionName, socket: Duplex): void;
  /**
   * One whole request head. `continueWanted` is set for `Expect: 100-continue`: nothing was sent yet, the interim
   * response is the handler's to give once every check has passed.
   */
  handle(incoming: IncomingMessage, response: ServerResponse): Handled | undefined;
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

/** Pipelined requests that wait at once, of all connections: 24 MiB of them. */
const maxWaiting = 16_384;

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
    // The canonical request checks Host itself, so that a refusal has our error body.
    requireHostHeader: false,
    rejectNonStandardBodyWrites: false,
    noDelay: true,
    // A request without a body has no stream that would have to be ended and destroyed.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: (incoming) => {
      const isMade = options.handleUpgrade !== undefined && isHandshake(incoming);
      if (!isMade) declined = incoming;
      return isMade;
    },
  };
  const server = options.tls ? https.createServer({ ...limits, ...options.tls }) : http.createServer(limits);
  server.maxHeadersCount = 1000;
  server.maxRequestsPerSocket = 0;
  let draining = false;

  const { places } = options;
  const perConnection = { ...options, waiting: { count: 0, most: maxWaiting } };
  /** By their peer, which the socket of TLS has in common with the one under it. */
  const handshakes = new Map<string, Socket>();
  const connectionOf = (socket: Duplex): ClientConnection => {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const connection = new ClientConnection(socket, perConnection);
    if (draining) connection.drain();
    connections.set(socket, connection);
    socket.once('close', () => {
      connections.delete(socket);
      places?.busy(socket);
    });
    return connection;
  };
  const take = (incoming: IncomingMessage, response: ServerResponse) => {
    // Node's parser stops behind it and drops what else came in the same read: whoever waits for an answer to that has to know.
    if (incoming === declined) response.shouldKeepAlive = false;
    declined = undefined;
    connectionOf(incoming.socket).take(incoming, response);
  };
  const ofRequest = (incoming: IncomingMessage) => incoming.socket;
  const accept = (socket: Socket) => {
    if (places?.admit(socket) === false) return;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    if (options.tls === undefined) connectionOf(socket);
    else {
      const peer = peerOf(socket);
      handshakes.set(peer, socket);
      socket.once('close', () => handshakes.delete(peer));
    }
  };
  const secure = (socket: TLSSocket) => {
    connectionOf(socket);
    const raw = handshakes.get(peerOf(socket));
    if (raw !== undefined) places?.busy(raw);
    places?.idle(socket);
  };
  const refuseBytes = guarded((socket: Duplex, fault: NodeJS.ErrnoException) => {
    // Without a finished handshake nothing can be said over TLS: what was written would wait, and the socket with it.
    const isUnfinished = options.tls !== undefined && !connections.has(socket);
    if (isUnfinished || fault.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else connectionOf(socket).breakOff(rejectionOfParserFault(fault.code));
  }, itself);
  server.on('connection', guarded(accept, itself));
  server.on('secureConnection', guarded(secure, itself));
  server.on('request', guarded(take, ofRequest));
  // Without these two node answers 100 and 417 by itself, before anybody was asked for a token.
  server.on('checkContinue', guarded(take, ofRequest));
  server.on('checkExpectation', guarded(take, ofRequest));
  server.on('clientError', (fault, socket) => refuseBytes(socket, fault));
  // CONNECT asks for a tunnel; there is none (RFC 9110 section 9.3.6). Node leaves the socket to us.
  const refuseTunnel = ({ socket }: IncomingMessage) => {
    socket.on('error', () => socket.destroy());
    connectionOf(socket).breakOff('method-not-allowed');
  };
  server.on('connect', guarded(refuseTunnel, ofRequest));
  const { handleUpgrade } = options;
  if (handleUpgrade) {
    const upgrade = (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on('error', () => socket.destroy());
      const connection = connectionOf(socket);
      if (!connection.isIdle) return connection.breakOff('bad-request');
      // It ends with its token or with either side, and makes room for nobody.
      places?.busy(socket);
      handleUpgrade(incoming, socket, head);
    };
    server.on('upgrade', guarded(upgrade, ofRequest));
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

/** RFC 6455 section 4.2.1: GET, HTTP/1.1, and no body, whose octets would be taken for what the client says then. */
function isHandshake({ method, headers, httpVersion }: IncomingMessage): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
  const isWebSocket = headers.upgrade?.toLowerCase() === 'websocket';
  return method === 'GET' && httpVersion === '1.1' && isWebSocket && !hasBody;
}

/**
 * What an event of one connection throws ends that connection: all others share the process. No list of arguments and no
 * closure is made for an event that goes well.
 */
function guarded<Subject, Second, Third>(
  act: (subject: Subject, second: Second, third: Third) => void,
  socketOf: (subject: NoInfer<Subject>) => Duplex,
): (subject: Subject, second?: Second, third?: Third) => void {
  return (subject, second, third) => {
    try {
      act(subject, second as Second, third as Third);
    } catch (fault) {
      const socket = socketOf(subject);
      endAlone(fault, () => socket.destroy());
    }
  };
}

function itself(socket: Duplex): Duplex {
  return socket;
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
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
