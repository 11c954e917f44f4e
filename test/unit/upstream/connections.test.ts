import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startFront } from '../../harness/forwarding-front.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';

const get = 'GET /a? HTTP/1.1\r\nHost: shop.test\r\n\r\n';

describe('connections to the upstream', () => {
  it('a TLS handshake that never ends is 504 within the connect time-out', async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const front = await startFront({
      upstreamPort: (server.address() as AddressInfo).port,
      scheme: 'https',
      client: { connectTimeoutMs: 150 },
    });
    const response = await exchangeRaw(front.port, get);
    expect([response.status, front.results[0]?.fault]).toEqual([504, 'connect-timeout']);
    await front.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  it('an upstream with an IPv6 address answers', async () => {
    const server = createServer((socket) => {
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
    }).listen(0, '::1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const front = await startFront({
      upstreamPort: port,
      client: { upstream: { scheme: 'http', hostname: '::1', port } },
    });
    expect((await exchangeRaw(front.port, get)).status).toBe(200);
    await front.close();
    server.close();
  });
});
