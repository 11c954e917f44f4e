import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { openRawConnection } from './raw-client.ts';

let server: Server;

/** Answers with these bytes as soon as anything comes, then ends, resets or leaves the connection open. */
async function answer(bytes: string, then: 'end' | 'reset' | 'stay'): Promise<number> {
  server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(bytes, 'latin1', () => {
        if (then === 'end') socket.end();
        if (then === 'reset') setTimeout(() => socket.resetAndDestroy(), 20);
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

afterEach(() => server.close());

const framings: [string, string, 'end' | 'reset' | 'stay', { body: string; complete: boolean }][] = [
  [
    'content-length',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi',
    'stay',
    { body: 'hi', complete: true },
  ],
  [
    'a body cut short',
    'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi',
    'end',
    { body: 'hi', complete: false },
  ],
  ['close-delimited', 'HTTP/1.1 200 OK\r\n\r\nhi', 'end', { body: 'hi', complete: true }],
  ['close-delimited, reset', 'HTTP/1.1 200 OK\r\n\r\nhi', 'reset', { body: 'hi', complete: false }],
  [
    'chunked',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n',
    'stay',
    { body: 'hi', complete: true },
  ],
  [
    'chunked, cut short',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n',
    'end',
    { body: 'hi', complete: false },
  ],
];

describe('raw client', () => {
  it.each(framings)('reads %s', async (_name, bytes, then, expected) => {
    const connection = await openRawConnection(await answer(bytes, then));
    await connection.write('x');
    const response = await connection.readResponse();
    expect({ body: response.body.toString(), complete: response.complete }).toEqual(expected);
    connection.close();
  });

  it('reads pipelined answers one by one: interim, trailers, HEAD', async () => {
    const bytes =
      'HTTP/1.1 100 Continue\r\n\r\n' +
      'HTTP/1.1 200 Fine, thanks\r\nA: 1\r\na: 2\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\nh\r\n0\r\nT: 3\r\n\r\n' +
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n';
    const connection = await openRawConnection(await answer(bytes, 'stay'));
    await connection.write('x');
    expect((await connection.readResponse('POST')).status).toBe(100);
    const second = await connection.readResponse('POST');
    expect(second).toMatchObject({ reason: 'Fine, thanks', trailers: ['T', '3'], complete: true });
    expect(second.fields('A')).toEqual(['1', '2']);
    expect((await connection.readResponse('HEAD')).body).toHaveLength(0);
    expect(connection.pending()).toHaveLength(0);
    connection.close();
  });

  it('rejects when nothing comes, and when the connection ends first', async () => {
    const silent = await openRawConnection(await answer('', 'stay'), { timeoutMs: 30 });
    await expect(silent.readResponse()).rejects.toThrow('nothing after 30 ms');
    silent.close();
    server.close();
    const closed = await openRawConnection(await answer('HTTP/1.1 2', 'end'));
    await closed.write('x');
    await expect(closed.readResponse()).rejects.toThrow('connection closed (fin)');
    expect((await closed.readAll()).toString()).toBe('HTTP/1.1 2');
    closed.close();
  });
});
