/** A worker: what `serve` does in one process, when and with what its primary says. */
import { type App, createApp } from '../app.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import { createLog, type Log } from '../telemetry/log.ts';
import { type Channel, createChannel, type Line, type WorkerCalls, type WorkerStart } from './channel.ts';
import { watchEventLoop } from './event-loop-watch.ts';

/** Longest that a worker may take to end after a fault of its own. */
const crashLimitMs = 45_000;

/** Serves as the primary says. It ends by itself only after a fault, or when the primary is gone. */
function runWorker(): void {
  let app: App | undefined;
  const { promise: ready, resolve: becomeReady } = Promise.withResolvers<App>();
  // A terminal signals every process of a group; the primary is the one who decides.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

  const started = (): App => {
    if (app === undefined) throw new Error('the worker was not started yet');
    return app;
  };
  const calls: WorkerCalls = {
    async start(start) {
      const log = createLog(start.config.log.level, { worker: start.number });
      app = await createWorkerApp(start, log, channel);
      stopOnFault(app, log, channel);
      becomeReady(app);
      const { url } = await app.listen();
      const { eventLoopStall } = start.config.limits;
      if (eventLoopStall !== 'none') watchEventLoop({ stallMs: eventLoopStall, worker: start.number });
      return url;
    },
    stop(graceMs) {
      const end = () => process.exit(0);
      if (app === undefined) end();
      else app.close(graceMs).then(end, () => process.exit(1));
    },
    ping: () => true,
    reload: () => started().reload(),
    // A change that comes while this one starts must not be lost.
    list: async (content) => (await ready).applyList(content),
    secrets: async (secrets) => (await ready).applySecrets(secrets),
    health: () => started().status.health(),
    metrics: () => started().metricValues(),
    system: () => started().status.system(),
    census: async () => started().status.census?.(),
    rollout: async () => started().status.ownRollout?.(),
    inspectToken: async ({ token, scopes }) => started().status.inspectToken(token, scopes),
    purge: async (which) => started().status.purge?.(which),
  };
  const channel: Channel = createChannel(process as unknown as Line, { ...calls });
}

async function createWorkerApp(start: WorkerStart, log: Log, channel: Channel): Promise<App> {
  const { config, protectedList, refusedList, secrets } = start;
  const batch = createExchangeBatch((records) => channel.emit('exchanges', records));
  const app = await createApp({
    config,
    protectedList,
    secrets,
    log,
    // Without an admin port nobody wants to know.
    worker: { onExchange: config.admin === false ? () => {} : batch.add },
  });
  if (refusedList !== undefined) await app.applyList(refusedList);
  return app;
}

/** Node's state is unknown after such a fault: what is in flight is finished, and another worker takes the place. */
function stopOnFault(app: App, log: Log, channel: Channel): void {
  let isFailing = false;
  process.on('uncaughtException', (fault, origin) => {
    log.fatal({ event: 'crash', origin, err: fault }, 'a fault that nobody caught');
    if (isFailing) return;
    isFailing = true;
    setTimeout(() => process.exit(1), crashLimitMs).unref();
    void channel.emit('failing', undefined);
    const end = () => process.exit(1);
    app.close(0).then(end, end);
  });
}

interface ExchangeBatch {
  add(record: ExchangeRecord): void;
}

const pauseMs = 200;
/** A primary that does not read must not fill the memory of those who serve; the console then misses some. */
const most = 20_000;

/** Gathers exchanges and sends them together, one batch at a time; requests never wait for it. */
function createExchangeBatch(send: (records: readonly ExchangeRecord[]) => Promise<void>): ExchangeBatch {
  let records: ExchangeRecord[] = [];
  let isDue = false;
  const flush = () => {
    const batch = records;
    records = [];
    void send(batch).then(() => {
      isDue = false;
      if (records.length > 0) schedule();
    });
  };
  const schedule = () => {
    if (isDue) return;
    isDue = true;
    setTimeout(flush, pauseMs).unref();
  };
  return {
    add(record) {
      if (records.length < most) records.push(record);
      schedule();
    },
  };
}

runWorker();
