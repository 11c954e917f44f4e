import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startFront } from '../../harness/forwarding-front.ts';
import { listen } from '../../harness/listen.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';

const get = 'GET /a? HTTP/1.1\r\nHost: shop.test\r\n\r\n';

describe('connections to the upstream', () => {
  it('a TLS handshake that never ends is 504 within the connect time-out', async () => {
    const server = await listen(createServer());
    const front = await startFront({
      upstreamPort: server.port,
      scheme: 'https',
      client: { connectTimeoutMs: 150 },
    });
    const response = await exchangeRaw(front.port, get);
    expect([response.status, front.results[0]?.fault]).toEqual([504, 'connect-timeout']);
    await front.close();
    await server.close();
  });

  it('an upstream with an IPv6 address answers', async () => {
    const server = createServer((socket) => {
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
    });
    const { port, close } = await listen(server, { host: '::1' });
    const front = await startFront({
      upstreamPort: port,
      client: { upstream: { scheme: 'http', hostname: '::1', port } },
    });
    expect((await exchangeRaw(front.port, get)).status).toBe(200);
    await front.close();
    await close();
  });
});
