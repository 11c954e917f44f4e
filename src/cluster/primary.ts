import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type StartList, WatchedList } from '../access/watched-list.ts';
import { addressUrl, createAdmin, type Explain } from '../app/admin.ts';
import { Drain } from '../app/process-status.ts';
import { type Secrets, SettingsInForce } from '../app/secrets.ts';
import type { Config } from '../config/schema.ts';
import { counter, gauge, type MetricSpec } from '../lib/component.ts';
import type { Log } from '../telemetry/log.ts';
import { createMetrics, type Metrics } from '../telemetry/metrics.ts';
import { createClusterStatus, WorkerMetrics } from './aggregate.ts';
import { Supervisor } from './supervisor.ts';
import type { Running } from './until-stopped.ts';

interface PrimaryInput {
  readonly config: Config;
  /** Number of processes that serve; at least 2. */
  readonly count: number;
  readonly protectedList: StartList;
  /** The secrets at the start; `applySecrets` replaces them. */
  readonly secrets: Secrets;
  readonly log: Log;
  readonly version: string;
  readonly explain: Explain | undefined;
}

/** Milliseconds after the grace: a worker drains for at most 30 s, and then closes its components. */
const stopWithinMs = 40_000;

/**
 * The primary process: it serves no requests, keeps the workers running and has the admin port. It alone watches the protected list, so that all workers have the same one.
 */
export class Primary implements Running {
  readonly #input: PrimaryInput;
  readonly #list: WatchedList;
  readonly #supervisor: Supervisor;
  readonly #admin: ReturnType<typeof createAdmin>;
  readonly #drain = new Drain();
  readonly #settings: SettingsInForce;
  #secrets: Secrets;
  /** The public port, fixed at the start: workers that are started later must get the same one. */
  #port = 0;

  constructor(input: PrimaryInput) {
    const { config, count, log, explain, version } = input;
    const metrics = createMetrics({ ofProcess: false });
    const workerMetrics = new WorkerMetrics();
    this.#input = input;
    this.#secrets = input.secrets;
    this.#settings = new SettingsInForce(config, log);
    this.#list = new WatchedList({
      file: config.protectedResources,
      ...input.protectedList,
      paths: config.request,
      log,
    });
    this.#list.onApplied((packed) => this.#supervisor.emitAll('list', packed));
    this.#supervisor = this.#createSupervisor(workerMetrics, metrics);
    const status = createClusterStatus({
      count,
      supervisor: this.#supervisor,
      workerMetrics,
      metrics,
      hasResolver: config.urlResolver !== false,
      countsRollout: config.rollout !== false,
      drain: this.#drain,
      list: this.#list,
    });
    const list = this.#list;
    this.#admin = createAdmin({
      config,
      inForce: this.#settings.inForce,
      explain,
      version,
      list,
      status,
      metrics,
      log,
    });
    metrics.register(...supervisorMetrics(count, this.#supervisor), ...list.metrics);
  }

  async listen(): Promise<{ readonly url: string; readonly adminUrl: string | undefined }> {
    const { config, count, log } = this.#input;
    this.#port = await chosenPort(config.listen);
    const url = await this.#supervisor.start();
    const address = await this.#admin?.server.listen();
    log.info({ event: 'workers', count }, `${count} workers serve`);
    return { url, adminUrl: address && addressUrl('http', address) };
  }

  /** Applies secrets in all workers, and in those that start later. */
  applySecrets(secrets: Secrets): void {
    this.#secrets = secrets;
    this.#settings.use(secrets.hot);
    this.#supervisor.emitAll('secrets', secrets);
    if (secrets.adminToken !== undefined) this.#admin?.server.useToken(secrets.adminToken);
  }

  async reload(): Promise<void> {
    this.#list.reload();
    await this.#supervisor.askAll('reload');
  }

  async close(graceMs: number = this.#input.config.listen.drainDelay): Promise<void> {
    this.#drain.begin();
    this.#list.close();
    await this.#supervisor.stop(graceMs, graceMs + stopWithinMs);
    await this.#admin?.server.close();
  }

  #createSupervisor(workerMetrics: WorkerMetrics, { decisions }: Metrics): Supervisor {
    const { config, count, log, version } = this.#input;
    const { eventLoopStall } = config.limits;
    return new Supervisor({
      count,
      startOf: (number) => ({
        number,
        version,
        config: { ...this.#settings.inForce(), listen: { ...config.listen, port: this.#port } },
        protectedList: this.#list.packed(),
        secrets: this.#secrets,
      }),
      log,
      onExchanges: (records) => {
        for (const record of records) {
          decisions.note(record, Date.now());
          this.#admin?.noteExchange(record);
        }
      },
      onEnd: (pid) => {
        workerMetrics.retire(pid);
        if (!this.#drain.hasBegun) this.#admin?.noteRestart();
      },
      stallMs: eventLoopStall === 'none' ? undefined : eventLoopStall,
    });
  }
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
    gauge('shopward_workers_serving', 'Processes that serve.', 'sum', () => supervisor.serving),
    counter('shopward_worker_restarts', 'Workers that ended and were replaced.', () => supervisor.restarts),
  ];
}
