import { expect, it } from 'vitest';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

const smuggled = 'GET /admin/secret HTTP/1.1\r\nHost: s\r\n\r\n';
const chunked = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;

/** H1, F4, H4: a body must not become a second request on the connection to the upstream, however it is framed. */
frontSuite('H1: a request inside a body', (start) => {
  it.each(
    ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].flatMap((method) => [
      [method, 'Transfer-Encoding: chunked', chunked],
      [method, `Content-Length: ${smuggled.length}`, smuggled],
      [method, `Connection: content-length\r\nContent-Length: ${smuggled.length}`, smuggled],
      [method, 'Connection: transfer-encoding\r\nTransfer-Encoding: chunked', chunked],
      [method, `Expect: 100-continue\r\nContent-Length: ${smuggled.length}`, smuggled],
      [method, 'Trailer: Content-Length\r\nTransfer-Encoding: chunked', chunked],
    ]),
  )('%s with %j', async (method, framing, body) => {
    const { port, upstream } = await start(({ head }) => answer(head.startsWith('HEAD') ? '' : 'ok'), {
      // As if earlier checks had let a framing field pass.
      edit: (request) => ({
        ...request,
        fields: [...request.fields, 'Content-Length', '1', 'connection', 'te', 'TE', 'x'],
      }),
    });
    const connection = await openRawConnection(port);
    await connection.write(`${method} /pub HTTP/1.1\r\nHost: s\r\n${framing}\r\n\r\n${body}`);
    let response = await connection.readResponse(method);
    if (response.status === 100) response = await connection.readResponse(method);
    expect(response.status).toBe(200);
    await connection.write('GET /next HTTP/1.1\r\nHost: s\r\n\r\n');
    expect((await connection.readResponse()).status).toBe(200);
    connection.close();
    expect(upstream.requestLines).toEqual([`${method} /pub HTTP/1.1`, 'GET /next HTTP/1.1']);
    expect(upstream.bytes().match(/content-length|transfer-encoding/gi)).toHaveLength(1);
    expect(upstream.bytes()).not.toMatch(/\r\n(te|trailer|expect):/i);
  });
});
