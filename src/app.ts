import { addressUrl } from './app/address-url.ts';
import { type Admin, createAdmin, type Explain } from './app/admin.ts';
import { createCanonicalise } from './app/canonicalise.ts';
import { entityTagsDefinition } from './app/entity-tags.ts';
import type { FilterDefinition } from './app/filter-definition.ts';
import { createFilters, filterDefinitions } from './app/filters.ts';
import { createForwarding, upstreamHostOf } from './app/forwarding.ts';
import { createProcessStatus, type ProcessStatus } from './app/process-status.ts';
import { createProtection } from './app/protection.ts';
import { createPublicPort, type PublicPort } from './app/public-port.ts';
import { refreshTokensDefinition } from './app/refresh-tokens.ts';
import { urlResolverDefinition } from './app/url-resolver.ts';
import { listCounters } from './app/watched-list.ts';
import { type Secrets, SecretsInForce } from './app/watched-secrets.ts';
import type { Config } from './config/schema.ts';
import type { Component } from './lib/component.ts';
import { hearFaults } from './lib/faults.ts';
import type { FileBytes } from './lib/watched-file.ts';
import type { ExchangeContext } from './server/exchange.ts';
import { createAccessLog, type ExchangeRecord } from './telemetry/exchange-record.ts';
import { type Log, logMetrics } from './telemetry/log.ts';
import { createMetrics, type Metrics, type MetricValues } from './telemetry/metrics.ts';
import { loadTracing } from './telemetry/tracing.ts';

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

/** The composition root: features, then the port that clients use, then the one that operators use. */
export async function createApp(input: AppInput): Promise<App> {
  const { config, log, worker } = input;
  const metrics = createMetrics();
  const features = await createFeatures(input, metrics);
  const { protection, forwarding } = features;
  const { list, keys } = protection;
  let admin: Admin | undefined;
  const record = await createRecorder(input, metrics, (ended) => admin?.note(ended));
  hearFaults((fault) =>
    log.error({ event: 'fault', err: fault }, 'an exchange met a fault, and ended alone'),
  );
  const port = createPublicPort({
    config,
    canonicalise: createCanonicalise(config, upstreamHostOf(config)),
    rules: features.rules,
    forwarding,
    tls: input.secrets.tls,
    record,
    log,
  });
  const secrets = new SecretsInForce(input.secrets);
  let draining = false;
  const inside = createProcessStatus({
    ...features,
    config,
    list,
    secrets,
    keys: keys.source,
    forwarder: forwarding.forwarder,
    metrics,
    log,
    isDraining: () => draining,
    connectionProblems: port.connectionProblems,
  });
  for (const { metrics: specs = [] } of [...features.parts, protection, port, secrets]) {
    metrics.register(...specs);
  }
  metrics.register(...logMetrics);
  if (worker === undefined) {
    metrics.register(...listCounters(list));
    const { explain, version = '' } = input;
    admin = createAdmin({ config, explain, version, list, inside, metrics, log, now: Date.now });
  }
  keys.useSecret(input.secrets.tokenSecret);

  return {
    ...createLifeCycle(input, features, port, admin, () => {
      draining = true;
    }),
    inside,
    metricValues: metrics.values,
    applyList: list.apply,
    applySecrets(changed) {
      secrets.apply(changed);
      keys.useSecret(changed.tokenSecret);
      if (changed.tls) port.useCertificate(changed.tls);
      if (changed.adminToken !== undefined) admin?.server.useToken(changed.adminToken);
    },
  };
}

type Features = Awaited<ReturnType<typeof createFeatures>>;

/** What is protected, the way to the shop, the store, and every filter of them. */
async function createFeatures(input: AppInput, metrics: Metrics) {
  const { config, protectedList, log, filters = filterDefinitions } = input;
  const isWatched = input.worker === undefined;
  const protection = createProtection({ config, protectedList, isWatched, log, now: Date.now });
  const forwarding = await createForwarding(config);
  const redis =
    config.store.url.kind === 'memory'
      ? undefined
      : (await import('./app/redis.ts')).openRedis(config, config.store.url, log);
  const created = createFilters(
    {
      config,
      list: protection.list,
      redis,
      upstreamHost: upstreamHostOf(config),
      createQuestionEngine: forwarding.createQuestionEngine,
      log,
      metrics,
    },
    filters,
  );
  /** In the order in which they are started; let go in the other one. */
  const parts: Component[] = [
    ...(redis ? [redis] : []),
    ...created.endpoints,
    ...created.filters,
    forwarding.component,
  ];
  return {
    protection,
    forwarding,
    redis,
    tags: created.get(entityTagsDefinition) ?? (false as const),
    tokens: created.get(refreshTokensDefinition) ?? (false as const),
    sharing: redis?.sharing,
    resolver: created.get(urlResolverDefinition) ?? (false as const),
    parts,
    rules: {
      endpoints: created.endpoints,
      accessToken: protection.accessToken,
      filters: created.filters,
      observe: config.mode === 'observe',
    },
  };
}

/** What hears of each request once it has ended. */
async function createRecorder(
  { log, worker }: AppInput,
  metrics: Metrics,
  noteForAdmin: (record: ExchangeRecord) => void,
): Promise<ExchangeContext['record']> {
  const tracing = await loadTracing();
  const accessLog = createAccessLog({ log });
  return (record, request) => {
    metrics.observeExchange(record);
    tracing?.note(record, request);
    noteForAdmin(record);
    worker?.onExchange(record);
    accessLog.write(record);
  };
}

/** Keys come first and go first, the admin port is there until the end. */
function createLifeCycle(
  { config, secrets, log }: AppInput,
  { protection, forwarding, parts }: Features,
  port: PublicPort,
  admin: Admin | undefined,
  onDrain: () => void,
): Pick<App, 'listen' | 'reload' | 'close'> {
  return {
    async listen() {
      if (config.mode === 'observe')
        log.warn({ event: 'observe' }, 'OBSERVE MODE: refusals are only counted');
      for (const part of [protection, ...parts]) await part.start?.();
      const address = await port.listen();
      const adminAddress = await admin?.server.listen();
      return {
        url: addressUrl(secrets.tls ? 'https' : 'http', address),
        adminUrl: adminAddress && addressUrl('http', adminAddress),
      };
    },
    async reload() {
      for (const part of [protection, ...parts]) await part.reload?.();
    },
    async close(graceMs = config.listen.drainDelay) {
      onDrain();
      // Not before the end of the grace: new ones may still be opened in it.
      setTimeout(() => forwarding.webSockets?.close(), graceMs);
      await port.drain({ graceMs, withinMs: drainMs });
      for (const part of [protection, ...parts.toReversed()]) await part.close?.();
      await admin?.server.close();
    },
  };
}
