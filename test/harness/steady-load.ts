import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

export interface LoadRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/**
 * Pause between two requests of a client. Without it the load takes the whole CPU and finds no more faults: with it, eight
 * clients notice a list that is missing for one tick of the event loop, within a hundred edits.
 */
const pauseMs = 15;

/** `clients` that each send one request after the other, over keep-alive connections. */
export function startSteadyLoad(
  port: number,
  clients: number,
  next: (n: number) => LoadRequest,
  onAnswer?: (request: LoadRequest, status: number, body: string) => void,
) {
  const agent = new http.Agent({ keepAlive: true });
  /** Answers so far, by status; 0 counts requests without an answer. */
  const statuses = new Map<number, number>();
  const waiting = new Set<{ at: number; resolve: () => void }>();
  let sent = 0;
  let total = 0;
  let stopping = false;

  const note = (status: number) => {
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    total++;
    for (const one of waiting) {
      if (total < one.at) continue;
      waiting.delete(one);
      one.resolve();
    }
  };
  const client = async () => {
    while (!stopping) {
      const request = next(sent++);
      const { status, body } = await exchange(port, agent, request);
      note(status);
      onAnswer?.(request, status, body);
      await sleep(pauseMs);
    }
  };
  const running = Array.from({ length: clients }, client);
  return {
    statuses,
    get total() {
      return total;
    },
    /** Resolves when this many more requests have been answered. */
    more: (count: number) => new Promise<void>((resolve) => waiting.add({ at: total + count, resolve })),
    /** Ends after the current requests. */
    async stop() {
      stopping = true;
      await Promise.all(running);
      agent.destroy();
    },
  };
}

function exchange(
  port: number,
  agent: http.Agent,
  { method, path, headers, body }: LoadRequest,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve) => {
    const request = http.request(
      { port, host: '127.0.0.1', method, path, agent, headers: { Host: 'shop.example', ...headers } },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
        response.on('error', () => resolve({ status: 0, body: text }));
      },
    );
    request.on('error', () => resolve({ status: 0, body: '' }));
    request.end(body);
  });
}
