import { connect as connectTcp, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext } from 'node:tls';
import { endAlone, isolate } from '../lib/faults.ts';
import type { EngineOptions } from './engine.ts';
import { PoolMember } from './pool-state.ts';

/** Why there is no connection; `overloaded`: all were busy for too long, or too many wait. */
export interface ConnectionFault {
  readonly kind: 'unreachable' | 'connect-timeout' | 'overloaded';
  readonly cause: unknown;
}

/**
 * One connected socket to the upstream. It is not read as a stream: octets are read into pieces whose length the
 * engine chose.
 */
export abstract class PooledConnection extends PoolMember {
  readonly socket: Socket;
  /** The buffer for the next octets. */
  piece: Buffer;
  /** Milliseconds for which the upstream said that it keeps an idle connection, less a margin. */
  saidIdleTimeoutMs: number | undefined;

  constructor(socket: Socket, piece: Buffer) {
    super();
    this.socket = socket;
    this.piece = piece;
  }

  /**
   * `piece` begins with the `length` octets that were read. `false`: nothing more is read until the socket is resumed.
   */
  abstract read(length: number): boolean;
}

/**
 * Opens a connection to the upstream and calls back once, when it is usable: connected, and for https after the TLS
 * handshake. So the first byte of a request leaves in the turn in which it gets its socket. Returns a function that
 * gives the attempt up. `first`: the buffer for the first octets.
 */
export function openConnection<C extends PooledConnection>(
  options: EngineOptions,
  first: Buffer,
  adopt: (socket: Socket) => C,
  opened: (connection: C) => void,
  failed: (fault: ConnectionFault) => void,
): () => void {
  const { scheme } = options.upstream;
  let connection: C | undefined;
  let spokeFirst = false;
  const onread: OnReadOpts = {
    buffer: () => connection?.piece ?? first,
    callback(length) {
      spokeFirst = connection === undefined;
      try {
        return connection?.read(length) ?? true;
      } catch (fault) {
        endAlone(fault, () => socket.destroy());
        return true;
      }
    },
  };
  const socket = connectTo(options, onread, first.length);
  const ready = scheme === 'https' ? 'secureConnect' : 'connect';

  const fail = (kind: ConnectionFault['kind'], cause: unknown) => {
    release();
    socket.on('error', ignore);
    socket.destroy();
    isolate(() => failed({ kind, cause }));
  };
  const onError = (cause: Error) => fail('unreachable', cause);
  const onClose = () => fail('unreachable', new Error('closed while connecting'));
  const timer = setTimeout(() => fail('connect-timeout', undefined), options.connectTimeoutMs);
  const onReady = () => {
    release();
    try {
      connection = adopt(socket);
      // Bytes that the upstream sends unasked would be taken for the answer to the next request.
      if (spokeFirst) socket.destroy();
      opened(connection);
    } catch (fault) {
      endAlone(fault, () => socket.destroy());
      if (connection === undefined) fail('unreachable', fault);
    }
  };
  const release = () => {
    clearTimeout(timer);
    socket.off(ready, onReady).off('error', onError).off('close', onClose);
  };
  socket.once(ready, onReady).once('error', onError).once('close', onClose);
  return () => fail('unreachable', new Error('given up'));
}

function connectTo(options: EngineOptions, onread: OnReadOpts, pieceBytes: number): Socket {
  const { scheme, hostname, port } = options.upstream;
  const address = {
    host: hostname,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    // A socket that is held up reads no further ahead than a piece, where its pieces go through its own queue.
    highWaterMark: pieceBytes,
    onread,
  };
  return scheme === 'https'
    ? connectTls({ ...address, ALPNProtocols: ['http/1.1'], ...verification(options) })
    : connectTcp(address);
}

/**
 * What the certificate of the upstream is checked against. The name is always given: without it node's client would
 * take it from the `Host` field, and so from the client.
 */
export function verification({ upstream: { hostname }, tls }: Pick<EngineOptions, 'upstream' | 'tls'>) {
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

/** The TLS settings of engines; `use` applies to every connection that is opened afterwards. */
export class UpstreamTls {
  secureContext: NonNullable<EngineOptions['tls']>['secureContext'];
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

function ignore(): void {}
