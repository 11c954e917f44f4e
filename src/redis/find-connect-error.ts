import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ClientOptions } from './clients.ts';

/**
 * Why the first host of the address cannot be connected to, or undefined when it can: of Sentinels and of a Cluster ioredis
 * 6.0.0 says no more than "Connection is closed". Nothing is sent.
 */
export function findConnectError({ address, tls, timeoutMs }: ClientOptions): Promise<Error | undefined> {
  const { host = '', port = 0 } = address.hosts[0] ?? {};
  return new Promise((resolve) => {
    const socket = address.tls ? connectTls({ host, port, ...tls }) : connectTcp({ host, port });
    const end = (error: Error | undefined) => {
      socket.destroy();
      resolve(error);
    };
    socket.setTimeout(timeoutMs, () => end(undefined));
    socket.once('error', end);
    socket.once(address.tls ? 'secureConnect' : 'connect', () => end(undefined));
  });
}
