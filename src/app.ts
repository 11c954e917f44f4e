import { createAccess } from './app/access.ts';
import { type Admin, addressUrl, createAdmin, type Explain } from './app/admin.ts';
import { createFilters, createRouteLimits, type FilterDefinition } from './app/filter-definition.ts';
import { filterDefinitions } from './app/filters.ts';
import { createProcessStatus, Drain, type ProcessStatus } from './app/process-status.ts';
import { createPublicPort, type PublicPort } from './app/public-port.ts';
import { type Secrets, SecretsInForce } from './app/secrets.ts';
import { createRollout, memoryStore, openStore } from './app/store.ts';
import { createForwarding, type Forwarding, upstreamHostOf } from './app/upstream.ts';
import type { Config } from './config/schema.ts';
import type { Component } from './lib/component.ts';
import { hearFaults, isolated } from './lib/faults.ts';
import type { FileBytes } from './lib/watched-file.ts';
import { createAccessLog, type ExchangeRecord } from './telemetry/exchange-record.ts';
import { type Log, logComponent } from './telemetry/log.ts';
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
  readonly status: ProcessStatus;
  metricValues(): Promise<MetricValues>;
  /** A new content of the protected list, where the primary follows it. */
  applyList(content: FileBytes): Promise<void>;
  /** Secrets that have changed, or why they could not. */
  applySecrets(secrets: Secrets): void;
}

interface AppInput {
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

/** The composition root: components, then the port that clients use, then the one that operators use. */
export async function createApp(input: AppInput): Promise<App> {
  const { config, log, worker, explain, version = '' } = input;
  const metrics = createMetrics();
  const features = await createFeatures(input, metrics);
  const { list, tokens, forwarding, store, filters, rules, rollout } = features;
  const tracing = await loadTracing();
  const accessLog = createAccessLog({ log });
  let admin: Admin | undefined;
  const port = createPublicPort({
    config,
    rules,
    forwarding,
    tls: input.secrets.tls,
    record(record, request, sender) {
      metrics.observeExchange(record);
      tracing?.note(record, request);
      rollout?.note(record, request, sender);
      forwarding.component.activity.note(record, Date.now());
      admin?.note(record);
      worker?.onExchange(record);
      accessLog.write(record);
    },
    log,
  });
  logFaults(log);
  const secrets = new SecretsInForce(input.secrets);
  tokens.useSecrets(input.secrets.issuers);
  const drain = new Drain();
  /** In the order of their start, and of their reasons in `/readyz`; they are let go in the other one. */
  const components: readonly Component[] = [
    drain,
    ...tokens.components,
    rules.accessToken,
    list,
    secrets,
    logComponent,
    ...port.components,
    store ?? memoryStore,
    ...filters.components,
    forwarding.component,
    ...(rollout === undefined ? [] : [rollout]),
  ];
  for (const component of components) metrics.register(...(component.metrics ?? []));
  const status = createProcessStatus({ ...features, components, metrics });
  if (worker === undefined) {
    admin = createAdmin({ config, explain, version, list, status, metrics, log, now: Date.now });
  }

  return {
    ...createLifeCycle(input, components, { port, admin, drain, webSockets: forwarding.webSockets }),
    status,
    metricValues: metrics.values,
    applyList: list.apply,
    applySecrets: (changed) => handOut(changed, { secrets, tokens, port, forwarding, admin }),
  };
}

/** Secrets that have changed, to each part that goes by one. */
function handOut(
  changed: Secrets,
  parts: {
    readonly secrets: SecretsInForce;
    readonly tokens: Awaited<ReturnType<typeof createFeatures>>['tokens'];
    readonly port: PublicPort;
    readonly forwarding: Forwarding;
    readonly admin: Admin | undefined;
  },
): void {
  parts.secrets.apply(changed);
  parts.tokens.useSecrets(changed.issuers);
  if (changed.tls) parts.port.useCertificate(changed.tls);
  if (changed.upstreamTls) parts.forwarding.useCertificates(changed.upstreamTls);
  if (changed.adminToken !== undefined) parts.admin?.server.useToken(changed.adminToken);
}

/** What is protected, the way to the shop, the store, and every filter of them. */
async function createFeatures({ config, secrets, log, worker, ...input }: AppInput, metrics: Metrics) {
  const access = createAccess(config, input.protectedList, worker === undefined, log);
  const forwarding = await createForwarding(config, secrets.upstreamTls, log);
  const store = await openStore(config, log);
  const { list, accessToken } = access;
  const { createQuestionEngine } = forwarding;
  const upstreamHost = upstreamHostOf(config);
  const filters = createFilters(
    { config, list, redis: store, upstreamHost, createQuestionEngine, log, metrics },
    input.filters ?? filterDefinitions,
  );
  const rules = {
    endpoints: filters.endpoints,
    accessToken,
    filters: filters.filters,
    observe: config.mode === 'observe',
    limitsOf: createRouteLimits(config),
  };
  return { ...access, forwarding, store, filters, rules, rollout: createRollout(config, list, store, log) };
}

function logFaults(log: Log): void {
  hearFaults((fault) =>
    log.error({ event: 'fault', err: fault }, 'an exchange met a fault, and ended alone'),
  );
}

/** The ports open after everything else and close before it, but the admin port, which is there until the end. */
function createLifeCycle(
  { config, secrets, log }: AppInput,
  components: readonly Component[],
  {
    port,
    admin,
    drain,
    webSockets,
  }: Pick<Forwarding, 'webSockets'> & {
    readonly port: PublicPort;
    readonly admin: Admin | undefined;
    readonly drain: Drain;
  },
): Pick<App, 'listen' | 'reload' | 'close'> {
  return {
    async listen() {
      if (config.mode === 'observe')
        log.warn({ event: 'observe' }, 'OBSERVE MODE: refusals are only counted');
      for (const component of components) await component.start?.();
      const address = await port.listen();
      const adminAddress = await admin?.server.listen();
      return {
        url: addressUrl(secrets.tls ? 'https' : 'http', address),
        adminUrl: adminAddress && addressUrl('http', adminAddress),
      };
    },
    async reload() {
      for (const component of components) await component.reload?.();
    },
    async close(graceMs = config.listen.drainDelay) {
      drain.begin();
      // Not before the end of the grace: new ones may still be opened in it.
      setTimeout(
        isolated(() => webSockets?.close()),
        graceMs,
      );
      await port.drain({ graceMs, withinMs: drainMs });
      for (const component of components.toReversed()) await component.close?.();
      await admin?.server.close();
    },
  };
}
