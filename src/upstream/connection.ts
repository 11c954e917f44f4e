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

/** One connected socket to the upstream. It is not read as a stream: pieces of a length that its engine chose come in. */
export abstract class PooledConnection extends PoolMember {
  readonly socket: Socket;
  /** Where the next octets are put. */
  piece: Buffer;
  /** Milliseconds for which the upstream said that it keeps an idle connection, less a margin. */
  saidIdleTimeoutMs: number | undefined;

  constructor(socket: Socket, piece: Buffer) {
    super();
    this.socket = socket;
    this.piece = piece;
  }

  /** `piece` begins with `length` octets that came in. `false`: no more is read until somebody resumes the socket. */
  abstract read(length: number): boolean;
}

/**
 * Opens a connection to the upstream and calls back once, when it is usable: connected, and for https past the TLS
 * handshake. Only such sockets are ever handed out, so that the first byte of a request leaves in the tick in which
 * its socket is assigned. Returns what gives the attempt up. `first`: where what is read is put.
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
      // What an upstream says before it was asked would be somebody's answer.
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
 * What the certificate of the upstream is held against. Its name is always said: what is left out is taken from the `Host`
 * field by node's client, and so by whoever wrote that.
 */
export function verification({ upstream: { hostname }, tls }: Pick<EngineOptions, 'upstream' | 'tls'>) {
  return { rejectUnauthorized: true, servername: serverName(hostname), ...tls };
}

/** RFC 6066 section 3: an address is no server name; the certificate has to name the address then. */
function serverName(hostname: string): string {
  return /[a-z]/i.test(hostname) && !hostname.includes(':') ? hostname : '';
}

/** PEM texts: authorities in place of the system's, and a client certificate with its key. */
export interface UpstreamCertificates {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** What engines are built with; `use` holds for every connection that is opened from then on. */
export class UpstreamTls {
  secureContext: NonNullable<EngineOptions['tls']>['secureContext'];
  declare readonly servername?: string;

  constructor(serverName: string | undefined) {
    if (serverName !== undefined) this.servername = serverName;
  }

  /** One context for all connections: made for each, its authorities would be read each time. */
  use({ ca, cert, key }: UpstreamCertificates): void {
    this.secureContext = createSecureContext({
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert, key }),
    });
  }
}

function ignore(): void {}
