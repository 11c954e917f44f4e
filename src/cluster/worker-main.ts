/** The entry of a worker process. */
import { type App, createApp } from '../app.ts';
import { createExchangeBatch } from '../telemetry/exchange-record.ts';
import { createLog } from '../telemetry/log.ts';
import { type Channel, createChannel, type Line, type WorkerCalls } from './channel.ts';
import { watchEventLoop } from './event-loop-watch.ts';
import { endAfterFault } from './until-stopped.ts';

/** Serves as the primary tells it. Ends by itself only after a fault, a blocked event loop or the end of the primary. */
function runWorker(): void {
  let app: App | undefined;
  const { promise: ready, resolve: becomeReady } = Promise.withResolvers<App>();
  // A terminal sends its signals to the whole process group; the primary handles them for its workers.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1'] as const) process.on(signal, () => {});

  const calls: WorkerCalls = {
    async start({ number, version, config, protectedList, secrets }) {
      const log = createLog(config.log.level, { worker: number });
      const noteExchange = createExchangeBatch((records) => channel.emit('exchanges', records));
      app = await createApp({
        ...{ config, secrets, version, log },
        protectedList: { text: '', packed: protectedList },
        // Without an admin port no console shows the exchanges.
        worker: { noteExchange: config.admin === false ? undefined : noteExchange },
      });
      becomeReady(app);
      const { close } = app;
      const end = () => process.exit(1);
      endAfterFault(log, () => {
        // So that the primary replaces this worker now.
        void channel.emit('failing', undefined);
        close(0).then(end, end);
      });
      const { url } = await app.listen();
      const { eventLoopStall } = config.limits;
      if (eventLoopStall !== 'none') watchEventLoop(eventLoopStall, number);
      return url;
    },
    stop(graceMs) {
      const end = () => process.exit(0);
      if (app === undefined) end();
      else app.close(graceMs).then(end, () => process.exit(1));
    },
    ping: () => true,
    // A change that arrives during the start must not be lost.
    list: async (content) => (await ready).adoptList(content),
    secrets: async (secrets) => (await ready).applySecrets(secrets),
    reload: async () => (await ready).reload(),
    health: async () => (await ready).status.health(),
    metrics: async () => (await ready).metricValues(),
    system: async () => (await ready).status.system(),
    rollout: async () => (await ready).status.rollout?.(),
    inspectToken: async ({ token, asked }) => (await ready).status.inspectToken(token, asked),
    purge: async (which) => (await ready).status.purge?.(which),
  };
  const channel: Channel = createChannel(process as unknown as Line, { ...calls });
}

runWorker();
