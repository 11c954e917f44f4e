import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { listen } from './listen.ts';

export interface Replica {
  readonly port: number;
  readonly adminPort: number;
}

const pollMs = 250;

/**
 * A small round-robin balancer that follows /readyz, as real balancers do. Keeps connections to its replicas. A request on a connection that breaks is a failure, because a write must not be
 * repeated. A refused connection is one too: a replica must say early enough that it is not ready.
 */
export async function startBalancer() {
  const ready: Replica[] = [];
  const known = new Set<Replica>();
  const agents = new Map<Replica, http.Agent>();
  /** Requests that the balancer itself answered, with the reasons. */
  const failures: string[] = [];
  let next = 0;

  const look = async (replica: Replica) => {
    const response = await fetch(`http://127.0.0.1:${replica.adminPort}/readyz`).catch(() => undefined);
    const isReady = response?.status === 200 && known.has(replica);
    const index = ready.indexOf(replica);
    if (isReady && index < 0) ready.push(replica);
    if (!isReady && index >= 0) ready.splice(index, 1);
    return isReady;
  };
  // One look at a time: an old answer must not replace a newer one.
  const watch = async (replica: Replica) => {
    for (;;) {
      await sleep(pollMs);
      if (!known.has(replica)) return;
      await look(replica);
    }
  };

  const forward = (incoming: IncomingMessage, response: ServerResponse, body: Buffer) => {
    const replica = ready[next++ % ready.length];
    const fail = (why: string) => {
      failures.push(`${incoming.method} ${incoming.url}: ${why}`);
      response.writeHead(502).end();
    };
    if (replica === undefined) return fail('no replica is ready');
    const { method, url: path, headers } = incoming;
    const request = http.request(
      { port: replica.port, host: '127.0.0.1', method, path, headers, agent: agents.get(replica) },
      (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(response);
        answer.on('error', (fault) => {
          failures.push(`${method} ${path}: cut, ${fault.message}`);
          response.destroy();
        });
      },
    );
    request.on('error', (fault: NodeJS.ErrnoException) => {
      if (response.headersSent) return;
      fail(`${fault.code} (reused: ${request.reusedSocket})`);
    });
    request.end(body);
  };
  const server = http.createServer(async (incoming, response) =>
    forward(incoming, response, await buffer(incoming)),
  );
  const { port, close } = await listen(server);

  return {
    port,
    /** Sends requests to a new replica once it is ready. */
    async add(replica: Replica) {
      known.add(replica);
      agents.set(replica, new http.Agent({ keepAlive: true, maxSockets: 16 }));
      while (!(await look(replica))) await sleep(pollMs);
      void watch(replica);
    },
    remove(replica: Replica) {
      known.delete(replica);
      agents.get(replica)?.destroy();
    },
    failures,
    async close() {
      known.clear();
      for (const agent of agents.values()) agent.destroy();
      await close();
    },
  };
}
