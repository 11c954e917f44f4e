import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Cluster, Redis as RedisClient, type RedisOptions } from 'ioredis';
import { isolated } from '../lib/faults.ts';
import { isNotPrimary } from './faults.ts';
import type { RedisAddress } from './redis-url.ts';

/** Credentials for new connections; they may change while the process runs. */
export interface RedisCredentials {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Password of the Sentinels themselves. */
  readonly sentinelPassword?: string | undefined;
  /** PEM texts. Without `ca` Node's root certificates are trusted. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined;
}

export interface ClientOptions {
  readonly address: RedisAddress;
  readonly timeoutMs: number;
  /** The current credentials. */
  credentials: RedisCredentials;
}

export type Client = RedisClient | Cluster;

/**
 * Creates an ioredis client that fails at once instead of waiting: no offline queue, no retries, and commands that were under
 * way when a connection broke are not sent again. By default ioredis would keep a call for a minute, and may run a script twice.
 */
export function createClient(options: ClientOptions): Client {
  const client = buildClient(options);
  // ioredis 6.0.0 gives up for good when a Sentinel announces the next primary while a connection is being made: its
  // failover detector then breaks the attempt, which ends the client without asking the retry strategy.
  const connectAgain = isolated(() => {
    if (!closed.has(client)) client.connect().catch(() => {});
  });
  const onEnd = isolated(() => {
    if (!closed.has(client)) setTimeout(connectAgain, retryDelay(1));
  });
  return client.on('end', onEnd);
}

/** Replaces the credentials for the connections that a client opens from now on. */
export function useCredentials(client: Client, credentials: RedisCredentials): void {
  const changed = optionsOf(credentials);
  const nodes = client instanceof Cluster ? client.nodes('all') : [client];
  for (const { options } of nodes) Object.assign(options, changed);
  if (!(client instanceof Cluster)) return;
  // ioredis 6.0.0 copies the options of further nodes from here.
  const { connectionPool } = client as unknown as { connectionPool: { redisOptions: RedisOptions } };
  Object.assign(connectionPool.redisOptions, changed);
}

function optionsOf({ username, password, sentinelPassword, tls }: RedisCredentials): RedisOptions {
  return {
    username,
    password,
    sentinelPassword,
    ...(tls && { tls: { ...tls }, sentinelTLS: { ...tls } }),
  } as RedisOptions;
}

const closed = new WeakSet<Client>();

/** Ends a client for good. */
export function closeClient(client: Client): void {
  closed.add(client);
  client.disconnect();
}

function buildClient(options: ClientOptions): Client {
  const { address, timeoutMs, credentials } = options;
  const common: RedisOptions = {
    protocol: 2,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    disableClientInfo: true,
    connectTimeout: Math.max(1000, timeoutMs),
    // Nothing comes back from a stopped server or over a dead network path: a new connection may reach a live server.
    socketTimeout: Math.max(1000, 2 * timeoutMs),
    keepAlive: 10_000,
    reconnectOnError: (error) => (isNotPrimary(error) ? 1 : false),
    db: address.db,
    ...optionsOf({ ...credentials, tls: address.tls ? (credentials.tls ?? {}) : undefined }),
  };
  if (address.kind === 'cluster') return createCluster(address, common);
  if (address.kind === 'sentinel') {
    const sentinel: RedisOptions = {
      ...common,
      sentinels: address.hosts.map((host) => ({ ...host })),
      name: address.primaryName,
      retryStrategy: retryDelay,
      sentinelRetryStrategy: retryDelay,
      sentinelCommandTimeout: Math.max(1000, timeoutMs),
      enableTLSForSentinelMode: address.tls,
      failoverDetector: true,
    };
    return new RedisClient(sentinel as StrictOptions);
  }
  const single: RedisOptions = { ...common, ...address.hosts[0], retryStrategy: retryDelay };
  return new RedisClient(single as StrictOptions);
}

/** The options in the type that the overloads of ioredis' constructor accept under exactOptionalPropertyTypes. */
type StrictOptions = Omit<RedisOptions, 'replyMapping'>;

function createCluster(address: RedisAddress, common: RedisOptions): Cluster {
  const { enableOfflineQueue: _, ...redisOptions } = common;
  return new Cluster(
    address.hosts.map((host) => ({ ...host })),
    {
      redisOptions: redisOptions as Omit<StrictOptions, 'enableOfflineQueue'>,
      enableOfflineQueue: false,
      clusterRetryStrategy: retryDelay,
      clusterNodeRetryStrategy: retryDelay,
      slotsRefreshInterval: 2000,
      // 0 switches these retries off: a command that may have been executed is never sent again.
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      retryDelayOnTryAgain: 20,
      maxRedirections: 4,
    },
  );
}

/**
 * Milliseconds until the next attempt to connect: short at first, so that a restart is hardly noticed, then a quarter of
 * a second.
 */
function retryDelay(attempts: number): number {
  return Math.min(20 * attempts, 250) + Math.floor(Math.random() * 20);
}

/**
 * Connects to the first host, sends nothing, and returns the error; undefined: none came in time. For Sentinels and Clusters
 * ioredis 6.0.0 says no more than "Connection is closed".
 */
export function findConnectError(options: ClientOptions): Promise<Error | undefined> {
  const { address, credentials, timeoutMs } = options;
  const { host = '', port = 0 } = address.hosts[0] ?? {};
  return new Promise((resolve) => {
    const socket = address.tls ? connectTls({ host, port, ...credentials.tls }) : connectTcp({ host, port });
    const end = (error: Error | undefined) => {
      socket.destroy();
      resolve(error);
    };
    socket.setTimeout(timeoutMs, () => end(undefined));
    socket.once('error', end);
    socket.once(address.tls ? 'secureConnect' : 'connect', () => end(undefined));
  });
}
