import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { listen } from '../../harness/listen.ts';
import { sleepAwake } from '../../harness/sleep-awake.ts';

/** A correct shop for every kind of route that counts lost updates and double exchanges. Faults are added in front of it. */
export interface OutageShop {
  readonly port: number;
  /** Writes based on another state of the cart than the one that they replaced. */
  readonly lostUpdates: number;
  /** Refresh tokens exchanged again although their first answer was not lost. */
  readonly doubleExchanges: number;
  /** Whether the shop has exchanged the token. Only then may its owner get 401. */
  hasExchanged(refreshToken: string): boolean;
  /** Notes that a client got no answer, or none that tells the outcome: it may send the token again. */
  noteLost(refreshToken: string): void;
  /** Number of requests that arrived at each address. */
  readonly arrivals: ReadonlyMap<string, number>;
  /** Answers instead of the shop; undefined: the shop answers. */
  instead: ((response: ServerResponse) => void) | undefined;
  close(): Promise<void>;
}

export interface OutageShopOptions {
  /**
   * Ends connections that had no request for this time, unannounced. The time stands still while this process stalls, as if
   * the shop had its own machine. Default: never.
   */
  readonly idleMs?: number;
  /** Listens at these addresses, all on one port. Default: 127.0.0.1. */
  readonly addresses?: readonly string[];
}

interface Write {
  readonly basedOn?: number;
  readonly data?: { readonly attributes?: { readonly refreshToken?: string } };
}

/** Makes bodies longer than any cut in the tables of faults. */
const padding = 'x'.repeat(400);

export async function startOutageShop(options: OutageShopOptions = {}): Promise<OutageShop> {
  const { idleMs, addresses = ['127.0.0.1'] } = options;
  const versions = new Map<string, number>();
  const exchanged = new Map<string, number>();
  const lost = new Set<string>();
  const arrivals = new Map<string, number>();
  /** Number of requests on each connection. */
  const requests = new WeakMap<Socket, number>();
  let lostUpdates = 0;
  let issued = 0;

  const answer = (request: IncomingMessage, body: Write): readonly [status: number, data: object] => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://shop.example');
    const [, type = '', id = ''] = pathname.split('/');
    if (type === 'url-resolver') {
      const attributes = { entityType: 'abstract-products', entityId: searchParams.get('url') };
      return [200, { data: [{ type, id: null, attributes }] }];
    }
    if (type === 'refresh-tokens') {
      const used = body.data?.attributes?.refreshToken ?? '';
      const times = (exchanged.get(used) ?? 0) + 1;
      exchanged.set(used, times);
      if (times > 1) return [401, { errors: [{ code: '004', status: 401, detail: 'used' }] }];
      issued += 1;
      const attributes = {
        tokenType: 'Bearer',
        expiresIn: 600,
        accessToken: 'a.b.c',
        refreshToken: `r-${issued}`,
      };
      return [201, { data: { type, id: null, attributes } }];
    }
    const version = versions.get(id) ?? 1;
    if (request.method !== 'PATCH') return [request.method === 'POST' ? 201 : 200, cart(type, id, version)];
    if (body.basedOn !== version) lostUpdates += 1;
    versions.set(id, version + 1);
    return [200, cart(type, id, version + 1)];
  };
  const endWhenIdle = async (socket: Socket) => {
    if (idleMs === undefined) return;
    const seen = requests.get(socket);
    await sleepAwake(idleMs);
    if (requests.get(socket) === seen) socket.destroy();
  };
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    requests.set(socket, (requests.get(socket) ?? 0) + 1);
    response.once('finish', () => void endWhenIdle(socket));
    const address = request.socket.localAddress ?? '';
    arrivals.set(address, (arrivals.get(address) ?? 0) + 1);
    const text = await readText(request).catch(() => undefined);
    if (text === undefined) return;
    if (shop.instead !== undefined) return shop.instead(response);
    const [status, data] = answer(request, text === '' ? {} : JSON.parse(text));
    const document = JSON.stringify({ ...data, padding });
    response
      // Set here, so that Node adds no `Keep-Alive` field.
      .writeHead(status, {
        Connection: 'keep-alive',
        'Content-Type': 'application/vnd.api+json',
        'Content-Length': Buffer.byteLength(document),
      })
      .end(document);
  };
  const closings: (() => Promise<void>)[] = [];
  let port = 0;
  for (const address of addresses) {
    const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
      void take(request, response);
    });
    const one = await listen(server, { port, host: address });
    port = one.port;
    closings.push(one.close);
  }
  const shop: OutageShop = {
    port,
    get lostUpdates() {
      return lostUpdates;
    },
    get doubleExchanges() {
      return [...exchanged].filter(([token, times]) => times > 1 && !lost.has(token)).length;
    },
    hasExchanged: (refreshToken) => exchanged.has(refreshToken),
    noteLost: (refreshToken) => void lost.add(refreshToken),
    arrivals,
    instead: undefined,
    close: async () => void (await Promise.all(closings.map((close) => close()))),
  };
  return shop;
}

function cart(type: string, id: string, version: number): object {
  return { data: { type, id, attributes: { version } } };
}
