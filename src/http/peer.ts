import { randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import proxyAddr from '@fastify/proxy-addr';
import { copyText } from '../lib/text.ts';
import type { FieldFacts } from './request-fields.ts';
import { canonicaliseHost } from './request-target.ts';

/** The other end of a connection, the same for every request on it; made once for each connection. */
export interface Peer {
  /** IP address, an IPv4 one in its dotted form; empty when the socket has none any more. */
  readonly address: string;
  readonly isTls: boolean;
  /** One of `trustedProxies`: its X-Forwarded-For, X-Forwarded-Proto and X-Request-Id are believed. */
  readonly isTrusted: boolean;
  /** SHA-256 in base64url of the certificate of the client; undefined for a trusted proxy, whose certificate is not that of a client. */
  readonly certificate?: string | undefined;
}

type TrustTest = (address: string) => boolean;

/** Compiles CIDRs, addresses and proxy-addr's names (`loopback`, …). Throws a TypeError that names the bad entry. */
export function compileTrust(trustedProxies: readonly string[]): TrustTest {
  const trusts = proxyAddr.compile([...trustedProxies]);
  return (address) => trusts(address, 0);
}

export function createPeer(remoteAddress: string | undefined, isTls: boolean, isTrusted: TrustTest): Peer {
  const address = plainAddress(remoteAddress);
  return { address, isTls, isTrusted: address !== '' && isTrusted(address) };
}

/** The address of a connection, an IPv4 one in its dotted form; empty when the socket has none any more. */
export function plainAddress(remoteAddress: string | undefined): string {
  return readAddress(remoteAddress ?? '') ?? '';
}

/** An IP address as X-Forwarded-For may contain it, perhaps with a port; undefined for anything else. */
function readAddress(sent: string): string | undefined {
  const address = sent.replace(bracketsAndPort, '$1$2');
  const kind = isIP(address);
  if (kind === 0) return undefined;
  return kind === 6 ? (mappedIpv4(address) ?? address) : address;
}

const bracketsAndPort = /^(?:\[([^\]]*)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$/;
/** The IPv4 address that an IPv6 address maps (RFC 4291 section 2.5.5.2): a dual-stack socket reports IPv4 peers in this form. */
function mappedIpv4(address: string): string | undefined {
  const [, dotted, high = '', low = ''] = mapped.exec(address) ?? [];
  if (dotted !== undefined || high === '') return dotted;
  const bits = Number.parseInt(high, 16) * 0x1_0000 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.');
}

const mapped =
  /^(?:::|(?:0{1,4}:){1,4}:|(?:0{1,4}:){5})ffff:(?:(\d+\.\d+\.\d+\.\d+)|([\da-f]{1,4}):([\da-f]{1,4}))$/i;

/**
 * The client behind an address in the form of `plainAddress`: an IPv4 address, or the first 64 bits of an IPv6 address, since
 * its owner may choose the other bits (RFC 4291 section 2.5.4).
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [groups = [], tail] = address.split('::').map((part) => (part === '' ? [] : part.split(':')));
  if (tail !== undefined) {
    // An IPv4 address may stand for the last two groups.
    const written = groups.length + tail.length + (address.includes('.') ? 1 : 0);
    for (let i = written; i < 8; i += 1) groups.push('0');
    for (const group of tail) groups.push(group);
  }
  const network = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}

interface OriginRules {
  readonly isTrusted: TrustTest;
  readonly generateRequestId: () => string;
}

/** A trusted peer's X-Request-Id that may go to logs and the upstream. */
const plainId = /^[A-Za-z0-9._~:/+=@-]{1,128}$/;

export type Origin = ReturnType<typeof readOrigin>;

/** Where a request came from, as far as shopward believes it. */
export function readOrigin(facts: FieldFacts, peer: Peer, host: string, rules: OriginRules) {
  const hops = readHops(facts.forwardedFor, peer, rules.isTrusted);
  const believedHost = facts.forwardedHost === undefined ? undefined : canonicaliseHost(facts.forwardedHost);
  const { requestId } = facts;
  return {
    clientAddress: hops[0] ?? peer.address,
    forwardedFor: hops.join(', '),
    forwardedHost: believedHost ?? host,
    requestId: requestId !== undefined && plainId.test(requestId) ? requestId : rules.generateRequestId(),
    scheme: readScheme(facts.forwardedProto, peer.isTls),
  };
}

/**
 * The addresses from the client to the peer. X-Forwarded-For is read from its end, up to the first address that is not
 * trusted: that is the client. Entries before it, and before one that is not an address, could be invented and are dropped,
 * as are entries beyond `maxHops`.
 */
function readHops(forwardedFor: string | undefined, peer: Peer, isTrusted: TrustTest): string[] {
  const hops = [peer.address];
  if (forwardedFor === undefined) return hops;
  const isLong = forwardedFor.length > shortOctets;
  for (const entry of forwardedFor.split(',').slice(-maxHops).reverse()) {
    const found = readAddress(entry.trim());
    if (found === undefined) break;
    // The address is kept for long. A slice would keep the whole list, of which the client may have sent 60 KiB.
    const address = isLong ? copyText(found) : found;
    hops.push(address);
    if (!isTrusted(address)) break;
  }
  return hops.reverse();
}

/** A request that passed more proxies is in a loop. Each address costs some microseconds. */
const maxHops = 64;

/** Octets of the longest list that one of its addresses may keep in memory. */
const shortOctets = 256;

/** If there is more than one scheme, none is certain, and the scheme of the connection counts. */
function readScheme(forwardedProto: string | undefined, isTls: boolean): 'http' | 'https' {
  const believed = forwardedProto?.trim().toLowerCase();
  if (believed === 'http' || believed === 'https') return believed;
  return isTls ? 'https' : 'http';
}

/** For a request that brought none: 122 random bits; Node draws them in batches, so it is cheap. */
export const generateRequestId = (): string => randomUUID();
