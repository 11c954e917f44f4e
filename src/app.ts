import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { addressUrl } from './app/address-url.ts';
import { createAdmin, type Explain } from './app/admin.ts';
import { createEntityTagsPart } from './app/entity-tags.ts';
import { registerGauges } from './app/gauges.ts';
import type { Inside } from './app/inside.ts';
import { createInside } from './app/inside-process.ts';
import { createLiveKeys } from './app/live-keys.ts';
import { followProtectedList } from './app/live-list.ts';
import type { Part } from './app/part.ts';
import { createRefreshTokensPart } from './app/refresh-tokens.ts';
import { createUrlResolverPart } from './app/url-resolver.ts';
import { parseOrigin } from './config/origin.ts';
import type { FileBytes } from './config/read-file.ts';
import type { Config } from './config/schema.ts';
import { createForwarder } from './forwarding/forwarder.ts';
import { readWholeBody, sendContinue } from './forwarding/request-body.ts';
import { admit, createPipeline, type OwnEndpoint, type Rooms } from './pipeline.ts';
import { createAuthenticate } from './protection/authenticate.ts';
import { createProtectedResourcesDocument } from './protection/protected-resources-document.ts';
import { createResourceMetadata } from './protection/resource-metadata.ts';
import { createTokenVerifier } from './protection/token-verifier.ts';
import { reject } from './rejections/rejection.ts';
import { buildRejections } from './rejections/table.ts';
import { canonicaliseRequest } from './request/canonicalise-request.ts';
import { createPeer, type Peer } from './request/peer.ts';
import { buildRequestRules } from './request/request-rules.ts';
import { createCors } from './server/cors.ts';
import { Exchange, type ExchangeContext } from './server/exchange.ts';
import { createListener } from './server/listener.ts';
import { createOwnFields } from './server/own-fields.ts';
import { createUpgradeHandler } from './server/upgrade.ts';
import type { ExchangeRecord } from './telemetry/exchange-record.ts';
import { type Log, logExchange } from './telemetry/log.ts';
import { createMetrics, type MetricValues } from './telemetry/metrics.ts';

export interface App {
  /** Resolves when requests are served. */
  listen(): Promise<{ readonly url: string; readonly adminUrl: string | undefined }>;
  /** Reads key files and the protected list anew (SIGHUP); both are followed anyway. */
  reload(): Promise<void>;
  /**
   * Lets what is in flight finish (30 s at most), then lets everything go. `graceMs`: how long requests are still taken
   * while `/readyz` says otherwise; default: `listen.drainDelay`.
   */
  close(graceMs?: number): Promise<void>;
  /** What the admin port tells, for whoever has it. */
  readonly inside: Inside;
  metricValues(): Promise<MetricValues>;
  /** A new content of the protected list, where the primary follows it. */
  offerList(content: FileBytes): void;
}

export interface AppInput {
  readonly config: Config;
  /** Text of the protected list, as it was judged with the configuration. */
  readonly protectedList: string;
  /** Contents of `listen.tls`. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly log: Log;
  /** For the console. */
  readonly version?: string;
  readonly explain?: Explain;
  /** This process is one of several: their primary has the admin port and follows the list. */
  readonly worker?: { onExchange(record: ExchangeRecord): void };
}

/** Only what is used is loaded: a proxy that starts is waited for. */
const engines = {
  'http-proxy-3': async () => (await import('./forwarding/http-proxy-3-engine.ts')).createHttpProxy3Engine,
  undici: async () => (await import('./forwarding/undici-engine.ts')).createUndiciEngine,
};

/** Connections for questions of our own to the shop, beside those for its clients. */
const questionConnections = 64;

/** How long a drain waits for requests in flight. */
const drainMs = 30_000;

