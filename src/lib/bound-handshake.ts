import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { type ConnectionOptions, connect as connectTls, type SecureContext, TLSSocket } from 'node:tls';
import { isolated } from './faults.ts';
import { PerTick } from './per-tick.ts';

/** Octets that the other end may send before the end of its handshake; a certificate and its chain take some 6 KiB. Exported for its tests. */
export const maxHandshakeBytes = 16_384;

/**
 * The octets between a TCP socket and its TLS socket; `open` takes the limit away. OpenSSL verifies each signature of a chain,
 * also of unknown issuers. A signature with an RSA exponent as long as the modulus takes ten milliseconds, and no option of Node
 * bounds a chain. So these octets are counted, and each tick of the event loop reads as many parts as `perTick` allows.
 */
function boundHandshake(raw: Socket, perTick: PerTick): { readonly bounded: Duplex; open(): void } {
  let left = maxHandshakeBytes;
  let isWaiting = false;
  const destroy = () => raw.destroy();
  const resume = () => {
    if (!isWaiting) raw.resume();
  };
  const bounded = new Duplex({
    read: resume,
    write: (chunk, _, done) => void raw.write(chunk, done),
    final: (done) => void raw.end(done),
    destroy(fault, done) {
      raw.destroy();
      done(fault);
    },
  });
  const take = (chunk: Buffer) => {
    isWaiting = left !== Number.POSITIVE_INFINITY;
    if (isWaiting || !bounded.push(chunk)) raw.pause();
    if (isWaiting) perTick.run(() => pass(chunk));
  };
  /** Octets beyond the limit are read only if those before them end the handshake: then they are a request. */
  const pass = (chunk: Buffer) => {
    const next = chunk.subarray(0, left);
    if (bounded.destroyed || next.length === 0) return void destroy();
    left -= next.length;
    isWaiting = false;
    bounded.push(next);
    if (next.length < chunk.length) take(chunk.subarray(next.length));
    else resume();
  };
  const end = isolated(() => bounded.push(null), destroy);
  const close = isolated(() => bounded.destroy());
  raw.on('data', isolated(take, destroy)).once('end', end).on('error', destroy).once('close', close);
  return {
    bounded,
    open: () => {
      left = Number.POSITIVE_INFINITY;
    },
  };
}

/** Handshakes of clients, and with servers: neither delays the other. */
const [clientInEachTick, serverInEachTick] = [new PerTick(1), new PerTick(1)];
const maxHandshakeMs = 10_000;

/** Begins a handshake that asks for the client's certificate; calls `onEnd` if it succeeds. */
export function shakeHands(raw: Socket, secureContext: SecureContext, onEnd: (socket: TLSSocket) => void) {
  const { bounded, open } = boundHandshake(raw, clientInEachTick);
  const asksCertificate = { isServer: true, requestCert: true, rejectUnauthorized: false };
  const socket = new TLSSocket(bounded, { ...asksCertificate, secureContext, ALPNProtocols: ['http/1.1'] });
  const destroy = isolated(() => socket.destroy());
  const timer = setTimeout(destroy, maxHandshakeMs);
  const { remoteAddress, remotePort, localPort } = raw;
  raw.once('close', () => clearTimeout(timer));
  socket.on('error', destroy);
  const succeed = () => {
    clearTimeout(timer);
    open();
    socket.off('error', destroy);
    // Only this event reports octets that are no TLS record, since the socket has no `tls.Server`.
    socket.once('_tlsError', destroy);
    for (const [name, value] of Object.entries({ remoteAddress, remotePort, localPort }))
      Object.defineProperty(socket, name, { value });
    onEnd(socket);
  };
  socket.once('secure', isolated(succeed, destroy));
}

/** A TLS connection to a server whose certificate is not verified yet. */
export function connectBounded({ host = '', port = 443, ...options }: ConnectionOptions): TLSSocket {
  const raw = connect({ host, port });
  const { bounded, open } = boundHandshake(raw, serverInEachTick);
  const socket = connectTls({ ...options, host, socket: bounded });
  // Otherwise each fault of the connection would be ECONNRESET.
  const fail = isolated<Error>((fault) => socket.destroy(fault));
  raw.once('error', fail);
  return socket.once('secureConnect', isolated(open));
}
