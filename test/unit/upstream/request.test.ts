import { expect, it } from 'vitest';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

frontSuite('the forwarded request', (start) => {
  it.each([
    ['GET', '', '', ''],
    ['HEAD', '', '', ''],
    ['DELETE', '', '', ''],
    ['OPTIONS', '', '', ''],
    ['POST', 'Content-Length: 0\r\n', '', 'content-length: 0'],
    ['POST', 'Content-Length: 3\r\n', 'abc', 'content-length: 3'],
    ['PUT', 'Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n0\r\n\r\n', 'transfer-encoding: chunked'],
    [
      'PATCH',
      'Transfer-Encoding: chunked\r\n',
      '3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n',
      'transfer-encoding: chunked',
    ],
    ['GET', 'Content-Length: 3\r\n', 'abc', 'content-length: 3'],
    ['DELETE', 'Content-Length: 3\r\n', 'abc', 'content-length: 3'],
    ['DELETE', 'Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n0\r\n\r\n', 'transfer-encoding: chunked'],
    ['OPTIONS', 'Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n0\r\n\r\n', 'transfer-encoding: chunked'],
    ['POST', 'Transfer-Encoding: chunked\r\n', '0\r\n\r\n', 'transfer-encoding: chunked'],
  ])('frames %s %j %j exactly', async (method, framing, body, framed) => {
    const { port, upstream } = await start(({ head }) => answer(head.startsWith('HEAD') ? '' : 'ok'));
    const connection = await openRawConnection(port);
    await connection.write(`${method} /a HTTP/1.1\r\nHost: s\r\n${framing}\r\n${body}`);
    expect((await connection.readResponse(method)).status).toBe(200);
    await connection.write('GET /next HTTP/1.1\r\nHost: s\r\n\r\n');
    expect((await connection.readResponse()).status).toBe(200);
    connection.close();
    expect(upstream.requestLines).toEqual([`${method} /a HTTP/1.1`, 'GET /next HTTP/1.1']);
    const first = upstream.bytes().slice(0, upstream.bytes().indexOf('GET /next'));
    const fields = first
      .toLowerCase()
      .split('\r\n')
      .filter((line) => /^(content-length|transfer-enc)/.test(line));
    expect(fields).toHaveLength(framed === '' ? 0 : 1);
    // A chunked body that is already complete may be sent with its length.
    if (framed.startsWith('t'))
      expect([framed, `content-length: ${body.startsWith('3') ? 3 : 0}`]).toContain(fields[0]);
    else expect(fields[0] ?? '').toBe(framed);
    expect(first).not.toContain('X-Trailer');
  });
});
