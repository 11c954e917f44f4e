import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Each worker of Vitest has ports of its own, so that no other test takes one before it is used, or while its server is down. */
const portsOfWorker = 2_200;
const firstPort = 10_000 + portsOfWorker * (Number(process.env.VITEST_POOL_ID ?? 0) % 10);
/** The last ones, so that none is given twice to servers that run at the same time. */
const given: number[] = [];

/**
 * A port that was free a moment ago, and none of the last thousand. It is below the ephemeral range, so that no outgoing connection
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

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
