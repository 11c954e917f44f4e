import type { PackedList } from './access/packed-list.ts';
import type { StartList } from './access/watched-list.ts';
import { createAccess } from './app/access.ts';
import { type Admin, addressUrl, createAdmin, type Explain } from './app/admin.ts';
import { ClockCheck } from './app/clock.ts';
import { createFilters, createRouteLimits, type FilterDefinition } from './app/filter-definition.ts';
import { filterDefinitions } from './app/filters.ts';
import { createProcessStatus, Drain, type ProcessStatus } from './app/process-status.ts';
import { createPublicPort, type PublicPort } from './app/public-port.ts';
import { createSecretsReport, createSettings, type Secrets } from './app/secrets.ts';
import { createRollout, memoryStore, openStore } from './app/store.ts';
import { createForwarding } from './app/upstream.ts';
import { listIssuers } from './config/issuers.ts';
import type { Config } from './config/schema.ts';
import type { Component } from './lib/component.ts';
import { hearFaults, isolated } from './lib/faults.ts';
import type { RecordForms } from './redis/membership.ts';
import { createAccessLog } from './telemetry/exchange-record.ts';
import { type Log, logComponent } from './telemetry/log.ts';
import { createMetrics, type Metrics, type MetricValues } from './telemetry/metrics.ts';
import { startOtlp } from './telemetry/otlp.ts';

export interface App {
  /** Resolves when requests are served. */
  listen(): Promise<{ readonly url: string; readonly adminUrl: string | undefined }>;
  /** Loads keys and files again (SIGHUP), without waiting for the next check. */
  reload(): Promise<void>;
  /**
   * Drains, waits at most 30 s for requests in flight, then closes everything. `graceMs`: how long new requests are still
   * accepted while `/readyz` is already 503. Default: `listen.drainDelay`.
   */
  close(graceMs?: number): Promise<void>;
  /** What the admin port reports, here or in the primary. */
  readonly status: ProcessStatus;
  metricValues(): Promise<MetricValues>;
  /** Takes another protected list: for workers, whose primary watches the file. */
  adoptList(packed: PackedList): void;
  /** Applies changed secrets, or reports why they could not be read. */
  applySecrets(secrets: Secrets): void;
}

export interface AppInput {
  readonly config: Config;
  readonly protectedList: StartList;
  /** The secrets at the start; `applySecrets` replaces them. */
  readonly secrets: Secrets;
  readonly log: Log;
  /** For the console, and for replicas of other versions. */
  readonly version?: string;
  /** Set in tests that run another version. */
  readonly forms?: RecordForms | undefined;
  readonly explain?: Explain;
  /** Set in a worker: its primary has the admin port, if there is one, and watches the list. */
  readonly worker?: { readonly noteExchange: Admin['noteExchange'] | undefined };
  /** Default: all filters of shopward. */
  readonly filters?: readonly FilterDefinition[];
}

/** Milliseconds that a drain waits for requests in flight. */
const drainMs = 30_000;

/** The composition root: creates the components, the public port and the admin port. No port is open before `listen`. */
export async function createApp(input: AppInput): Promise<App> {
  const { config, log, worker, explain, version = '' } = input;
  const metrics = createMetrics({ forRollout: config.rollout !== false });
  const features = await createFeatures(input, metrics);
  const { clock, list, tokens, forwarding, store, filters, rules, rollout, settings, secrets } = features;
  const { values } = metrics;
  const otlp = config.telemetry.otlp && (await startOtlp({ ...config.telemetry.otlp, version, log, values }));
  const logExchange = createAccessLog(log);
  let noteForConsole = worker?.noteExchange;
  const port = createPublicPort({
    config,
    rules,
    authenticate: features.authenticate,
    forwarding,
    tls: input.secrets.tls,
    record(known, request, sender) {
      const record = known.reason === undefined ? known : clock.explain(known);
      metrics.observeExchange(record, Date.now(), request, sender);
      noteForConsole?.(record);
      otlp?.note(record, request);
      logExchange(record);
    },
    log,
  });
  hearFaults((err) => log.error({ event: 'fault', err }, 'a fault ended one exchange; the others go on'));
  list.onApplied(() => port.webSockets.recheck());
  tokens.useSecrets(input.secrets.issuers);
  const drain = new Drain();
  /** In the order of their start and of their reasons in `/readyz`; they are closed in the reverse order. */
  const components: readonly Component[] = [
    drain,
    ...(otlp === undefined ? [] : [otlp.component]),
    ...tokens.components,
    list,
    secrets,
    clock,
    logComponent,
    ...port.components,
    store ?? memoryStore,
    ...filters.components,
    forwarding.component,
    ...(rollout === undefined ? [] : [rollout]),
  ];
  for (const component of components) metrics.register(...(component.metrics ?? []));
  const status = createProcessStatus({ ...features, components, metrics });
  const adminInput = { config, inForce: settings.inForce, explain, version, log, list, status, metrics };
  const admin = worker === undefined ? createAdmin(adminInput) : undefined;
  noteForConsole ??= admin?.noteExchange;

  return {
    ...createLifeCycle(input, components, port, admin, drain),
    status,
    metricValues: metrics.values,
    adoptList: list.adopt,
    applySecrets: (changed) => handOut(changed, features, port, admin),
  };
}

