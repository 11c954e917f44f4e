import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { identityFieldNames } from '../access/identity-fields.ts';
import { acceptsCertificates } from '../access/token-kind.ts';
import { createAuthorizePipeline } from '../authorize/pipeline.ts';
import { readQuestion } from '../authorize/question.ts';
import type { Config } from '../config/schema.ts';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { buildRequestRules, canonicaliseRequest } from '../http/canonicalise-request.ts';
import { compileTrust, createPeer, type Peer, networkOf } from '../http/peer.ts';
import { buildRejections, type Rejection, reject } from '../http/rejection.ts';
import { RejectionBodies } from '../http/rejection-bodies.ts';
import { type Component, counter, gauge, healthOf, type MetricSpec } from '../lib/component.ts';
import { Pipeline, type PipelineDependencies } from '../proxy/pipeline.ts';
import { createRejectMalformed } from '../server/client-error.ts';
import { Exchange, type ExchangeContext } from '../server/exchange.ts';
import { ConnectionSlots, InFlight } from '../server/in-flight.ts';
import { Listener } from '../server/listener.ts';
import { createCors, createOwnFields } from '../server/own-fields.ts';
import { createUpgradeHandler, OpenWebSockets, refuseOtherThanHandshake } from '../server/upgrade.ts';
import { createRedactPath, tokenWords } from '../telemetry/exchange-record.ts';
import type { Log } from '../telemetry/log.ts';
import { readWholeBody, sendContinue } from '../upstream/request-body.ts';
import { largestBody } from './filter-definition.ts';
import type { Secrets } from './secrets.ts';
import { type createForwarding, forwardsHost, questionConnections, upstreamHostOf } from './upstream.ts';

interface PublicPortInput extends Pick<PipelineDependencies, 'rules' | 'authenticate'> {
  readonly config: Config;
  readonly forwarding: Pick<ReturnType<typeof createForwarding>, 'forwarder' | 'handshakes'>;
  readonly tls: Secrets['tls'];
  /** Called once for each request, whatever its outcome. */
  readonly record: ExchangeContext['record'];
  readonly log: Log;
}

export type PublicPort = ReturnType<typeof createPublicPort>;

/** The listeners, with one pipeline for requests and WebSocket handshakes. */
export function createPublicPort(input: PublicPortInput) {
  const { config, tls } = input;
  const { listen, limits } = config;
  const share = { limit: limits.inFlight, sharePercent: limits.clientShare };
  const inFlight = new InFlight(share);
  const context = createContext(input);
  const { slots, connections } = createConnectionSlots(config);
  const canonicalise = createCanonicalise(config);
  const { run, webSockets } = createHandlers(input, canonicalise);
  const common = {
    keepAliveTimeoutMs: listen.keepAliveTimeout,
    requestHeadersBytes: limits.requestHeaders,
    rejectMalformed: createRejectMalformed(context),
    slots,
  };
  const listener = new Listener({
    ...common,
    host: listen.host,
    port: listen.port,
    ...(tls && { tls: { ...tls, requestCert: acceptsCertificates(config.auth.proof) } }),
    handle: handleWith(run, inFlight, context),
    // Without a listener for upgrades, Node handles one as an ordinary request.
    ...(config.upstream.webSocket && {
      handleUpgrade: createUpgradeHandler(new InFlight(share), run, context),
    }),
  });
  const { authorize } = config;
  return {
    listener,
    /** For fronts that ask about requests; undefined: `authorize` is off. */
    authorize: authorize
      ? new Listener({
          ...common,
          ...authorize.listen,
          handle: handleWith(createAuthorizeRun(input), inFlight, context),
        })
      : undefined,
    webSockets,
    cut: context.cut,
    components: [
      connections,
      {
        name: 'requests',
        metrics: [gauge('http_server_active_requests', 'Requests in flight.', 'sum', () => inFlight.count)],
      },
    ],
  };
}

