import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { publicJwk, type Signer } from './signing.ts';

/** A real key server whose answers a test chooses, failures included. */
export interface JwksServer {
  readonly url: string;
  /** Requests so far. */
  readonly hits: number;
  answer(respond: (response: ServerResponse) => void): void;
  serve(...signers: readonly Signer[]): void;
  /** Breaks every connection. */
  goDown(): void;
  /** Delays every answer; the returned function sends them, with these keys, and serves these keys from then on. */
  delay(...signers: readonly Signer[]): () => void;
  /** Resolves at the next request after this call. */
  nextHit(): Promise<void>;
  close(): Promise<void>;
}

export async function startJwksServer(...signers: readonly Signer[]): Promise<JwksServer> {
  let hits = 0;
  let respond = serveKeys(signers);
  let told: () => void = () => {};
  const server = createServer((_, response) => {
    hits++;
    told();
    respond(response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`,
    get hits() {
      return hits;
    },
    answer: (next) => {
      respond = next;
    },
    serve: (...next) => {
      respond = serveKeys(next);
    },
    goDown() {
      respond = (response) => response.destroy();
    },
    delay(...next) {
      const delayed: ServerResponse[] = [];
      respond = (response) => void delayed.push(response);
      return () => {
        respond = serveKeys(next);
        for (const response of delayed) respond(response);
      };
    },
    nextHit: () =>
      new Promise((resolve) => {
        told = resolve;
      }),
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
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
