import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import type { UpstreamClient } from '../../../src/upstream/port.ts';
import { type FrontOptions, startFront } from '../../harness/forwarding-front.ts';
import { listen } from '../../harness/listen.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';
import { testCertificate, testPair } from '../../harness/tls-fixture.ts';
import { clientOf } from './direct-client.ts';

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: shop.test\r\n\r\n`;

/** A complete answer of exactly this many bytes. */
function answerOf(bytes: number): string {
  const without = answer('x'.repeat(bytes)).length - bytes;
  return answer('x'.repeat(bytes - without));
}

const optionsOf = (scheme: 'http' | 'https', port: number) => ({
  upstream: { scheme, hostname: '127.0.0.1', port },
  tls: { ca: testCertificate },
});

/** Length of an answer whose reader pauses after each read. */
function readSlowly(client: UpstreamClient): Promise<number> {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    const exchange = client.dispatch(
      { method: 'GET', target: '/', fields: ['Host', 'shop.test'], body: null },
      {
        onHead() {},
        onData(chunk) {
          bytes += chunk.length;
          setTimeout(() => exchange.resume(), 1);
          return false;
        },
        onEnd: () => resolve(bytes),
        onFault: reject,
      },
    );
  });
}

describe('reuse of a connection', () => {
  const ends: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  /** `onRequest` is called with the path of each request; it must ignore bodies. */
  async function start(
    scheme: 'http' | 'https',
    onRequest: (path: string, socket: Socket, front: Front) => void,
    options: Partial<FrontOptions> = {},
  ) {
    let connections = 0;
    const take = (socket: Socket) => {
      connections += 1;
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        const path = /^[A-Z]+ (\S+) HTTP/.exec(chunk.toString('latin1'))?.[1];
        if (path !== undefined) onRequest(path, socket, front);
      });
    };
    const server =
      scheme === 'http' ? createServer({ noDelay: true }, take) : createTlsServer(testPair, take);
    const { port, close } = await listen(server);
    const client = optionsOf(scheme, port);
    const front: Front = await startFront({ scheme, upstreamPort: port, client, ...options });
    ends.push(close, front.close);
    return { front, port, connections: () => connections };
  }

  it.each([
    ['in a separate TLS record', 'https', answerOf(16_384)],
    ['in a separate read', 'http', answerOf(65_536)],
  ] as const)(
    'a surplus answer %s is not given to the request that waits for the connection',
    async (_, scheme, one) => {
      const { front } = await start(
        scheme,
        async (path, socket, { forwarder }) => {
          if (path !== '/one') {
            socket.write(answer('two'));
            return;
          }
          await expect.poll(() => forwarder.queued).toBe(1);
          socket.write(one + answer('evil'));
        },
        { connections: 1 },
      );
      const first = exchangeRaw(front.port, get('/one'));
      await expect.poll(() => front.forwarder.inFlight).toBe(1);
      const second = exchangeRaw(front.port, get('/two'));
      expect((await first).status).toBe(200);
      expect((await second).body.toString()).toBe('two');
    },
  );

  it('an answer before the end of the request body closes the connection', async () => {
    const { front, connections } = await start(
      'http',
      (path, socket) => {
        if (path === '/next') socket.write(answer('next'));
        else {
          // The rest does not fit into the kernel's buffers.
          socket.pause();
          socket.write(answer('too large', '', '413 Content Too Large'));
        }
      },
      { wholeBodyBytes: 50_000_000, bodyLimitBytes: 50_000_000 },
    );
    const body = Buffer.alloc(50_000_000, 'GET /smuggled HTTP/1.1\r\n\r\n');
    const head = `POST /large HTTP/1.1\r\nHost: shop.test\r\nContent-Length: ${body.length}\r\n\r\n`;
    const large = await exchangeRaw(front.port, Buffer.concat([Buffer.from(head), body]));
    expect(large.status).toBe(413);
    expect((await exchangeRaw(front.port, get('/next'))).body.toString()).toBe('next');
    expect(connections()).toBe(2);
  });

  it.each(['http', 'https'] as const)(
    '%s: a connection that was paused until the end is read again',
    async (scheme) => {
      const { front, connections, port } = await start(scheme, (_, socket) => {
        socket.write(answer('x'.repeat(100_000)));
      });
      const client = clientOf(port, { ...optionsOf(scheme, port), connections: 1 });
      ends.push(() => client.close());
      for (let i = 0; i < 3; i++) expect(await readSlowly(client)).toBe(100_000);
      expect([connections(), front.results]).toEqual([1, []]);
    },
  );
});

type Front = Awaited<ReturnType<typeof startFront>>;