function createContext({ config, record, log }: PublicPortInput): ExchangeContext {
  return {
    rejections: new RejectionBodies(buildRejections(config.rejections), {
      ...config.errors,
      extensionMethods: config.request.methods,
    }),
    ownFields: createOwnFields(config.cors.origins.length > 0 ? createCors(config.cors) : undefined),
    redactPath: createRedactPath(tokenWords(revocationPaths(config))),
    cut: { isDue: false, requests: 0 },
    record,
    onFault: (fault, requestId) => log.error({ event: 'fault', err: fault, requestId }, 'a request failed'),
  };
}

/** Paths that contain a token, which must not be logged. */
function revocationPaths({ refreshTokens }: Config): string[] {
  if (refreshTokens === false) return [];
  return refreshTokens.endpoints.filter(({ kind }) => kind === 'revoke').map(({ path }) => path);
}

function createHandlers(
  { config, rules, authenticate, forwarding }: PublicPortInput,
  canonicalise: Canonicalise,
) {
  const { limits, auth } = config;
  const { run, admits } = new Pipeline({
    canonicalise: (incoming) =>
      isUpgrade(incoming) ? refuseOtherThanHandshake(canonicalise(incoming)) : canonicalise(incoming),
    rules,
    authenticate,
    readBody: ({ incoming, response }, canonical, own) =>
      readWholeBody(
        incoming,
        canonical.body,
        {
          bodyLimitBytes: Math.min(own?.requestBodyBytes ?? limits.requestBody, limits.wholeBody),
          bodyTimeoutMs: limits.bodyTimeout,
        },
        () => sendContinue(canonical, response),
      ),
    forward(exchange, request, identity, body, hooks, own) {
      const { incoming, response, request: asked = request } = exchange;
      const sender = { address: networkOf(request.clientAddress), subject: identity?.subject };
      const input = { request, incoming, response, body, hooks, sender, limits: own };
      if (!isUpgrade(incoming)) return forwarding.forwarder.forward(input, exchange);
      const join = (client: Socket, shop: Socket) => webSockets.join(client, shop, asked, identity);
      return forwarding.handshakes.forward({ ...input, upgrade: { join } }, exchange);
    },
  });
  const webSockets = new OpenWebSockets({ admits, clockToleranceMs: auth.clockTolerance });
  return { run, webSockets };
}

function createAuthorizeRun({ config, rules, authenticate }: PublicPortInput): RunExchange {
  const canonicalise = createCanonicalise(config, readQuestion);
  const identityFields = identityFieldNames(config.auth.forward);
  return createAuthorizePipeline({ canonicalise, rules, authenticate, identityFields }).run;
}

/** The handshake has proved that the client has the key of its certificate. */
function withCertificate(peer: Peer, socket: TLSSocket): Peer {
  const certificate = socket.getPeerX509Certificate();
  return certificate === undefined
    ? peer
    : { ...peer, certificate: hash('sha256', certificate.raw, 'base64url') };
}

type RunExchange = (exchange: Exchange) => void;

function handleWith(run: RunExchange, inFlight: InFlight, context: ExchangeContext) {
  return (incoming: IncomingMessage, response: ServerResponse): Exchange => {
    const slot = inFlight.enter();
    const exchange = new Exchange(incoming, response, slot, context);
    if (slot.isBeyond) exchange.refuse(reject('overloaded', { reason: 'in-flight', retryAfterSeconds: 1 }));
    else run(exchange);
    return exchange;
  };
}

/** Node sets `upgrade` if the listener's `shouldUpgradeCallback` returned true. */
function isUpgrade(incoming: IncomingMessage & { upgrade?: boolean }): boolean {
  return incoming.upgrade === true;
}

type Canonicalise = (incoming: IncomingMessage) => CanonicalRequest | Rejection;

/**
 * The only conversion of Node's message into the canonical request. The peer is computed once per connection. Exported for
 * its tests.
 */
