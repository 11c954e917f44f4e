import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { WatchedList } from '../access/watched-list.ts';
import { addressUrl, createAdmin } from '../app/admin.ts';
import { Drain } from '../app/process-status.ts';
import { createSettings, type Secrets } from '../app/secrets.ts';
import type { AppInput } from '../app.ts';
import type { Config } from '../config/schema.ts';
import { counter, gauge, type MetricSpec } from '../lib/component.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { createClusterStatus, WorkerMetrics } from './aggregate.ts';
import { Supervisor } from './supervisor.ts';

interface PrimaryInput extends Pick<AppInput, 'config' | 'protectedList' | 'secrets' | 'log' | 'explain'> {
  /** Number of processes that serve; at least 2. */
  readonly count: number;
  readonly version: string;
}

/** Milliseconds after the grace: a worker drains for at most 30 s, and then closes its components. */
const stopWithinMs = 40_000;

/**
 * The primary process: it serves no requests, keeps the workers running and has the admin port. It alone watches the protected
 * list, so that all workers have the same one.
 */
export function createPrimary({ config, count, log, version, explain, ...input }: PrimaryInput) {
  const { protectedResources: file, request: paths, listen, limits } = config;
  const metrics = createMetrics({ ofProcess: false });
  const workerMetrics = new WorkerMetrics();
  const drain = new Drain();
  const settings = createSettings(config, log);
  let { secrets } = input;
  /** The public port, fixed at the start: workers that are started later must get the same one. */
  let port = 0;
  const list = new WatchedList({ file, ...input.protectedList, paths, log });
  const supervisor: Supervisor = new Supervisor({
    ...{ count, log, stallMs: limits.eventLoopStall },
    startOf: (number) => ({
      ...{ number, version, secrets, protectedList: list.packed() },
      config: { ...settings.inForce(), listen: { ...listen, port } },
    }),
    onExchanges(records) {
      for (const record of records) {
        metrics.decisions.note(record, Date.now());
        admin?.noteExchange(record);
      }
    },
    onEnd(pid) {
      workerMetrics.retire(pid);
      if (!drain.hasBegun) admin?.noteRestart();
    },
  });
  list.onApplied((packed) => supervisor.emitAll('list', packed));
  const status = createClusterStatus({ config, count, supervisor, workerMetrics, metrics, drain, list });
  const { inForce } = settings;
  const admin = createAdmin({ config, inForce, explain, version, list, status, metrics, log });
  metrics.register(...supervisorMetrics(count, supervisor), ...list.metrics);
  return {
    async listen() {
      port = await chosenPort(listen);
      const url = await supervisor.start();
      const address = await admin?.server.listen();
      log.info({ event: 'workers', count }, `${count} workers serve`);
      return { url, adminUrl: address && addressUrl('http', address) };
    },
    /** Applies secrets in all workers, and in those that start later. */
    applySecrets(changed: Secrets) {
      secrets = changed;
      settings.use(changed.hot);
      supervisor.emitAll('secrets', changed);
      if (changed.adminToken !== undefined) admin?.server.useToken(changed.adminToken);
    },
    async reload() {
      list.reload();
      await supervisor.askAll('reload');
    },
    async close(graceMs = listen.drainDelay) {
      drain.begin();
      list.close();
      await supervisor.stop(graceMs, graceMs + stopWithinMs);
      await admin?.server.close();
    },
  };
}

/**
 * The configured port; for 0 a free one, which later workers get too. Rejects if the port is taken: workers would share it
 * with any process of this user that also listens with SO_REUSEPORT.
 */
async function chosenPort({ host, port }: Config['listen']): Promise<number> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  const { port: free } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return free;
}

function supervisorMetrics(count: number, supervisor: Supervisor): MetricSpec[] {
  return [
    gauge('shopward_workers', 'Processes that are meant to serve.', 'sum', () => count),
    gauge('shopward_workers_serving', 'Processes that serve.', 'sum', () => supervisor.serving.length),
    counter('shopward_worker_restarts', 'Workers that ended and were replaced.', () => supervisor.restarts),
  ];
}
