import { expect, it } from 'vitest';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { openRawConnection } from '../../harness/raw-client.ts';

/** F9, H22: a refusal contains no field of the upstream's response, and an error that occurs twice is answered once. */
frontSuite('F9: a refusal after the upstream sent a head', (start) => {
  it.each([
    ['a head that does not end', 'Set-Cookie: a=1\r\nContent-Length: 9999\r\n', 502],
    ['a broken body in the buffer', 'Set-Cookie: a=1\r\nContent-Length: 9999\r\n\r\nhalf', 502],
    ['a broken chunk in the buffer', 'Set-Cookie: a=1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 502],
  ])('502 without a field of the upstream, after %s', async (_what, bytes, status) => {
    const { port, front } = await start(
      ({ connection }) => {
        connection.socket.write(`HTTP/1.1 200 Fine\r\n${bytes}`);
        setTimeout(() => connection.socket.resetAndDestroy(), 20);
        return undefined;
      },
      { hooks: () => ({ bufferLimit: 100_000, onOutcome: () => ({}) }) },
    );
    const client = await openRawConnection(port);
    await client.write('GET / HTTP/1.1\r\nHost: s\r\n\r\nGET /again HTTP/1.1\r\nHost: s\r\n\r\n');
    for (let i = 0; i < 2; i++) {
      const response = await client.readResponse();
      expect([response.status, response.reason, response.complete]).toEqual([status, 'Bad Gateway', true]);
      expect(response.field('set-cookie')).toBeUndefined();
      expect(response.fields('content-length')).toEqual([String(response.body.length)]);
    }
    expect(await front.resultsOf(2)).toMatchObject([{ end: 'rejected' }, { end: 'rejected' }]);
    expect(client.pending()).toHaveLength(0);
    client.close();
  });
});
