import { createServer, type ServerResponse } from 'node:http';
import { listen } from '../../harness/listen.ts';
import { publicJwk, type Signer } from './signing.ts';

export type JwksServer = Awaited<ReturnType<typeof startJwksServer>>;

/** A real key server whose answers a test chooses, failures included. */
export async function startJwksServer(...signers: readonly Signer[]) {
  let hits = 0;
  let respond = serveKeys(signers);
  let told: () => void = () => {};
  const server = createServer((_, response) => {
    hits++;
    told();
    respond(response);
  });
  const { url, close } = await listen(server);
  return {
    url: `${url}/jwks.json`,
    /** Requests so far. */
    get hits() {
      return hits;
    },
    answer: (next: typeof respond) => {
      respond = next;
    },
    serve: (...next: readonly Signer[]) => {
      respond = serveKeys(next);
    },
    /** Breaks every connection. */
    goDown() {
      respond = (response) => response.destroy();
    },
    /** Delays every answer; the returned function sends them, with these keys, and serves these keys from then on. */
    delay(...next: readonly Signer[]) {
      const delayed: ServerResponse[] = [];
      respond = (response) => void delayed.push(response);
      return () => {
        respond = serveKeys(next);
        for (const response of delayed) respond(response);
      };
    },
    /** Resolves at the next request after this call. */
    nextHit: () =>
      new Promise<void>((resolve) => {
        told = resolve;
      }),
    close,
  };
}

export function serveKeys(signers: readonly Signer[]): (response: ServerResponse) => void {
  return serveJson({ keys: signers.map((signer) => publicJwk(signer, { use: 'sig' })) });
}

export function serveJson(value: unknown): (response: ServerResponse) => void {
  return (response) => {
    response.setHeader('Content-Type', 'application/json');
    response.end(typeof value === 'string' ? value : JSON.stringify(value));
  };
}
