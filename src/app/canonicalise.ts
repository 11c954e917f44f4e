import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Config } from '../config/schema.ts';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { buildRequestRules, canonicaliseRequest } from '../http/canonicalise-request.ts';
import { createPeer, type Peer } from '../http/peer.ts';
import type { Rejection } from '../http/rejection.ts';

export type Canonicalise = (incoming: IncomingMessage) => CanonicalRequest | Rejection;

/** The one way from a message of node's to the request that is decided on; who is at the other end is found out once. */
export function createCanonicalise(config: Config, upstreamHost: string): Canonicalise {
  const { upstream, request, limits } = config;
  const rules = buildRequestRules({
    upstreamHost,
    forwardHost: upstream.forwardHost,
    trustedProxies: config.trustedProxies,
    trustedFields: config.trustedFields,
    encodedSlash: request.encodedSlash,
    requestBodyBytes: limits.requestBody,
    viaName: upstream.via ? 'shopward' : undefined,
    webSocket: upstream.webSocket,
  });
  const peers = new WeakMap<Socket, Peer>();
  const peerOf = (socket: Socket): Peer => {
    const known = peers.get(socket);
    if (known !== undefined) return known;
    const peer = createPeer(socket.remoteAddress, socket instanceof TLSSocket, rules.isTrusted);
    peers.set(socket, peer);
    return peer;
  };
  return (incoming) => canonicaliseRequest(incoming, peerOf(incoming.socket), rules);
}
