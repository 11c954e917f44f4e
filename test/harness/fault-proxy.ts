import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { type Cut, FaultPump, type StreamFaults } from './fault-pump.ts';
import { freePort } from './free-port.ts';

export type { Cut, StreamFaults } from './fault-pump.ts';

export interface Faults {
  /**
   * What happens to new connections. `refuse`: nothing listens, and the open ones are reset; `reset`: accepted and
   * reset at once; `hang`: accepted, and never answered. Default `pass`.
   */
  readonly connections?: 'pass' | 'refuse' | 'reset' | 'hang';
  readonly toUpstream?: StreamFaults;
  readonly toClient?: StreamFaults;
}

export async function startFaultProxy(upstreamPort: number, host = '127.0.0.1'): Promise<FaultProxy> {
  const proxy = new FaultProxy(upstreamPort, host);
  // A port that no other process gets while the proxy refuses connections.
  await proxy.listen(await freePort());
  return proxy;
}

interface Link {
  readonly client: Socket;
  readonly upstream: Socket;
  readonly pumps: { readonly toUpstream: FaultPump; readonly toClient: FaultPump };
}

/** A TCP proxy on the loopback interface that breaks what passes through it, as scripted while it runs. */
export class FaultProxy {
  readonly #upstreamPort: number;
  readonly #host: string;
  readonly #links = new Set<Link>();
  readonly #hanging = new Set<Socket>();
  #server: Server | undefined;
  #faults: Faults = {};
  #port = 0;
  #accepted = 0;

  constructor(upstreamPort: number, host: string) {
    this.#upstreamPort = upstreamPort;
    this.#host = host;
  }

  /** The same port throughout, also after `refuse`. */
  get port(): number {
    return this.#port;
  }

  /** Open connections from clients. */
  get open(): number {
    return this.#links.size + this.#hanging.size;
  }

  /** Connections accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  async listen(port: number): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
    server.listen(port, this.#host);
    await once(server, 'listening');
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Also applies to open connections. Faults that are not named end. */
  async set(faults: Faults): Promise<void> {
    this.#faults = faults;
    for (const { pumps } of this.#links) {
      pumps.toUpstream.set(faults.toUpstream ?? {});
      pumps.toClient.set(faults.toClient ?? {});
    }
    if (faults.connections === 'refuse') {
      await this.#stopListening();
      this.resetAll();
    } else if (this.#server === undefined) {
      await this.listen(this.#port);
    }
  }

  /** Everything works for new connections; open ones that a fault has touched are reset. */
  async heal(): Promise<void> {
    const wasBroken = Object.keys(this.#faults).length > 0;
    await this.set({});
    if (wasBroken) this.resetAll();
  }

  /** New connections work. Open ones stay open, but no more bytes arrive on them. */
  async abandon(): Promise<void> {
    const links = [...this.#links];
    await this.set({});
    for (const { pumps } of links) {
      pumps.toUpstream.set({ drop: true });
      pumps.toClient.set({ drop: true });
    }
  }

  /** RST to both sides of every open connection. */
  resetAll(): void {
    for (const { client, upstream } of this.#links) {
      client.resetAndDestroy();
      upstream.resetAndDestroy();
    }
    for (const client of this.#hanging) client.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.resetAll();
    await this.#stopListening();
  }

  async #stopListening(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = once(server, 'close');
    server.close();
    this.resetAll();
    await closed;
  }

  #accept(client: Socket): void {
    this.#accepted += 1;
    const { connections = 'pass', toUpstream = {}, toClient = {} } = this.#faults;
    client.on('error', () => client.destroy());
    if (connections === 'reset' || connections === 'refuse') {
      client.resetAndDestroy();
      return;
    }
    if (connections === 'hang') {
      this.#hanging.add(client);
      client.once('close', () => this.#hanging.delete(client));
      return;
    }
    const upstream = connect({
      port: this.#upstreamPort,
      host: this.#host,
      allowHalfOpen: true,
      noDelay: true,
    });
    const pumps = {
      toUpstream: new FaultPump(client, upstream, (by) => endBy(by, upstream, link)),
      toClient: new FaultPump(upstream, client, (by) => endBy(by, client, link)),
    };
    const link: Link = { client, upstream, pumps };
    pumps.toUpstream.set(toUpstream);
    pumps.toClient.set(toClient);
    this.#links.add(link);
    upstream.on('error', () => client.resetAndDestroy());
    upstream.once('close', () => client.destroySoon());
    client.once('close', () => {
      this.#links.delete(link);
      upstream.destroy();
    });
  }
}

/** An RST discards bytes that the receiver has not read. It is sent this much later, and at least one tick after a stall. */
const readWithinMs = 20;

function endBy(by: Cut['by'], receiver: Socket, { client, upstream }: Link): void {
  if (by === 'half-close') {
    receiver.end();
  } else if (by === 'fin') {
    receiver.end();
    (receiver === client ? upstream : client).destroy();
  } else {
    const reset = () => {
      client.resetAndDestroy();
      upstream.resetAndDestroy();
    };
    setTimeout(() => setImmediate(reset), readWithinMs);
  }
}
