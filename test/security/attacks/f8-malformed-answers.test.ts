import { expect, it } from 'vitest';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

const manyFields = Array.from({ length: 1_200 }, (_, i) => `a${i}: b\r\n`).join('');

/** Answers of an upstream, and the statuses that a client may get for each. */
const answers: ReadonlyArray<[what: string, bytes: string, statuses: number[]]> = [
  ['Trailer with Content-Length', answer('ok', 'Trailer: X-T\r\n'), [200]],
  ['Trailer on 304', 'HTTP/1.1 304 Not Modified\r\nTrailer: X-T\r\n\r\n', [304]],
  ['Trailer on 204', 'HTTP/1.1 204 No Content\r\nTrailer: X-T\r\n\r\n', [204]],
  ['reason phrase with 0x01', answer('ok', '', '200 a\x01b'), [200, 502]],
  ['reason phrase with 0x7f', answer('ok', '', '200 a\x7fb'), [200, 502]],
  ['reason phrase with NUL', answer('ok', '', '200 a\0b'), [200, 502]],
  ['status 099', answer('ok', '', '099 What'), [502]],
  ['status 000', answer('ok', '', '000 What'), [502]],
  ['status 600', answer('ok', '', '600 What'), [502]],
  ['status 999', answer('ok', '', '999 What'), [502]],
  ['status of two digits', answer('ok', '', '20 What'), [502]],
  ['status of four digits', answer('ok', '', '2000 What'), [502]],
  ['a body longer than Content-Length', `${answer('ok')}more`, [200, 502]],
  ['a body with 204', 'HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nbody', [204, 502]],
  ['a body with 304', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nbody', [304, 502]],
  ['a second response', `${answer('ok')}${answer('evil')}`, [200, 502]],
  [
    'Content-Length and chunked',
    'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    [502],
  ],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd', [502]],
  ['a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n', [502]],
  ['a bad chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', [200, 502]],
  ['a folded field', 'HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 0\r\n\r\n', [200, 502]],
  ['a bare LF', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n', [502]],
  ['a bare CR', 'HTTP/1.1 200 OK\r\nX-A: 1\rX-B: 2\r\nContent-Length: 0\r\n\r\n', [502]],
  ['NUL in a value', answer('ok', 'X-A: a\0b\r\n'), [502]],
  ['0x01 in a value', answer('ok', 'X-A: a\x01b\r\n'), [200, 502]],
  ['a space in a name', answer('ok', 'X A: b\r\n'), [200, 502]],
  ['no name', answer('ok', ': b\r\n'), [502]],
  ['__proto__', answer('ok', '__proto__: b\r\n'), [200]],
  ['fields of 70 KB', answer('ok', `X-A: ${'a'.repeat(70_000)}\r\n`), [502]],
  ['garbage', 'SSH-2.0-OpenSSH_9.9\r\n', [502]],
  ['HTTP/0.9', '<html>hello</html>', [502]],
  ['HTTP/2', 'HTTP/2 200\r\n\r\n', [502]],
  ['HTTP/1.1 with no status', 'HTTP/1.1\r\n\r\n', [502]],
  ['fields before the status line', 'X-A: 1\r\nHTTP/1.1 200 OK\r\n\r\n', [502]],
];

/** F8, H16, H20: bytes that make node throw outside of any handler, or let one response run into the next. */
frontSuite('F8: malformed answers', (start) => {
  it.each(answers)(
    '%s: an expected status, and the next client gets its own response',
    async (_what, bytes, statuses) => {
      const { port, upstream, front } = await start(({ head }) =>
        head.startsWith('GET /good') ? answer('good') : bytes,
      );
      for (const version of ['1.1', '1.0']) {
        const connection = await openRawConnection(port);
        await connection.write(`GET /bad HTTP/${version}\r\nHost: s\r\n\r\n`);
        const response = await connection.readResponse();
        expect(statuses).toContain(response.status);
        expect(response.field('trailer')).toBeUndefined();
        expect(response.body.toString()).not.toContain('more');
        expect(response.body.toString()).not.toContain('evil');
        if (response.status === 502) {
          expect(response.field('x-a')).toBeUndefined();
          expect(response.reason).toBe('Bad Gateway');
        }
        connection.close();
      }
      // The next client gets its own answer, never the rest of another's.
      for (let i = 0; i < 3; i++) {
        const next = await exchangeRaw(port, 'GET /good HTTP/1.1\r\nHost: s\r\n\r\n');
        expect([next.status, next.body.toString()]).toEqual([200, 'good']);
      }
      expect(upstream.requestLines.filter((line) => line.includes('/good'))).toHaveLength(3);
      expect(front.forwarder.inFlight).toBe(0);
    },
  );

  it('H6: more than a thousand fields hide neither ETag nor Cache-Control', async () => {
    const { port } = await start(() => answer('ok', `${manyFields}ETag: "1"\r\nCache-Control: no-store\r\n`));
    const response = await exchangeRaw(port, 'GET / HTTP/1.1\r\nHost: s\r\n\r\n');
    expect([response.field('etag'), response.field('cache-control')]).toEqual(['"1"', 'no-store']);
    expect(response.fields('a1199')).toEqual(['b']);
  });

  it('bytes that come on an idle connection are not an answer to the next request', async () => {
    const { port, upstream } = await start(
      ({ connection, head }) => {
        if (head.startsWith('GET /1')) setTimeout(() => connection.socket.write(answer('evil')), 20);
        return answer(head.slice(4, 6));
      },
      { client: { idleTimeoutMs: 600_000 } },
    );
    await exchangeRaw(port, 'GET /1 HTTP/1.1\r\nHost: s\r\n\r\n');
    await upstream.connections[0]?.closed;
    expect((await exchangeRaw(port, 'GET /2 HTTP/1.1\r\nHost: s\r\n\r\n')).body.toString()).toBe('/2');
  });
});
