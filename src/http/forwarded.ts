import type { CanonicalRequest } from './canonical-request.ts';
import { canonicaliseHost } from './host.ts';
import { type Peer, readAddress, type TrustTest } from './peer.ts';
import type { FieldFacts } from './request-fields.ts';
import { isRequestId } from './request-id.ts';
import type { RequestRules } from './request-rules.ts';

/** Where a request came from, as far as it can be believed. */
export interface Origin extends Pick<CanonicalRequest, 'clientAddress' | 'requestId' | 'scheme'> {
  /** Value of X-Forwarded-For: the client, then the trusted proxies after it. */
  readonly forwardedFor: string;
  /** Value of X-Forwarded-Host. */
  readonly forwardedHost: string;
}

export function readOrigin(facts: FieldFacts, peer: Peer, host: string, rules: RequestRules): Origin {
  const hops = readHops(facts.forwardedFor, peer, rules.isTrusted);
  const believedHost = facts.forwardedHost === undefined ? undefined : canonicaliseHost(facts.forwardedHost);
  const { requestId } = facts;
  return {
    clientAddress: hops[0] ?? peer.address,
    forwardedFor: hops.join(', '),
    forwardedHost: believedHost ?? host,
    requestId: requestId !== undefined && isRequestId(requestId) ? requestId : rules.generateRequestId(),
    scheme: readScheme(facts.forwardedProto, peer.isTls),
  };
}

/**
 * From the client to the peer. X-Forwarded-For is read from its end, for as long as trusted proxies wrote it; what stands
 * before the first other address, or is no address, is hearsay and goes.
 */
function readHops(forwardedFor: string | undefined, peer: Peer, isTrusted: TrustTest): string[] {
  const hops = [peer.address];
  if (forwardedFor === undefined) return hops;
  for (const entry of forwardedFor.split(',').reverse()) {
    const address = readAddress(entry.trim());
    if (address === undefined) break;
    hops.unshift(address);
    if (!isTrusted(address)) break;
  }
  return hops;
}

/** A list of schemes says nothing certain; then the connection's own counts. */
function readScheme(forwardedProto: string | undefined, isTls: boolean): 'http' | 'https' {
  const believed = forwardedProto?.trim().toLowerCase();
  if (believed === 'http' || believed === 'https') return believed;
  return isTls ? 'https' : 'http';
}