export function createCanonicalise(config: Config, read = canonicaliseRequest): Canonicalise {
  const { upstream, request, limits } = config;
  const rules = buildRequestRules({
    upstreamHost: upstreamHostOf(config),
    forwardHost: forwardsHost(config),
    trustedProxies: config.trustedProxies,
    trustedFields: config.trustedFields,
    ownFields: identityFieldNames(config.auth.forward),
    encodedSlash: request.encodedSlash,
    requestBodyBytes: largestBody(limits),
    extensionMethods: request.methods,
    viaName: upstream.via ? 'shopward' : undefined,
    webSocket: upstream.webSocket,
  });
  const asksCertificate = acceptsCertificates(config.auth.proof);
  const peers = new WeakMap<Socket, Peer>();
  const peerOf = (socket: Socket): Peer => {
    const known = peers.get(socket);
    if (known !== undefined) return known;
    const isTls = socket instanceof TLSSocket;
    const bare = createPeer(socket.remoteAddress, isTls, rules.isTrusted);
    const peer = asksCertificate && isTls && !bare.isTrusted ? withCertificate(bare, socket) : bare;
    peers.set(socket, peer);
    return peer;
  };
  return (incoming) => read(incoming, peerOf(incoming.socket), rules);
}

/** File descriptors reserved for Redis, files, pipes, the event loop, and the admin port with its connections. */
const ownDescriptors = 96;
/** Default limit of connections for each process: this many take hundreds of MiB of memory. */
const maxByDefault = 10_000;
/** A limit of open files below this is a mistake, or an old default. */
const fewDescriptors = 1_024;
/** Milliseconds for which `/readyz` reports that all connections were in use. */
const fullForMs = 10_000;

function createConnectionSlots(config: Config): { slots: ConnectionSlots; connections: Component } {
  const descriptors = openFilesLimit();
  const fitting = connectionsFor(descriptors, config);
  const limit = config.listen.maxConnections ?? Math.min(fitting, maxByDefault);
  const isTrusted = compileTrust(config.trustedProxies);
  const slots = new ConnectionSlots({ limit, sharePercent: config.limits.clientShare, isTrusted });
  const connections: Component = {
    name: 'connections',
    title: false,
    health: () => healthOf(connectionProblems(slots, descriptors, fitting)),
    metrics: connectionMetrics(slots),
  };
  return { slots, connections };
}

/**
 * Number of client connections that these descriptors suffice for. Those for the upstream are reserved first:
 * `upstream.connections` and lookups, but at most half; with WebSockets, each of which needs an upstream connection, always
 * half. Exported for its tests.
 */
export function connectionsFor(descriptors: number, { upstream }: Pick<Config, 'upstream'>): number {
  const usable = Math.max(descriptors - ownDescriptors, descriptors / 4);
  const wanted = upstream.webSocket ? usable : upstream.connections + questionConnections;
  return Math.max(1, Math.floor(usable - Math.min(wanted, usable / 2)));
}

/** Why clients may be turned away, for `/readyz`. */
function connectionProblems(slots: ConnectionSlots, descriptors: number, fitting: number): string[] {
  const problems: string[] = [];
  if (slots.limit > fitting || descriptors < fewDescriptors) {
    problems.push(
      `open files: the limit of ${descriptors} is low for up to ${slots.limit} client connections; raise it (ulimit -n, LimitNOFILE)`,
    );
  }
  if (performance.now() - slots.lastFullMs < fullForMs) {
    problems.push(
      `connections: all ${slots.limit} connections are in use (listen.maxConnections); idle ones are closed for new ones`,
    );
  }
  return problems;
}

function connectionMetrics(slots: ConnectionSlots): MetricSpec[] {
  return [
    gauge('shopward_connections', 'Connections of clients.', 'sum', () => slots.open),
    gauge(
      'shopward_connections_limit',
      'Most client connections that are accepted (`listen.maxConnections`).',
      'sum',
      () => slots.limit,
    ),
    counter(
      'shopward_connections_evicted',
      'Idle client connections that were closed to make room for others.',
      () => slots.counts.evicted,
    ),
    counter(
      'shopward_connections_refused',
      'Client connections that were refused: all were in use, or the peer had its share.',
      () => slots.counts.refused + slots.counts.refusedOfPeer,
    ),
  ];
}

/** Number of files that this process may open: the soft limit, which Node has raised to the hard limit. */
function openFilesLimit(): number {
  try {
    const [, said] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return said === undefined ? Number.MAX_SAFE_INTEGER : Number(said);
  } catch {
    // Not Linux.
    return Number.MAX_SAFE_INTEGER;
  }
}
