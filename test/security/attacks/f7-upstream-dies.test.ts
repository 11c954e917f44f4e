import { expect, it, vi } from 'vitest';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { exchangeRaw, openRawConnection, type RawConnection } from '../../harness/raw-client.ts';
import { answer, type RecordedConnection } from '../../harness/recording-upstream.ts';

const get = 'GET / HTTP/1.1\r\nHost: s\r\n\r\n';

type Death = (connection: RecordedConnection) => void;
const fin: Death = ({ socket }) => void socket.end();
const reset: Death = ({ socket }) => void socket.resetAndDestroy();
const stall: Death = () => {};
/** A short timeout only where silence is the fault. */
const patience = (death: Death) => (death === stall ? { responseTimeoutMs: 3_000 } : {});
/** A reset may discard bytes under way, so the test waits until the client has them. */
const untilHalf = (client: RawConnection) =>
  vi.waitFor(() => expect(client.pending().toString()).toContain('half'), { timeout: 30_000, interval: 5 });

const bodies = {
  'Content-Length': 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf',
  chunked: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
  'chunked, inside a chunk': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf',
  'the end of the connection': 'HTTP/1.1 200 OK\r\n\r\nhalf',
  'Content-Length, and a connection that closes':
    'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100\r\n\r\nhalf',
  'chunked, and a connection that closes':
    'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
};

/** F7: an upstream that dies inside a body must neither leave the client waiting nor look complete. */
frontSuite('F7: an upstream dies inside a body', (start) => {
  it.each([
    ['FIN', 'Content-Length', fin],
    ['FIN', 'chunked', fin],
    ['FIN', 'chunked, inside a chunk', fin],
    ['FIN', 'Content-Length, and a connection that closes', fin],
    ['FIN', 'chunked, and a connection that closes', fin],
    ['RST', 'Content-Length, and a connection that closes', reset],
    ['RST', 'chunked, and a connection that closes', reset],
    ['RST', 'Content-Length', reset],
    ['RST', 'chunked', reset],
    ['RST', 'the end of the connection', reset],
    ['silence', 'Content-Length', stall],
    ['silence', 'chunked', stall],
    ['silence', 'the end of the connection', stall],
  ] as const)('%s in a body framed by %s: the response is incomplete', async (_how, framing, death) => {
    let dying: RecordedConnection | undefined;
    const { port, front } = await start(({ connection, index }) => {
      if (index > 0) return answer();
      connection.socket.write(bodies[framing]);
      dying = connection;
      return undefined;
    }, patience(death));
    const client = await openRawConnection(port);
    await client.write(get);
    await untilHalf(client);
    if (dying !== undefined) death(dying);
    const response = await client.readResponse();
    client.close();
    expect([response.status, response.complete]).toEqual([200, false]);
    expect(await front.resultsOf(1)).toMatchObject([{ end: 'cut', status: 200, upstreamStatus: 200 }]);
    expect(front.forwarder.inFlight).toBe(0);
  });

  it.each([
    ['FIN', '', fin, 502],
    ['RST', '', reset, 502],
    ['FIN inside the head', 'HTTP/1.1 200 OK\r\nConte', fin, 502],
    ['RST inside the head', 'HTTP/1.1 200 OK\r\nConte', reset, 502],
    ['silence', '', stall, 504],
    ['silence inside the head', 'HTTP/1.1 200 OK\r\nConte', stall, 504],
    ['silence after an interim response', 'HTTP/1.1 102 Processing\r\n\r\n', stall, 504],
  ] as const)('%s before a complete head: a whole 502 or 504', async (_how, bytes, death, status) => {
    const { port, front } = await start(({ connection }) => {
      connection.socket.write(bytes);
      death(connection);
      return undefined;
    }, patience(death));
    const connection = await openRawConnection(port);
    await connection.write(get);
    let response = await connection.readResponse();
    if (response.status === 102) response = await connection.readResponse();
    expect([response.status, response.complete]).toEqual([status, true]);
    expect(response.field('content-type')).toBe('application/vnd.api+json');
    expect(JSON.parse(response.body.toString())).toMatchObject({ errors: [{ status }] });
    expect(await front.resultsOf(1)).toMatchObject([{ end: 'rejected', retried: false }]);
    connection.close();
  });

  it.each(['', 'Upgrade: websocket\r\nConnection: Upgrade\r\n', 'Content-Length: 5\r\n'])(
    '502 for a 101 without a request for it (%j), and its connection is closed',
    async (fields) => {
      const { port, upstream } = await start(() => `HTTP/1.1 101 Switching Protocols\r\n${fields}\r\nhello`);
      expect((await exchangeRaw(port, get)).status).toBe(502);
      await upstream.connections[0]?.closed;
    },
  );

  it.each(['FIN', 'RST'])('bytes that arrived before a %s reach a client that reads late', async (how) => {
    const size = 4_000_000;
    const { port, front } = await start(({ connection: { socket } }) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${2 * size}\r\n\r\n`);
      socket.write('x'.repeat(size), () => {
        if (how === 'FIN') socket.end();
        else socket.resetAndDestroy();
      });
      return undefined;
    });
    const client = await openRawConnection(port);
    client.socket.pause();
    await client.write(get);
    const [result] = await front.resultsOf(1);
    client.socket.resume();
    const response = await client.readResponse();
    expect([result?.end, response.complete]).toEqual(['cut', false]);
    expect(response.body.length).toBe(result?.bytes);
  });

  it('HTTP/1.0: a body that ends with its connection is incomplete after a reset', async () => {
    const { port, upstream } = await start(() => 'HTTP/1.1 200 OK\r\n\r\nhalf');
    const connection = await openRawConnection(port);
    await connection.write('GET / HTTP/1.0\r\n\r\n');
    await untilHalf(connection);
    upstream.connections[0]?.socket.resetAndDestroy();
    expect((await connection.readResponse()).complete).toBe(false);
  });
});
