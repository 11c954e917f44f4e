import { expect, it } from 'vitest';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

const get = 'GET / HTTP/1.1\r\nHost: s\r\n\r\n';

frontSuite('the response', (start) => {
  it.each([
    ['200 OK', 200, 'OK'],
    ['200 All\tis w\xe9ll', 200, 'All\tis w\xe9ll'],
    ['200 ', 200, ''],
    ['422 Unprocessable Entity', 422, 'Unprocessable Entity'],
    ['299 Whatever', 299, 'Whatever'],
    ['599 Late', 599, 'Late'],
    ['502 Bad Gateway', 502, 'Bad Gateway'],
  ])('keeps the status line %j', async (line, status, reason) => {
    const { port } = await start(() => answer('x', '', line));
    const response = await exchangeRaw(port, get);
    expect([response.status, response.body.toString()]).toEqual([status, 'x']);
    expect(response.reason).toBe(reason);
  });

  it('keeps repeated fields, their order, spelling and obs-text', async () => {
    const fields =
      'Set-Cookie: a=1\r\nVary: A\r\nSet-Cookie: b=2\r\nX-caf: caf\xe9\r\nvary: B\r\nWWW-Authenticate: X\r\n';
    const { port } = await start(() => answer('x', `${fields}ETag: "1"\r\n`));
    const { rawFields } = await exchangeRaw(port, get);
    expect(rawFields.slice(2, 16)).toEqual(
      ['Set-Cookie', 'a=1', 'Vary', 'A', 'Set-Cookie', 'b=2', 'X-caf', 'caf\xe9', 'vary', 'B'].concat(
        'WWW-Authenticate',
        'X',
        'ETag',
        '"1"',
      ),
    );
  });

  it('gives an HTTP/1.0 client a body without chunks', async () => {
    const { port } = await start(
      () => 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    );
    const connection = await openRawConnection(port);
    await connection.write('GET / HTTP/1.0\r\nHost: s\r\n\r\n');
    const bytes = (await connection.readAll()).toString('latin1');
    expect(bytes).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(bytes).not.toMatch(/transfer-encoding/i);
    expect(bytes).toMatch(/\r\n\r\nabc$/);
  });

  it('passes on 102 and 103, but no 100 of the upstream', async () => {
    const { port } = await start(
      () =>
        `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\n\r\n${answer()}`,
    );
    const connection = await openRawConnection(port);
    await connection.write(get);
    const early = [await connection.readResponse(), await connection.readResponse()];
    expect(early.map(({ status }) => status)).toEqual([102, 103]);
    expect(early[1]?.rawFields).toEqual(['Link', '</a>']);
    expect((await connection.readResponse()).status).toBe(200);
    connection.close();
  });

  it('passes on no interim response to HTTP/1.0', async () => {
    const { port } = await start(() => `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${answer()}`);
    const connection = await openRawConnection(port);
    await connection.write('GET / HTTP/1.0\r\n\r\n');
    expect((await connection.readAll()).toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  it('keeps obs-text in a head that is sent before its body, and in an interim one', async ({ expect }) => {
    const { port } = await start(({ connection }) => {
      connection.socket.write(
        'HTTP/1.1 103 Early\r\nX-caf: caf\xe9\r\n\r\nHTTP/1.1 200 OK\r\nX-caf: caf\xe9\r\n\r\n',
        'latin1',
      );
      return undefined;
    });
    const connection = await openRawConnection(port);
    await connection.write(get);
    const caf = /\r\nX-caf: (.*)\r\n/;
    const heads = () => connection.pending().toString('latin1').split('\r\n\r\n');
    await expect.poll(() => heads().length).toBe(3);
    expect(heads().map((head) => caf.exec(`${head}\r\n`)?.[1])).toEqual(['caf\xe9', 'caf\xe9', undefined]);
    connection.close();
  });

  it('sends the head of a stream before its first byte', async () => {
    const { port } = await start(({ connection }) => {
      connection.socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n');
      return undefined;
    });
    const connection = await openRawConnection(port);
    await connection.write(get);
    while (!connection.pending().toString().includes('\r\n\r\n')) {
      await new Promise((resolve) => connection.socket.once('data', resolve));
    }
    expect(connection.pending().toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    connection.close();
  });
});
