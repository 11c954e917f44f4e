import type { IncomingMessage, ServerResponse } from 'node:http';
import { addressUrl } from './app/address-url.ts';
import { createAdmin, type Explain } from './app/admin.ts';
import { createCanonicalise } from './app/canonicalise.ts';
import { entityTagsDefinition } from './app/entity-tags.ts';
import type { FilterDefinition } from './app/filter-definition.ts';
import { createFilters, filterDefinitions } from './app/filters.ts';
import { createForwarding, upstreamHostOf } from './app/forwarding.ts';
import { registerGauges, registerListCounters } from './app/gauges.ts';
import { connectionProblems, createPlaces } from './app/places.ts';
import type { ProcessStatus } from './app/process-status.ts';
import { createProcessStatus } from './app/process-status.ts';
import { createProtection } from './app/protection.ts';
import { urlResolverDefinition } from './app/url-resolver.ts';
import type { Secrets } from './app/watched-secrets.ts';
import { certificateEndMs } from './config/named-files.ts';
import type { Config } from './config/schema.ts';
import type { FileBytes } from './config/watched-file.ts';
import { buildRejections, reject } from './http/rejection.ts';
import type { Component } from './lib/component.ts';
import { hearFaults } from './lib/faults.ts';
import { createPipeline } from './proxy/pipeline.ts';
import { createRejectMalformed } from './server/client-error.ts';
import { createCors } from './server/cors.ts';
import { Exchange, type ExchangeContext } from './server/exchange.ts';
import { InFlight } from './server/in-flight.ts';
import { createListener } from './server/listener.ts';
import { createOwnFields } from './server/own-fields.ts';
import { createUpgradeHandler, type Handshake, refuseOtherThanHandshake } from './server/upgrade.ts';
import { createAccessLog } from './telemetry/access-log.ts';
import type { ExchangeRecord } from './telemetry/exchange-record.ts';
import type { Log } from './telemetry/log.ts';
import { createMetrics, type MetricValues } from './telemetry/metrics.ts';
import { createRedactPath, tokenWords } from './telemetry/redact-path.ts';
import { loadTracing } from './telemetry/tracing.ts';
import { readWholeBody, sendContinue } from './upstream/request-body.ts';

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
  readonly inside: ProcessStatus;
  metricValues(): Promise<MetricValues>;
  /** A new content of the protected list, where the primary follows it. */
  applyList(content: FileBytes): Promise<void>;
  /** Secrets that have changed, or why they could not. */
  applySecrets(secrets: Secrets): void;
}

export interface AppInput {
  readonly config: Config;
  /** Text of the protected list, as it was checked with the configuration. */
  readonly protectedList: string;
  /** In force now; `applySecrets` gives others. */
  readonly secrets: Secrets;
  readonly log: Log;
  /** For the console. */
  readonly version?: string;
  readonly explain?: Explain;
  /** This process is one of several: their primary has the admin port and follows the list. */
  readonly worker?: { onExchange(record: ExchangeRecord): void };
  /** Default: all that shopward has. */
  readonly filters?: readonly FilterDefinition[];
}

/** How long a drain waits for requests in flight. */
const drainMs = 30_000;

