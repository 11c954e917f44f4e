import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * A port that was free a moment ago. It lies below those that systems give away by themselves, so that nobody's
 * connection and nobody's port 0 takes it before it is used, or while its server is down.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
