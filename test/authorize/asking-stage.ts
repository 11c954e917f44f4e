import { once } from 'node:events';
import http from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { connect } from 'node:tls';
import type { Asked, Front } from '../deploy/front.ts';
import { freePort } from '../harness/free-port.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { type HereOptions, startShopwardHere } from '../harness/shopward-here.ts';

/** A front that asks shopward and forwards to the shop itself. */
export interface AskingStage {
  /** Takes octets without TLS, for a front that speaks TLS. */
  readonly port: number;
  readonly shopward: RunningShopward;
  /** What the front has asked, and the status of each answer. */
  readonly questions: readonly Question[];
  close(): Promise<void>;
}

interface Question {
  readonly method: string;
  readonly target: string;
  readonly status: number;
}

export async function startAskingStage(
  start: (ports: Asked) => Promise<Front>,
  shop: number,
  options: Omit<HereOptions, 'upstream'> = {},
): Promise<AskingStage> {
  const authorize = await freePort();
  const shopward = await startShopwardHere({
    ...options,
    upstream: `http://127.0.0.1:${shop}`,
    config: {
      trustedProxies: ['127.0.0.1/32'],
      authorize: { listen: { port: authorize } },
      auth: { forward: { subject: 'X-User' } },
      ...options.config,
    },
  });
  const questions: Question[] = [];
  const witness = http.createServer((incoming, response) => pass(incoming, response, authorize, questions));
  const front = await start({ shop, authorize: await listening(witness) });
  const tunnel = createServer((client) => {
    const server = connect({ host: '127.0.0.1', port: front.port, rejectUnauthorized: false });
    for (const socket of [client, server])
      socket.on('error', () => [client, server].map((one) => one.destroy()));
    client.pipe(server).pipe(client);
  });
  return {
    port: await listening(tunnel),
    shopward,
    questions,
    async close() {
      await front.close();
      await shopward.stop();
      tunnel.close();
      witness.closeAllConnections();
      witness.close();
    },
  };
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Stands between the front and shopward, and changes nothing. */
function pass(
  incoming: http.IncomingMessage,
  response: http.ServerResponse,
  port: number,
  questions: Question[],
): void {
  const { method, url, rawHeaders: headers } = incoming;
  const field = (name: string) =>
    ['x-original-', 'x-forwarded-']
      .map((start) => incoming.headers[start + name])
      .find((one) => one !== undefined);
  const asked = http.request(
    { host: '127.0.0.1', port, method, path: url, headers, agent: false },
    (answer) => {
      const status = answer.statusCode ?? 0;
      questions.push({ method: String(field('method')), target: String(field('uri')), status });
      response.writeHead(status, answer.rawHeaders);
      answer.pipe(response);
    },
  );
  asked.on('error', () => response.destroy());
  asked.end();
}