/** The composition root: the only place that builds clients and maps the configuration to the rooms. */
export async function createApp({
  config,
  protectedList,
  secrets,
  log,
  version,
  explain,
  worker,
  filters = filterDefinitions,
}: AppInput): Promise<App> {
  const { limits } = config;
  const rejections = buildRejections(config.rejections);
  const metrics = createMetrics();
  const now = Date.now;
  const upstreamHost = upstreamHostOf(config);
  const protection = createProtection({ config, protectedList, isWatched: worker === undefined, log, now });
  const { list, keys, verifier } = protection;
  const { forwarder, webSockets, createQuestionEngine } = await createForwarding(config);
  const redis =
    config.store.url.kind === 'memory'
      ? undefined
      : (await import('./app/redis.ts')).openRedis(config, log, metrics);
  const cors = config.cors.origins.length > 0 ? createCors(config.cors.origins) : undefined;
  const canonicalise = createCanonicalise(config, upstreamHost);
  const dependencies = { config, list, redis, upstreamHost, createQuestionEngine, log, metrics };
  const created = createFilters(dependencies, filters);
  const rules = {
    endpoints: created.endpoints,
    accessToken: protection.accessToken,
    filters: created.filters,
    observe: config.mode === 'observe',
  };
  const resolver = created.get(urlResolverDefinition) ?? false;
  const tags = created.get(entityTagsDefinition) ?? false;
  const parts: Component[] = [...(redis ? [redis] : []), ...created.endpoints, ...created.filters];
  for (const { metrics: specs = [] } of parts) for (const spec of specs) metrics.register(spec);
  const run = createPipeline<Exchange>({
    canonicalise,
    rules,
    readBody: ({ incoming, response }, canonical) =>
      readWholeBody(
        incoming,
        canonical.body,
        {
          limitBytes: Math.min(limits.requestBody, limits.wholeBody),
          timeoutMs: limits.bodyTimeout,
          bytesPerSecond: limits.bodyRate,
        },
        () => sendContinue(canonical, response),
      ),
    forward: (exchange, request, _identity, body, hooks) =>
      forwarder.forward(
        { request, incoming: exchange.incoming, response: exchange.response, body, hooks },
        exchange,
      ),
  });

  const accessLog = createAccessLog({ log });
  const tracing = await loadTracing();
  const context: ExchangeContext = {
    rejections,
    ownFields: createOwnFields(cors),
    redactPath: createRedactPath(tokenWords(revocationPaths(config))),
    record(record, request) {
      metrics.observeExchange(record);
      tracing?.note(record, request);
      admin?.note(record);
      worker?.onExchange(record);
      accessLog.write(record);
    },
    onFault: (fault, requestId) =>
      log.error({ event: 'fault', err: fault, requestId }, 'a request met a fault'),
  };
  const share = { limit: limits.inFlight, sharePercent: limits.clientShare };
  const inFlight = new InFlight(share);
  const openSockets = new InFlight(share);
  let draining = false;
  const handle = (incoming: IncomingMessage, response: ServerResponse) => {
    const place = inFlight.enter();
    const exchange = new Exchange(incoming, response, place, context);
    if (place.isBeyond) exchange.refuse(reject('overloaded', { reason: 'in-flight', retryAfterSeconds: 1 }));
    else run(exchange);
    return exchange;
  };
  hearFaults((fault) =>
    log.error({ event: 'fault', err: fault }, 'an exchange met a fault, and ended alone'),
  );
  const { places, descriptors } = createPlaces(config, log);
  const listener = createListener({
    host: config.listen.host,
    port: config.listen.port,
    keepAliveTimeoutMs: config.listen.keepAliveTimeout,
    requestHeadersBytes: limits.requestHeaders,
    ...(secrets.tls && { tls: secrets.tls }),
    rejectMalformed: createRejectMalformed(context),
    handle,
    places,
    ...(webSockets && {
      handleUpgrade: createUpgradeHandler(
        {
          inFlight: openSockets,
          handle: createPipeline<Handshake>({
            canonicalise: (incoming) => refuseOtherThanHandshake(canonicalise(incoming)),
            rules,
            readBody: () => Promise.resolve(Buffer.alloc(0)),
            forward: (handshake, request, identity) => handshake.join(webSockets, request, identity),
          }),
        },
        context,
      ),
    }),
  });

  let secretProblems = secrets.problems;
  let certificateEnd = secrets.tls && certificateEndMs(secrets.tls);
  const inside = createProcessStatus({
    config,
    list,
    secretProblems: () => secretProblems,
    certificateEndMs: () => certificateEnd,
    keys: keys.source,
    forwarder,
    redis,
    tags,
    resolver,
    parts,
    metrics,
    log,
    isDraining: () => draining,
    connectionProblems: () => connectionProblems(places, descriptors),
  });
  registerGauges(metrics, {
    forwarder,
    list,
    keys: keys.source,
    verifier,
    inFlight: () => inFlight.count,
    places,
    secretProblems: () => secretProblems,
    certificateEndMs: () => certificateEnd,
  });
  if (worker === undefined) registerListCounters(metrics, list);
  const admin =
    worker === undefined
      ? createAdmin({ config, explain, version: version ?? '', list, inside, metrics, log, now })
      : undefined;

  const applySecrets = ({ problems, tls, tokenSecret, adminToken }: Secrets) => {
    secretProblems = problems;
    keys.useSecret(tokenSecret);
    if (tls) {
      listener.useCertificate(tls);
      certificateEnd = certificateEndMs(tls);
    }
    if (adminToken !== undefined) admin?.server.useToken(adminToken);
  };
  keys.useSecret(secrets.tokenSecret);

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
        url: addressUrl(secrets.tls ? 'https' : 'http', address),
        adminUrl: adminAddress && addressUrl('http', adminAddress),
      };
    },
    async reload() {
      list.reload();
      await keys.reload();
      for (const part of parts) await part.reload?.();
    },
    async close(graceMs = config.listen.drainDelay) {
      draining = true;
      // Not before the end of the grace: new ones may still be opened in it.
      setTimeout(() => webSockets?.close(), graceMs);
      await listener.drain({ graceMs, withinMs: drainMs });
      protection.close();
      await forwarder.close();
      for (const part of parts.toReversed()) await part.close?.();
      await admin?.server.close();
    },
    inside,
    metricValues: metrics.values,
    applyList: list.apply,
    applySecrets,
  };
}

/** Where ids of tokens stand in paths. */
function revocationPaths({ refreshTokens }: Config): string[] {
  if (refreshTokens === false) return [];
  return refreshTokens.endpoints.filter(({ kind }) => kind === 'revoke').map(({ path }) => path);
}
