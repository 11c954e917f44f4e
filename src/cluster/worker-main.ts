/** The entry of a worker process. */
import { type App, createApp } from '../app.ts';
import { ExchangeBatch } from '../telemetry/exchange-record.ts';
import { createLog, type Log } from '../telemetry/log.ts';
import { type Channel, createChannel, type Line, type WorkerCalls, type WorkerStart } from './channel.ts';
import { watchEventLoop } from './event-loop-watch.ts';
import { endAfterFault } from './until-stopped.ts';

/** Serves as the primary tells it. Ends by itself only after a fault, a blocked event loop or the end of the primary. */
function runWorker(): void {
  let app: App | undefined;
  const { promise: ready, resolve: becomeReady } = Promise.withResolvers<App>();
  // A terminal sends its signals to the whole process group; the primary handles them for its workers.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

  const started = (): App => {
    if (app === undefined) throw new Error('the worker was not started yet');
    return app;
  };
  const calls: WorkerCalls = {
    async start(start) {
      const log = createLog(start.config.log.level, { worker: start.number });
      app = await createWorkerApp(start, log, channel);
      becomeReady(app);
      const { close } = app;
      const end = () => process.exit(1);
      endAfterFault(log, () => {
        // So that the primary replaces this worker now.
        void channel.emit('failing', undefined);
        close(0).then(end, end);
      });
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
    // A change that arrives during the start must not be lost.
    list: async (content) => (await ready).adoptList(content),
    secrets: async (secrets) => (await ready).applySecrets(secrets),
    health: () => started().status.health(),
    metrics: () => started().metricValues(),
    system: () => started().status.system(),
    rollout: async () => started().status.rollout?.(),
    inspectToken: async ({ token, asked }) => started().status.inspectToken(token, asked),
    purge: async (which) => started().status.purge?.(which),
  };
  const channel: Channel = createChannel(process as unknown as Line, { ...calls });
}

async function createWorkerApp(start: WorkerStart, log: Log, channel: Channel): Promise<App> {
  const { config, protectedList, secrets, version } = start;
  const batch = new ExchangeBatch((records) => channel.emit('exchanges', records));
  return createApp({
    config,
    protectedList: { text: '', packed: protectedList },
    secrets,
    version,
    log,
    worker: {
      // Without an admin port no console shows the exchanges.
      noteExchange: config.admin === false ? undefined : (record) => batch.add(record),
    },
  });
}

runWorker();
