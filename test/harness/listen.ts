import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';

/** Starts a server on the loopback interface, by default on a free port. `close` also destroys its connections. */
export async function listen(server: Server, { port = 0, host = '127.0.0.1' } = {}) {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket.once('close', () => sockets.delete(socket))));
  await once(server.listen(port, host), 'listening');
  const { port: actual } = server.address() as AddressInfo;
  return {
    port: actual,
    url: `http://${host}:${actual}`,
    async close() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
