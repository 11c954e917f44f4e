import { expect, it } from 'vitest';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, type Script } from '../../harness/recording-upstream.ts';

/** Long, so that an idle connection is used again even after a pause of a slow machine. */
const keepAlive = 'Keep-Alive: timeout=60\r\n';

/** The first connection answers once, and ends by `death` at the next request. Other connections answer. */
function staleAfterOne(death: 'fin' | 'rst' | 'cut head' | 'interim'): Script {
  let first: unknown;
  return ({ connection, index }) => {
    first ??= connection;
    if (connection !== first || index === 0) return answer('fresh', keepAlive);
    if (death === 'cut head') connection.socket.write('HTTP/1.1 20');
    if (death === 'interim') connection.socket.write('HTTP/1.1 102 Processing\r\n\r\n');
    if (death === 'rst') connection.socket.resetAndDestroy();
    else connection.socket.end();
    return undefined;
  };
}

/** F13, H23: one retry, only of a safe request without a body, only if a reused connection broke before a byte arrived. */
frontSuite('F13: an idle connection has gone stale', (start) => {
  it.each([
    ['GET', '', '', 'rst', 200, 3],
    ['GET', '', '', 'fin', 200, 3],
    ['HEAD', '', '', 'rst', 200, 3],
    ['GET', 'Content-Length: 2\r\n', 'hi', 'rst', 502, 2],
    ['POST', 'Content-Length: 2\r\n', 'hi', 'rst', 502, 2],
    ['POST', '', '', 'rst', 502, 2],
    ['PUT', 'Content-Length: 2\r\n', 'hi', 'fin', 502, 2],
    ['PATCH', 'Content-Length: 2\r\n', 'hi', 'rst', 502, 2],
    ['DELETE', '', '', 'rst', 502, 2],
    ['DELETE', '', '', 'fin', 502, 2],
    ['GET', '', '', 'cut head', 502, 2],
    ['GET', '', '', 'interim', 502, 2],
  ] as const)(
    '%s with %j and the body %j on a connection that ends by %s: %i',
    async (method, framing, body, death, status, requests) => {
      const { port, upstream, front } = await start(({ head, ...more }) => {
        const said = staleScript({ head, ...more });
        return head.startsWith('HEAD') && said !== undefined ? answer('') : said;
      });
      const staleScript = staleAfterOne(death);
      expect((await exchangeRaw(port, 'GET /warm HTTP/1.1\r\nHost: s\r\n\r\n')).status).toBe(200);
      let response = await exchangeRaw(
        port,
        `${method} /x HTTP/1.1\r\nHost: s\r\n${framing}\r\n${body}`,
        method,
      );
      if (response.status === 102)
        response = { ...response, status: (await front.resultsOf(2))[1]?.rejection ? 502 : 0 };
      expect(response.status).toBe(status);
      expect(upstream.requestLines).toHaveLength(requests);
      expect((await front.resultsOf(2))[1]).toMatchObject({ retried: requests === 3 });
    },
  );

  it('a retry that fails is not repeated', async () => {
    let first: unknown;
    const { port, upstream, front } = await start(({ connection }) => {
      first ??= connection;
      if (connection === first && upstream.requestLines.length === 1) return answer();
      connection.socket.resetAndDestroy();
      return undefined;
    });
    await exchangeRaw(port, 'GET /warm HTTP/1.1\r\nHost: s\r\n\r\n');
    expect((await exchangeRaw(port, 'GET /x HTTP/1.1\r\nHost: s\r\n\r\n')).status).toBe(502);
    expect(upstream.requestLines).toHaveLength(3);
    expect((await front.resultsOf(2))[1]).toMatchObject({ retried: true, fault: 'reset' });
  });

  it('a request is not retried after a new connection broke', async () => {
    const { port, upstream } = await start(({ connection }) => {
      connection.socket.resetAndDestroy();
      return undefined;
    });
    expect((await exchangeRaw(port, 'GET /x HTTP/1.1\r\nHost: s\r\n\r\n')).status).toBe(502);
    expect(upstream.requestLines).toHaveLength(1);
  });

  it('a connection with Keep-Alive: timeout=1 is not used again', async () => {
    const { port, upstream } = await start(() => answer('ok', 'Keep-Alive: timeout=1\r\n'));
    for (let i = 0; i < 3; i++) {
      expect((await exchangeRaw(port, 'GET / HTTP/1.1\r\nHost: s\r\n\r\n')).status).toBe(200);
    }
    expect(upstream.connections).toHaveLength(3);
  });
});
