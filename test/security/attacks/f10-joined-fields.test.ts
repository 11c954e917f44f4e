import { expect, it } from 'vitest';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

/** F10, F16: each field line is forwarded, though Node's parsed view drops or joins some. Connections are kept open. */
frontSuite('F10: repeated field lines', (start) => {
  it.each([
    'If-Match',
    'If-None-Match',
    'X-Any',
    'Cookie',
    'Accept',
    'If-Modified-Since',
    'User-Agent',
    'From',
  ])('two lines of %s are forwarded as two, in order', async (name) => {
    const { port, upstream } = await start(() => answer());
    await exchangeRaw(
      port,
      `GET / HTTP/1.1\r\nHost: s\r\n${name}: "1"\r\nX-Else: 1\r\n${name.toLowerCase()}: "2"\r\n\r\n`,
    );
    const values = upstream
      .bytes()
      .split('\r\n')
      .filter((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))
      .map((line) => line.slice(name.length + 2));
    expect(values.join('; ')).toBe('"1"; "2"');
  });

  it('F16: no request asks the upstream to close', async () => {
    const { port, upstream } = await start(() => answer());
    for (const version of ['1.1', '1.0']) {
      await exchangeRaw(port, `GET / HTTP/${version}\r\nHost: s\r\nConnection: close\r\n\r\n`);
    }
    expect(upstream.bytes()).not.toMatch(/connection: close/i);
    expect(upstream.connections).toHaveLength(1);
  });
});
