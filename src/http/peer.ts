import { isIP } from 'node:net';
import proxyAddr from '@fastify/proxy-addr';

/** The other end of a connection; the same for every request on it, so it is worth making once a connection. */
export interface Peer {
  /** IP address, an IPv4 one in its dotted form; empty when the socket has none any more. */
  readonly address: string;
  readonly isTls: boolean;
  /** One of `trustedProxies`: its X-Forwarded-For, X-Forwarded-Proto and X-Request-Id are believed. */
  readonly isTrusted: boolean;
}

/** Whether an IP address is one of `trustedProxies`. */
export type TrustTest = (address: string) => boolean;

/** Compiles CIDRs, addresses and proxy-addr's names (`loopback`, …). Throws a TypeError that names the bad entry. */
export function compileTrust(trustedProxies: readonly string[]): TrustTest {
  const trusts = proxyAddr.compile([...trustedProxies]);
  return (address) => trusts(address, 0);
}

export function createPeer(remoteAddress: string | undefined, isTls: boolean, isTrusted: TrustTest): Peer {
  const address = readAddress(remoteAddress ?? '') ?? '';
  return { address, isTls, isTrusted: address !== '' && isTrusted(address) };
}

/** An IP address as it may stand in X-Forwarded-For, perhaps with a port; undefined for what is none. */
export function readAddress(sent: string): string | undefined {
  const address = sent.replace(bracketsAndPort, '$1$2').replace(mappedIpv4, '');
  return isIP(address) === 0 ? undefined : address;
}

const bracketsAndPort = /^(?:\[([^\]]*)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$/;
/** A dual-stack socket reports IPv4 peers so (RFC 4291 section 2.5.5.2). */
const mappedIpv4 = /^::ffff:(?=\d+\.)/i;
