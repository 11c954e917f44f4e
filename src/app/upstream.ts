import type { Config } from '../config/schema.ts';
import { parseUpstreamUrl, type UpstreamAddress } from '../config/values.ts';
import { InFlight } from '../server/in-flight.ts';
import type { DecisionCounts } from '../telemetry/decision-counts.ts';
import { createUpstreamClient } from '../upstream/client.ts';
import { type UpstreamCertificates, UpstreamTls } from '../upstream/connection.ts';
import { createForwarder } from '../upstream/forwarder.ts';
import type { UpstreamClient } from '../upstream/port.ts';
import { PublicReferences } from '../upstream/response-fields.ts';
import { createUpstreamComponent } from '../upstream/upstream-component.ts';
import type { ClockCheck } from './clock.ts';

/** Connections for shopward's own requests to the shop, besides `upstream.connections`. */
export const questionConnections = 64;

/** Milliseconds within which a client must read the end of a response. */
const writeStallTimeoutMs = 60_000;

/** Creates the client, the forwarder and the WebSocket forwarder. */
export function createForwarding(
  { upstream, limits, publicUrl }: Config,
  certificates: UpstreamCertificates | undefined,
  clock: ClockCheck,
  { shop }: Pick<DecisionCounts, 'shop'>,
) {
  const tls = upstream.tls && new UpstreamTls(upstream.tls.serverName);
  if (certificates !== undefined) tls?.use(certificates);
  const address = upstreamAddress(upstream.url);
  const createClient = (connections: number, sharePercent: number, forUpgrades = false) => {
    const client = createUpstreamClient({
      upstream: address,
      sharePercent,
      forUpgrades,
      connectTimeoutMs: upstream.connectTimeout,
      connections,
      queueLimit: limits.inFlight,
      queueTimeoutMs: upstream.connectTimeout,
      idleTimeoutMs: upstream.idleTimeout,
      connectionLifetimeMs: upstream.connectionLifetime,
      tls,
    });
    return address.path === '' ? client : belowPath(client, address.path);
  };
  const references = upstream.rewriteLocation
    ? new PublicReferences({ upstream: address, publicUrl })
    : undefined;
  const settings = {
    streamingBodies: new InFlight({
      limit: Math.max(1, Math.floor(upstream.connections / 2)),
      sharePercent: limits.clientShare,
    }),
    responseTimeoutMs: upstream.responseTimeout,
    bodyLimitBytes: limits.requestBody,
    bodyTimeoutMs: limits.bodyTimeout,
    writeStallTimeoutMs,
    references,
  };
  const client = createClient(upstream.connections, limits.clientShare);
  const forwarder = createForwarder({ ...settings, client, clock });
  return {
    forwarder,
    /** For WebSocket handshakes: each has a connection of its own, in addition to `upstream.connections`. */
    handshakes: createForwarder({ ...settings, client: createClient(limits.inFlight, 100, true) }),
    component: createUpstreamComponent(upstream.url, forwarder, shop),
    /** Replaces the authorities and the client certificate for new connections; no effect without `upstream.tls`. */
    useCertificates: (changed: UpstreamCertificates) => tls?.use(changed),
    /** A client with connections of its own, for shopward's own requests to the shop. */
    createQuestionClient: () => createClient(questionConnections, 100),
  };
}

/** Adds the path of `upstream.url` to every request. */
function belowPath(client: UpstreamClient, path: string): UpstreamClient {
  return {
    dispatch: (request, handler) => client.dispatch({ ...request, target: path + request.target }, handler),
    get inFlight() {
      return client.inFlight;
    },
    get queued() {
      return client.queued;
    },
    close: () => client.close(),
  };
}

/** Whether the shop gets the client's Host: a Spryker shop makes its links from it. */
export function forwardsHost({ upstream, request }: Config): boolean {
  return upstream.forwardHost ?? request.profile === 'spryker';
}

/** `host[:port]` of the upstream, for the Host field. */
export function upstreamHostOf(config: Config): string {
  return upstreamAddress(config.upstream.url).host;
}

/** @throws {TypeError} for a URL that the configuration's schema refuses. */
export function upstreamAddress(url: string): UpstreamAddress {
  const address = parseUpstreamUrl(url);
  if (address === undefined) throw new TypeError('upstream.url is no address');
  return address;
}
