import { startFaultProxy } from '../../harness/fault-proxy.ts';
import { freePort } from '../../harness/free-port.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';

export type Replica = Awaited<ReturnType<typeof startReplica>>;

export interface ReplicaOptions {
  readonly upstreamPort: number;
  readonly config: object;
  readonly redisUrl: string;
  /** Port of a single Redis; each replica then gets its own link. */
  readonly redisPort: number | undefined;
}

/** A proxy process that can be killed and started again on the same port. */
export async function startReplica(options: ReplicaOptions) {
  const port = await freePort();
  /** Its own connection path to Redis, for faults of this replica alone; undefined with Sentinel. */
  const link = options.redisPort === undefined ? undefined : await startFaultProxy(options.redisPort);
  const url = link === undefined ? options.redisUrl : `redis://127.0.0.1:${link.port}`;
  const start = () =>
    startShopward({
      upstream: `http://127.0.0.1:${options.upstreamPort}`,
      rows: ['ANY /carts/**'],
      config: withStore({ ...options.config, listen: { port }, log: { level: 'error' } }, url),
    });
  let process: Shopward = await start();
  const faults: string[] = [];
  const noteFaults = () =>
    faults.push(
      ...process
        .output()
        .split('\n')
        .filter((line) => /"event":"fault"|nhandled|uncaught/i.test(line)),
    );
  return {
    port,
    link,
    stop: () => process.signal('SIGSTOP'),
    resume: () => process.signal('SIGCONT'),
    /** Kills with SIGKILL, and resolves when a new process serves. */
    async replace() {
      noteFaults();
      await process.kill();
      process = await start();
    },
    /** Log lines that show a bug, of all processes of this replica. */
    faults: () => faults,
    /** `/readyz` and the log of the current process. */
    tell: async () => `${await (await fetch(`${process.adminUrl}/readyz`)).text()}\n${process.output()}`,
    async close() {
      noteFaults();
      await process.kill();
      await link?.close();
    },
  };
}

function withStore(
  config: { readonly store?: object; readonly listen: object; readonly log: object },
  url: string,
) {
  return { ...config, store: { ...config.store, url } };
}