/** Gives changed secrets and settings to the components that use them. */
function handOut(
  changed: Secrets,
  features: Awaited<ReturnType<typeof createFeatures>>,
  port: PublicPort,
  admin: Admin | undefined,
): void {
  const { settings, filters, rules } = features;
  settings.use(changed.hot);
  const inForce = settings.inForce();
  filters.useSettings(inForce);
  rules.observe = inForce.mode === 'observe';
  rules.filters = filters.filters();
  features.rollout?.follow();
  features.secrets.apply(changed);
  features.tokens.useSecrets(changed.issuers);
  port.webSockets.recheck();
  if (changed.tls) port.listener.useCertificate(changed.tls);
  if (changed.upstreamTls) features.forwarding.useCertificates(changed.upstreamTls);
  features.store?.useCredentials(changed.store);
  if (changed.adminToken !== undefined) admin?.server.useToken(changed.adminToken);
}

/** The settings in force, the protected list, the way to the shop, the store, and the filters. */
async function createFeatures(
  { config, secrets, log, worker, version = '', ...input }: AppInput,
  metrics: Metrics,
) {
  const settings = createSettings(config, log);
  const tolerances = listIssuers(config.auth).map(({ clockTolerance }) => clockTolerance);
  const toleranceMs = tolerances.reduce((least, tolerance) => Math.min(least, tolerance));
  const clock = new ClockCheck({ toleranceMs, log });
  const forwarding = createForwarding(config, secrets.upstreamTls, clock, metrics.decisions);
  const store = await openStore(config, secrets.store, log, clock, version, input.forms);
  const access = createAccess(config, input.protectedList, worker === undefined, log, clock, store);
  const { list } = access;
  const { createQuestionClient } = forwarding;
  const filters = createFilters(
    { config, list, redis: store, createQuestionClient, log, metrics },
    input.filters ?? filterDefinitions,
  );
  const rules = {
    endpoints: filters.endpoints,
    list,
    filters: filters.filters(),
    observe: config.mode === 'observe',
    limitsOf: createRouteLimits(config),
  };
  return {
    ...access,
    ...{ settings, clock, forwarding, store, filters, rules },
    secrets: createSecretsReport(secrets),
    rollout: createRollout(config, settings.inForce, metrics.decisions, list, store, log),
  };
}

/** Opens the ports after everything else has started; closes the public one first and the admin port last. */
function createLifeCycle(
  { config, secrets, log }: AppInput,
  components: readonly Component[],
  port: PublicPort,
  admin: Admin | undefined,
  drain: Drain,
): Pick<App, 'listen' | 'reload' | 'close'> {
  return {
    async listen() {
      for (const component of components) await component.start?.();
      const address = await port.listener.listen();
      await port.authorize?.listen();
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
      // Only after the grace period, in which new WebSockets may still open.
      setTimeout(
        isolated(() => port.webSockets.close()),
        graceMs,
      );
      const { cut, listener, authorize } = port;
      await Promise.all([listener, authorize].map((one) => one?.drain({ graceMs, withinMs: drainMs, cut })));
      const [requests, webSockets] = [cut.requests, port.webSockets.drained];
      if (webSockets + requests > 0)
        log.info({ event: 'drained', webSockets, requests }, 'the drain has cut WebSockets or requests');
      for (const component of components.toReversed()) await component.close?.();
      await admin?.server.close();
    },
  };
}
