import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { answer } from '../../harness/recording-upstream.ts';
import { ask, clientOf } from './direct-client.ts';

interface Shop {
  readonly port: number;
  /** Accepts no new connections, but still answers on open ones. */
  closeListener(): Promise<void>;
  close(): void;
}

async function startShop(): Promise<Shop> {
  const sockets = new Set<Socket>();
  const server: Server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
    socket.on('data', () => setTimeout(() => socket.write(answer()), 2));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    closeListener: async () => {
      server.close();
      while (server.listening) await sleep(1);
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/**
 * A rolling restart: the old listener is closed, and open connections still answer. There are more clients than
 * connections, so that requests always wait; sometimes a connection ends and no new one can be opened.
 */
describe('a listener that closes under load', () => {
  it.each([4, 16, 32, 64])(
    'each request gets a response or "unreachable" (%i connections)',
    async (connections) => {
      const shop = await startShop();
      const client = clientOf(shop.port, { connections });
      // Half of the connections are open when the listener closes; the client keeps trying to open the others.
      await Promise.all(Array.from({ length: connections / 2 }, () => ask(client)));
      await shop.closeListener();
      const seen = new Map<number | string, number>();
      const visit = async () => {
        for (let i = 0; i < 20; i += 1) {
          const what = await ask(client);
          seen.set(what, (seen.get(what) ?? 0) + 1);
        }
      };
      await Promise.all(Array.from({ length: 32 }, visit));
      const { 200: answered = 0, unreachable = 0, ...others } = Object.fromEntries(seen);
      expect([answered + unreachable, others]).toEqual([640, {}]);
      // Open connections are used while they answer.
      expect(answered).toBeGreaterThan(0);
      expect([client.inFlight, client.queued]).toEqual([0, 0]);
      shop.close();
      await client.close();
    },
  );
});
