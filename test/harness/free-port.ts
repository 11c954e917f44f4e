import { randomInt } from 'node:crypto';
import { connect, createServer } from 'node:net';
import { eventually } from './eventually.ts';

/** Each worker of Vitest has its own range, so that no other test takes a port before it is used, or while its server is down. */
const portsOfWorker = 2_200;
const firstPort = 10_000 + portsOfWorker * (Number(process.env.VITEST_POOL_ID ?? 0) % 10);
/** The latest ports: two running servers must not get the same one. */
const given: number[] = [];

/**
 * A free port that is not among the last thousand given. It is below the ephemeral range, so that no outgoing connection
 * and no other `port: 0` gets it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstPort + randomInt(portsOfWorker);
    if (given.includes(port) || !(await isFree(port))) continue;
    given.push(port);
    if (given.length > 1_000) given.shift();
    return port;
  }
}

/** Whether a server listens on the port; undefined: none does. */
export function isOpen(port: number): Promise<true | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(undefined));
  });
}

/** Waits until connections to the port are refused. */
export const untilRefused = (port: number) =>
  eventually('a refused connection', async () => ((await isOpen(port)) ? undefined : true));

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
