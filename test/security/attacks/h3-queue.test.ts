import { expect, it } from 'vitest';
import { type ForwardingFront, frontSuite } from '../../harness/forwarding-front.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

const get = 'GET / HTTP/1.1\r\nHost: s\r\n\r\n';
const post = 'POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\nhi';

/** Long, so that an idle connection is used again even after a pause of a slow machine. */
const keepAlive = 'Keep-Alive: timeout=60\r\n';

function later(ms: number): Promise<string> {
  return new Promise((resolve) => setTimeout(() => resolve(answer('slow', keepAlive)), ms));
}

/** One request that the shop gets, and one that waits for its connection; an immediate refusal would never wait. */
async function fill(port: number, { forwarder }: ForwardingFront) {
  const first = await openRawConnection(port);
  await first.write(get);
  while (forwarder.inFlight < 1) await later(2);
  const second = await openRawConnection(port);
  await second.write(get);
  while (forwarder.queued < 1) await later(2);
  return { first, second };
}

/** H3, F15, X4: more requests than connections wait in a bounded queue for a bounded time; nothing crashes or hangs. */
frontSuite('H3: a full queue', (start) => {
  it('a client that stops reading for longer than the response timeout gets the whole body when it reads again', async () => {
    const { port, front } = await start(
      ({ connection }) => {
        connection.socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n`);
        connection.socket.write(Buffer.alloc(30_000_000, 'a'));
        return undefined;
      },
      { responseTimeoutMs: 3_000 },
    );
    const reader = await openRawConnection(port);
    reader.socket.removeAllListeners('data');
    let bytes = 0;
    reader.socket.on('data', (chunk) => {
      bytes += chunk.length;
    });
    reader.socket.pause();
    await reader.write(get);
    await later(4_500);
    reader.socket.resume();
    expect(await front.resultsOf(1)).toMatchObject([{ end: 'sent', bytes: 30_000_000 }]);
    while (bytes < 30_000_000) await later(5);
    reader.close();
  });

  it('200 for 32 GETs and POSTs over at most 8 connections to a slow upstream', async () => {
    const { port, upstream, front } = await start(() => later(30), { connections: 8 });
    const responses = await Promise.all(
      Array.from({ length: 32 }, (_, i) => exchangeRaw(port, i % 2 === 0 ? get : post, 'GET')),
    );
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    expect(upstream.requestLines).toHaveLength(32);
    expect(upstream.connections.length).toBeLessThanOrEqual(8);
    await front.resultsOf(32);
    expect([front.forwarder.inFlight, front.forwarder.queued]).toEqual([0, 0]);
  });

  it('17 pipelined requests are answered in order, over at most 4 connections', async () => {
    const { port, upstream, front } = await start(
      async ({ head }) => {
        await later(5);
        return answer(/\/(\d+) /.exec(head)?.[1] ?? '');
      },
      { connections: 4 },
    );
    const client = await openRawConnection(port);
    await client.write(
      Array.from({ length: 17 }, (_, i) => `GET /${i} HTTP/1.1\r\nHost: s\r\n\r\n`).join(''),
    );
    for (let i = 0; i < 17; i++) expect((await client.readResponse()).body.toString()).toBe(String(i));
    expect(upstream.connections.length).toBeLessThanOrEqual(4);
    await front.resultsOf(17);
    client.close();
  });

  it('503 with Retry-After when the queue is full; the upstream does not get the request', async () => {
    const { port, upstream, front } = await start(() => undefined, {
      connections: 1,
      client: { queueLimit: 1 },
    });
    const { first, second } = await fill(port, front);
    const third = await exchangeRaw(port, get);
    expect([third.status, third.field('retry-after')]).toEqual([503, '1']);
    expect(JSON.parse(third.body.toString())).toMatchObject({
      errors: [{ status: 503, code: 'overloaded' }],
    });
    expect(upstream.requestLines.length).toBeLessThanOrEqual(1);
    first.close();
    second.close();
  });

  it('503 for a request that waits in the queue for longer than the timeout', async () => {
    const { port, front } = await start(() => undefined, {
      connections: 1,
      client: { queueTimeoutMs: 2_000 },
    });
    const { first, second } = await fill(port, front);
    const response = await second.readResponse();
    expect([response.status, JSON.parse(response.body.toString()).errors[0].code]).toEqual([
      503,
      'overloaded',
    ]);
    expect(front.forwarder.queued).toBe(0);
    first.close();
    second.close();
  });

  it('X3: clients that never read lose their upstream connections to another request', async () => {
    const big = Buffer.alloc(30_000_000, 'a');
    const { port, upstream, front } = await start(
      ({ connection, head }) => {
        if (head.startsWith('GET /small')) return answer('small');
        connection.socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${big.length}\r\n\r\n`);
        connection.socket.write(big);
        return undefined;
      },
      { connections: 2, bodyTimeoutMs: 100 },
    );
    const readers = [await openRawConnection(port), await openRawConnection(port)];
    for (const reader of readers) {
      reader.socket.pause();
      await reader.write(get);
    }
    while (upstream.requestLines.length < 2) await later(2);
    expect((await exchangeRaw(port, 'GET /small HTTP/1.1\r\nHost: s\r\n\r\n')).body.toString()).toBe('small');
    const endings = (await front.resultsOf(3)).map(({ end }) => end);
    expect(endings.sort()).toEqual(['client-gone', 'client-gone', 'sent']);
    for (const reader of readers) reader.close();
  });

  it('X2: 408 for a body that trickles, whether buffered or streamed', async () => {
    const { port, upstream, front } = await start(() => undefined, { bodyTimeoutMs: 1_500 });
    const trickles = (
      [
        ['Content-Length: 100', 'a'],
        ['Transfer-Encoding: chunked', '1\r\na\r\n'],
        ['Content-Length: 100000', 'a'],
      ] as const
    ).map(async ([framing, part]) => {
      const client = await openRawConnection(port);
      await client.write(`POST / HTTP/1.1\r\nHost: s\r\n${framing}\r\n\r\n`);
      const trickle = setInterval(() => client.socket.write(part), 100);
      const response = await client.readResponse();
      clearInterval(trickle);
      client.close();
      return [response.status, response.field('connection')];
    });
    expect(await Promise.all(trickles)).toEqual(trickles.map(() => [408, 'close']));
    await front.resultsOf(3);
    while (upstream.requestLines.length < 2) await later(2);
    expect(upstream.requestLines).toHaveLength(2);
    expect(front.forwarder.inFlight).toBe(0);
  });
});
