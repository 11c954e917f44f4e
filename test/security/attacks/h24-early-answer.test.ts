import { expect, it } from 'vitest';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

/** H24, H2: an answer comes before its request is complete. The rest of the body must not be read as a request. */
frontSuite('H24: an answer before the end of the body', (start) => {
  it.each([
    ['closes', true],
    ['keeps its connection', false],
  ])('the client gets the 413 of an upstream that %s; later octets are ignored', async (_how, closes) => {
    const { port, upstream } = await start(({ connection, head }) => {
      if (head.startsWith('GET')) return answer('next');
      const said = answer('too large', closes ? 'Connection: close\r\n' : '', '413 Content Too Large');
      if (!closes) return said;
      connection.socket.end(said);
      return undefined;
    });
    const client = await openRawConnection(port);
    await client.write('POST /up HTTP/1.1\r\nHost: s\r\nContent-Length: 1000000\r\n\r\n');
    await client.write('a'.repeat(100_000));
    const response = await client.readResponse();
    expect([response.status, response.body.toString(), response.complete]).toEqual([413, 'too large', true]);
    expect(response.field('connection')).toBe('close');
    // What the client sends after the 413 is not read as a request.
    await client.write('GET /smuggled HTTP/1.1\r\nHost: s\r\n\r\n').catch(() => {});
    await client.readAll();
    expect(upstream.requestLines).toEqual(['POST /up HTTP/1.1']);
    const again = await openRawConnection(port);
    await again.write('GET /next HTTP/1.1\r\nHost: s\r\n\r\n');
    expect((await again.readResponse()).body.toString()).toBe('next');
    again.close();
  });

  it('413 of the proxy for a Content-Length above the limit: the upstream gets no connection', async () => {
    const { port, upstream } = await start(() => answer(), { bodyLimitBytes: 1000 });
    const client = await openRawConnection(port);
    await client.write(
      'POST /up HTTP/1.1\r\nHost: s\r\nContent-Length: 1001\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n',
    );
    expect((await client.readResponse()).status).toBe(413);
    client.close();
    expect(upstream.connections).toHaveLength(0);
  });

  it('413 of the proxy within a chunked body: the upstream does not get the last chunk', async () => {
    const { port, upstream, front } = await start(() => undefined, { bodyLimitBytes: 150_000 });
    const client = await openRawConnection(port);
    await client.write('POST /up HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n');
    for (let i = 0; i < 3; i++) await client.write(`10000\r\n${'a'.repeat(65_536)}\r\n`);
    const response = await client.readResponse();
    expect([response.status, response.field('connection'), response.complete]).toEqual([413, 'close', true]);
    await upstream.connections[0]?.closed;
    expect(upstream.bytes()).not.toMatch(/\r\n0\r\n\r\n/);
    expect(await front.resultsOf(1)).toMatchObject([
      { end: 'rejected', rejection: { rejection: 'payload-too-large' } },
    ]);
    client.close();
  });

  it('the response is cut when the body passes the limit after the response has begun', async () => {
    const { port } = await start(() => 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n', {
      bodyLimitBytes: 100_000,
    });
    const client = await openRawConnection(port);
    await client.write('POST /up HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n');
    while (!client.pending().includes('1\r\na\r\n'))
      await new Promise((resolve) => client.socket.once('data', resolve));
    await client.write(`20000\r\n${'a'.repeat(0x20000)}\r\n`).catch(() => {});
    expect(await client.readResponse()).toMatchObject({ status: 200, complete: false });
  });

  it('100 Continue for a body within the limit, and none before a 413', async () => {
    const { port, upstream } = await start(() => answer(), { bodyLimitBytes: 100 });
    const client = await openRawConnection(port);
    await client.write('POST /up HTTP/1.1\r\nHost: s\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n');
    expect((await client.readResponse()).status).toBe(100);
    expect(upstream.connections).toHaveLength(0);
    await client.write('abc');
    expect((await client.readResponse()).status).toBe(200);
    await client.write('POST /up HTTP/1.1\r\nHost: s\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n');
    const refused = await client.readResponse();
    expect([refused.status, refused.field('connection')]).toEqual([413, 'close']);
    client.close();
    expect(upstream.requestLines).toHaveLength(1);
    expect(upstream.bytes()).not.toMatch(/expect/i);
  });
});
