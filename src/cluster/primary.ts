import { addressUrl } from '../app/address-url.ts';
import { createAdmin, type Explain } from '../app/admin.ts';
import { registerListCounters } from '../app/gauges.ts';
import { type WatchedList, watchProtectedList } from '../app/watched-list.ts';
import type { Secrets } from '../app/watched-secrets.ts';
import type { Config } from '../config/schema.ts';
import type { FileBytes } from '../config/watched-file.ts';
import type { Log } from '../telemetry/log.ts';
import { createMetrics, type Metrics } from '../telemetry/metrics.ts';
import { createClusterStatus, createWorkerMetrics } from './aggregate.ts';
import { Supervisor } from './supervisor.ts';
import type { Running } from './until-stopped.ts';

export interface PrimaryInput {
  readonly config: Config;
  /** Processes that serve; more than one. */
  readonly count: number;
  /** Text of the protected list, as it was checked with the configuration. */
  readonly protectedList: string;
  /** In force now; `applySecrets` gives others. */
  readonly secrets: Secrets;
  readonly log: Log;
  readonly version: string;
  readonly explain: Explain | undefined;
}

export interface Primary extends Running {
  listen(): Promise<{ readonly url: string; readonly adminUrl: string | undefined }>;
  /** For all workers, also those that come later. */
  applySecrets(secrets: Secrets): void;
}

/** Behind the grace: a worker drains for 30 s at most, and closes its clients. */
const stopWithinMs = 40_000;

/**
 * The process that serves nobody: it keeps the workers running, holds the public port for them and has the admin port.
 * It alone follows the protected list, so that all workers have the same one.
 */
export function createPrimary(input: PrimaryInput): Primary {
  const { config, count, log } = input;
  const metrics = createMetrics({ ofProcess: false });
  const workerMetrics = createWorkerMetrics();
  let draining = false;
  let refusedList: FileBytes | undefined;
  let { secrets } = input;

  const list: WatchedList = watchProtectedList({
    file: config.protectedResources,
    text: input.protectedList,
    paths: config.request,
    onContent(content) {
      refusedList = list.problems().length > 0 ? content : undefined;
      supervisor.emitAll('list', content);
    },
    log,
  });
  const { eventLoopStall } = config.limits;
  const supervisor: Supervisor = new Supervisor({
    count,
    startOf: (number) => ({
      number,
      config,
      protectedList: list.text(),
      refusedList,
      secrets,
    }),
    log,
    onExchanges: (records) => {
      for (const record of records) admin?.note(record);
    },
    onEnd: workerMetrics.retire,
    stallMs: eventLoopStall === 'none' ? undefined : eventLoopStall,
  });
  const inside = createClusterStatus({
    count,
    supervisor,
    workerMetrics,
    metrics,
    hasResolver: config.urlResolver !== false,
    isDraining: () => draining,
  });
  const { explain, version } = input;
  const admin = createAdmin({ config, explain, version, list, inside, metrics, log, now: Date.now });
  registerGauges(metrics, count, supervisor);
  registerListCounters(metrics, list);

  return {
    async listen() {
      const url = await supervisor.start();
      const address = await admin?.server.listen();
      log.info({ event: 'workers', count }, `${count} workers serve`);
      return { url, adminUrl: address && addressUrl('http', address) };
    },
    applySecrets(changed) {
      secrets = changed;
      supervisor.emitAll('secrets', changed);
      if (changed.adminToken !== undefined) admin?.server.useToken(changed.adminToken);
    },
    async reload() {
      list.reload();
      await supervisor.askAll('reload');
    },
    async close(graceMs = config.listen.drainDelay) {
      draining = true;
      list.close();
      await supervisor.stop(graceMs, graceMs + stopWithinMs);
      await admin?.server.close();
    },
  };
}

function registerGauges(metrics: Metrics, count: number, supervisor: Supervisor): void {
  metrics.registerGauge({
    name: 'shopward_workers',
    help: 'Processes that are meant to serve.',
    value: () => count,
  });
  metrics.registerGauge({
    name: 'shopward_workers_serving',
    help: 'Processes that serve.',
    value: () => supervisor.serving,
  });
  metrics.registerCounter({
    name: 'shopward_worker_restarts',
    help: 'Workers that ended by themselves and were replaced.',
    value: () => supervisor.restarts,
  });
}
