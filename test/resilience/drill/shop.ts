import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { sleepAwake } from '../../harness/sleep-awake.ts';

/** A shop with carts, orders and refresh tokens that knows what must never happen to it. */
export interface DrillShop {
  readonly port: number;
  /** Writes of a cart that were based on another state than the one that they replaced. */
  readonly lostUpdates: number;
  /** Refresh tokens that arrived again though their first answer was not lost. */
  readonly doubleExchanges: number;
  /** Whether the shop has exchanged it: only then may its owner be answered that it is used up. */
  hasExchanged(refreshToken: string): boolean;
  /** A client has no answer, or one that leaves it open: it may come again with the token, later. */
  noteLost(refreshToken: string): void;
  /** Connections that arrived at each address, and requests. */
  readonly arrivals: ReadonlyMap<string, number>;
  close(): void;
}

export interface DrillShopOptions {
  /**
   * Ends connections that were idle for so long, and says nothing of it. While this process stands still they age no
   * further, as if the shop had a machine of its own. Default: never.
   */
  readonly idleMs?: number;
  /** Takes connections at these addresses, all on one port. Default: 127.0.0.1. */
  readonly addresses?: readonly string[];
}

interface Write {
  readonly basedOn?: number;
  readonly data?: { readonly attributes?: { readonly refreshToken?: string } };
}

export async function startDrillShop(options: DrillShopOptions = {}): Promise<DrillShop> {
  const { idleMs, addresses = ['127.0.0.1'] } = options;
  const versions = new Map<string, number>();
  const exchanged = new Map<string, number>();
  const lost = new Set<string>();
  const arrivals = new Map<string, number>();
  /** How many requests have come on each connection. */
  const requests = new WeakMap<Socket, number>();
  let lostUpdates = 0;
  let issued = 0;

  const answer = (request: IncomingMessage, body: Write): readonly [status: number, data: object] => {
    const [, type = '', id = ''] = (request.url ?? '').split('/');
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
    const text = await readBody(request).catch(() => undefined);
    if (text === undefined) return;
    const [status, data] = answer(request, text === '' ? {} : JSON.parse(text));
    const document = JSON.stringify(data);
    response
      // Named by us, so that Node does not add for how long it keeps the connection.
      .writeHead(status, {
        Connection: 'keep-alive',
        'Content-Type': 'application/vnd.api+json',
        'Content-Length': Buffer.byteLength(document),
      })
      .end(document);
  };
  const servers: Server[] = [];
  let port = 0;
  for (const address of addresses) {
    const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
      void take(request, response);
    });
    await new Promise<void>((resolve) => server.listen(port, address, resolve));
    port = (server.address() as AddressInfo).port;
    servers.push(server);
  }
  return {
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
    close: () => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

function cart(type: string, id: string, version: number): object {
  return { data: { type, id, attributes: { version } } };
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request) body += chunk;
  return body;
}
