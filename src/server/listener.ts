import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Rejections } from '../rejections/table.ts';
import { answerClientError, answerConnect } from './client-error.ts';

export interface ListenerOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly keepAliveTimeoutMs: number;
  /** Bytes of all request fields together, request line included; more is 431. */
  readonly requestHeadersBytes: number;
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer };
  readonly rejections: Rejections;
  /**
   * One whole request head. `continueWanted` is set for `Expect: 100-continue`: nothing was sent yet, the interim
   * response is the handler's to give once every check has passed.
   */
  handle(incoming: IncomingMessage, response: ServerResponse): void;
  /** A WebSocket handshake, where they are switched on; any other upgrade is an ordinary request. */
  handleUpgrade?(incoming: IncomingMessage, socket: Duplex, head: Buffer): void;
}

export interface Listener {
  readonly server: http.Server;
  listen(): Promise<AddressInfo>;
  /** Stops accepting, lets what is in flight finish within `withinMs`, then ends every connection. */
  drain(withinMs: number): Promise<void>;
}

/** Requests that one connection may have in flight by pipelining (RFC 9112 section 9.3.2); more are not read on. */
const maxPipelined = 16;

/** The public listener: node's own parser, every time-out and size set by hand, no request ever left without an end. */
export function createListener(options: ListenerOptions): Listener {
  const inFlight = new WeakMap<Socket, number>();
  const limits: https.ServerOptions = {
    maxHeaderSize: options.requestHeadersBytes,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    headersTimeout: 10_000,
    requestTimeout: 300_000,
    connectionsCheckingInterval: 1_000,
    insecureHTTPParser: false,
    // The canonical request judges Host itself, so that a refusal has our error body.
    requireHostHeader: false,
    rejectNonStandardBodyWrites: false,
    noDelay: true,
    shouldUpgradeCallback: ({ method, headers }) =>
      options.handleUpgrade !== undefined &&
      method === 'GET' &&
      headers.upgrade?.toLowerCase() === 'websocket',
  };
  const server = options.tls ? https.createServer({ ...limits, ...options.tls }) : http.createServer(limits);
  server.maxHeadersCount = 1000;
  server.maxRequestsPerSocket = 0;
  let draining = false;

  const take = (incoming: IncomingMessage, response: ServerResponse) => {
    const { socket } = incoming;
    const count = (inFlight.get(socket) ?? 0) + 1;
    inFlight.set(socket, count);
    if (count >= maxPipelined) socket.pause();
    response.once('close', () => {
      const left = (inFlight.get(socket) ?? 1) - 1;
      inFlight.set(socket, left);
      if (left === maxPipelined - 1) socket.resume();
    });
    if (draining) response.shouldKeepAlive = false;
    options.handle(incoming, response);
  };
  server.on('request', take);
  // Without these two node answers 100 and 417 by itself, before anybody was asked for a token.
  server.on('checkContinue', take);
  server.on('checkExpectation', take);
  server.on('connect', (_incoming, socket) => answerConnect(socket, options.rejections));
  server.on('clientError', (fault, socket) => {
    answerClientError(fault, socket, (inFlight.get(socket as Socket) ?? 0) > 0, options.rejections);
  });
  if (options.handleUpgrade) server.on('upgrade', options.handleUpgrade);

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
    drain: async (withinMs) => {
      draining = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const deadline = setTimeout(() => server.closeAllConnections(), withinMs);
      await closed;
      clearTimeout(deadline);
    },
  };
}