/** The composition root: the only place that builds clients and maps the configuration to the rooms. */
export async function createApp({
  config,
  protectedList,
  tls,
  log,
  version,
  explain,
  worker,
}: AppInput): Promise<App> {
  const { upstream, limits, auth, request } = config;
  const origin = parseOrigin(upstream.url);
  if (origin === undefined) throw new TypeError('upstream.url is no origin');
  const rejections = buildRejections(config.rejections);
  const metrics = createMetrics();
  const now = Date.now;

  const list = followProtectedList({
    file: config.protectedResources,
    text: protectedList,
    ignoredPrefixes: request.ignoredPrefixes,
    isFollowed: worker === undefined,
    log,
  });

  const keys = createLiveKeys(auth, now, log);
  const verifier = createTokenVerifier({
    algorithms: auth.algorithms,
    keySource: keys.source,
    subject: auth.subject,
    issuer: auth.issuer,
    audience: auth.audience,
    clockToleranceMs: auth.clockTolerance,
    maxTokenAgeMs: auth.maxTokenAge === 'none' ? undefined : auth.maxTokenAge,
    maxVerifying: Math.ceil(limits.inFlight / 2),
    now,
  });

  const upstreamHost = origin.origin.slice(origin.scheme.length + '://'.length);
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

  const bodyTimeoutMs = 30_000;
  const createUpstreamEngine = await engines[upstream.engine]();
  const createEngine = (connections: number) =>
    createUpstreamEngine({ upstream: origin, connectTimeoutMs: upstream.connectTimeout, connections });
  const forwarder = createForwarder({
    engine: createEngine(upstream.connections),
    connections: upstream.connections,
    queueLimit: limits.inFlight,
    queueTimeoutMs: upstream.connectTimeout,
    responseTimeoutMs: upstream.responseTimeout,
    bodyLimitBytes: limits.requestBody,
    bodyTimeoutMs,
    writeStallTimeoutMs: 60_000,
  });

  const redis =
    config.store.url.kind === 'memory'
      ? undefined
      : (await import('./app/redis.ts')).openRedis(config, log, metrics);
  const resolver =
    config.urlResolver &&
    createUrlResolverPart({
      settings: config.urlResolver,
      publicUrl: config.publicUrl,
      forwardHost: upstream.forwardHost,
      responseTimeoutMs: upstream.responseTimeout,
      engine: createEngine(questionConnections),
      maxQuestions: questionConnections,
      upstreamHost,
      redis: redis?.redis,
      log,
      metrics,
    });
  const tags = config.entityTags && createEntityTagsPart(config, redis, metrics);
  const tokens = config.refreshTokens && createRefreshTokensPart(config, redis?.redis, metrics);
  const parts: Part[] = [redis, resolver, tags, tokens].filter(
    (part) => part !== undefined && part !== false,
  );

  const cors = config.cors.origins.length > 0 ? createCors(config.cors.origins) : undefined;
  const ownEndpoints: OwnEndpoint[] = [];
  if (cors) ownEndpoints.push({ route: 'preflight', answer: cors.answerPreflight });
  if (resolver) ownEndpoints.push(resolver.endpoint);
  const metadata = createResourceMetadata({
    publicUrl: config.publicUrl,
    authorizationServers: /^https:\/\//.test(auth.issuer ?? '') ? [auth.issuer as string] : [],
    list: list.current,
  });
  ownEndpoints.push(
    createProtectedResourcesDocument({ path: config.protectedResourcesPath, list: list.current }),
    metadata,
  );
  const rooms: Rooms = {
    canonicalise: (incoming) => canonicaliseRequest(incoming, peerOf(incoming.socket), rules),
    ownEndpoints,
    protectedList: list.current,
    authenticate: createAuthenticate({ verifier, resourceMetadataUrl: metadata.url }),
    gates: [
      tokens ? tokens.gate : undefined,
      tags ? tags.gate : undefined,
      resolver ? resolver.learning : undefined,
    ].filter((gate) => gate !== undefined),
    readBody: ({ incoming, response }, canonical) =>
      readWholeBody(
        incoming,
        canonical.body,
        { limitBytes: limits.requestBody, timeoutMs: bodyTimeoutMs },
        () => sendContinue(canonical, response),
      ),
    forwarder,
    observe: config.mode === 'observe',
  };
  const run = createPipeline(rooms);

  const context: ExchangeContext = {
    rejections,
    ownFields: createOwnFields(cors),
    record(record) {
      metrics.observeExchange(record);
      admin?.note(record);
      worker?.onExchange(record);
      logExchange(log, record);
    },
    onFault: (fault, requestId) =>
      log.error({ event: 'fault', err: fault, requestId }, 'a request met a fault'),
  };
  const webSockets = upstream.webSocket
    ? (await import('./forwarding/websocket.ts')).createWebSocketForwarder({
        upstream: origin,
        connectTimeoutMs: upstream.connectTimeout,
        handshakeTimeoutMs: upstream.responseTimeout,
        limit: limits.inFlight,
      })
    : undefined;
  let inFlight = 0;
  let draining = false;
  const handle = (incoming: IncomingMessage, response: ServerResponse) => {
    const exchange = new Exchange(incoming, response, context);
    if (inFlight >= limits.inFlight) {
      exchange.refuse(reject('overloaded', { reason: 'in-flight', retryAfterSeconds: 1 }));
      return;
    }
    inFlight++;
    response.once('close', () => inFlight--);
    run(exchange).catch((fault) => exchange.fail(fault));
  };
  const listener = createListener({
    host: config.listen.host,
    port: config.listen.port,
    keepAliveTimeoutMs: config.listen.keepAliveTimeout,
    requestHeadersBytes: limits.requestHeaders,
    ...(tls && { tls }),
    rejections,
    handle,
    ...(webSockets && {
      handleUpgrade: createUpgradeHandler({
        canonicalise: rooms.canonicalise,
        admit: (canonical, notes) => admit(rooms, canonical, notes),
        forwarder: webSockets,
        rejections,
        record: context.record,
      }),
    }),
  });

  registerGauges(metrics, { forwarder, list, keys: keys.source, verifier, inFlight: () => inFlight });
  const inside = createInside({
    config,
    list,
    keys: keys.source,
    forwarder,
    redis: redis?.redis,
    resolver,
    parts,
    metrics,
    log,
    isDraining: () => draining,
  });
  const admin =
    worker === undefined
      ? createAdmin({ config, explain, version: version ?? '', list, inside, metrics, log, now })
      : undefined;

  return {
    async listen() {
      if (config.mode === 'observe')
        log.warn({ event: 'observe' }, 'OBSERVE MODE: refusals are only counted');
      // Keys that cannot be had yet are no reason to stay down: protected requests get 503 until they come.
      await keys.start();
      for (const part of parts) await part.start?.();
      const address = await listener.listen();
      const adminAddress = await admin?.server.listen();
      return {
        url: addressUrl(tls ? 'https' : 'http', address),
        adminUrl: adminAddress && addressUrl('http', adminAddress),
      };
    },
    async reload() {
      list.look();
      await keys.reload();
      for (const part of parts) await part.reload?.();
    },
    async close(graceMs = config.listen.drainDelay) {
      draining = true;
      // Not before the end of the grace: new ones may still be opened in it.
      setTimeout(() => webSockets?.close(), graceMs);
      await listener.drain({ graceMs, withinMs: drainMs });
      list.close();
      verifier.close();
      keys.close();
      await forwarder.close();
      for (const part of parts.toReversed()) await part.close?.();
      await admin?.server.close();
    },
    inside,
    metricValues: metrics.values,
    offerList: list.offer,
  };
}
