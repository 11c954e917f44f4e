import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { ResponseEdits } from '../../../src/upstream/hooks.ts';
import { frontSuite, notingHooks } from '../../harness/forwarding-front.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

const get = 'GET / HTTP/1.1\r\nHost: s\r\n\r\n';
const patch = 'PATCH / HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\n{}';

frontSuite('upstream hooks', (start) => {
  it('a streamed answer that is incomplete after answerWithinMs is cut, and its outcome unknown', async () => {
    const { hooks, outcomes } = notingHooks({ answerWithinMs: 2_000 });
    const { port, upstream } = await start(
      ({ connection }) => {
        connection.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n');
        const talk = setInterval(() => connection.socket.write('a'), 10);
        connection.socket.once('close', () => clearInterval(talk));
        return undefined;
      },
      { hooks },
    );
    const response = await exchangeRaw(port, patch);
    expect(response.status).toBe(200);
    expect(outcomes).toEqual([{ kind: 'unknown', fault: 'timeout' }]);
    await upstream.connections[0]?.closed;
  });

  it('a buffered answer that is incomplete after answerWithinMs is 504', async () => {
    const { hooks, outcomes } = notingHooks({ answerWithinMs: 1000, bufferLimit: 1_000_000 });
    const { port } = await start(() => 'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nabc', { hooks });
    expect((await exchangeRaw(port, patch)).status).toBe(504);
    expect(outcomes).toEqual([{ kind: 'unknown', fault: 'timeout' }]);
  });

  it.each([
    ['streams', 1],
    ['is whole', 100_000_000],
  ])(
    'a request whose body %s and takes too long to send gets 504, and its outcome is unknown',
    async (_how, wholeBodyBytes) => {
      const { hooks, outcomes } = notingHooks({ sendWithinMs: 100 });
      const { port, front, upstream } = await start(() => undefined, {
        hooks,
        wholeBodyBytes,
        bodyLimitBytes: 100_000_000,
      });
      upstream.onConnection = ({ socket }) => socket.pause();
      const client = await openRawConnection(port);
      await client.write('PATCH / HTTP/1.1\r\nHost: s\r\nContent-Length: 50000000\r\n\r\n');
      client.socket.write(Buffer.alloc(50_000_000));
      expect((await client.readResponse()).status).toBe(504);
      expect(outcomes).toEqual([{ kind: 'unknown', fault: 'late' }]);
      await front.resultsOf(1);
      client.close();
    },
  );

  it.each([
    ['announced to be too long', 1001, answer('a'.repeat(1001))],
    [
      'too long',
      1001,
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n${'a'.repeat(1001)}\r\n0\r\n\r\n`,
    ],
    ['a stream of events', 5, answer('aaaaa', 'Content-Type: Text/Event-Stream; charset=utf-8\r\n')],
  ])('a body that is %s is streamed, and onOutcome is called at its end', async (_how, length, bytes) => {
    const { hooks, outcomes } = notingHooks(
      { streamedHeaderEdits: () => ({ ETag: null, 'X-S': '1' }) },
      { fields: { 'X-E': '1' } },
    );
    const { port } = await start(() => bytes.replace('\r\n', '\r\nETag: "shop"\r\n'), { hooks });
    const response = await exchangeRaw(port, get);
    expect([response.body.length, response.field('etag'), response.field('x-s')]).toEqual([
      length,
      undefined,
      '1',
    ]);
    expect(response.field('x-e')).toBeUndefined();
    expect(outcomes).toMatchObject([{ kind: 'answered', status: 200, body: null }]);
  });

  it('a body that stalls is streamed', async () => {
    const { hooks, outcomes } = notingHooks();
    const { port, upstream } = await start(
      ({ connection }) => {
        connection.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf');
        return undefined;
      },
      { hooks },
    );
    const client = await openRawConnection(port);
    await client.write(get);
    while (!client.pending().includes('half'))
      await new Promise((resolve) => client.socket.once('data', resolve));
    expect(outcomes).toEqual([]);
    upstream.connections[0]?.socket.write('more');
    expect((await client.readResponse()).body.toString()).toBe('halfmore');
    expect(outcomes).toMatchObject([{ kind: 'answered', body: null }]);
    client.close();
  });

  it.each([
    ['HEAD', '200 OK', 'Content-Length: 5\r\n'],
    ['GET', '304 Not Modified', 'Content-Length: 5\r\n'],
    ['DELETE', '204 No Content', ''],
  ])('%s %s has an empty body, and keeps its length', async (method, status, fields) => {
    const { hooks, outcomes } = notingHooks({}, { fields: { ETag: '"1"' } });
    const { port } = await start(() => `HTTP/1.1 ${status}\r\n${fields}\r\n`, { hooks });
    const response = await exchangeRaw(port, `${method} / HTTP/1.1\r\nHost: s\r\n\r\n`, method);
    expect([response.field('etag'), response.field('content-length')]).toEqual([
      '"1"',
      fields === '' ? undefined : '5',
    ]);
    expect(outcomes).toMatchObject([{ kind: 'answered', body: Buffer.alloc(0) }]);
  });

  it('maySend: false sends no byte, on a new connection and on an idle one', async () => {
    let may = false;
    const { hooks, outcomes } = notingHooks({ maySend: () => may });
    const { port, upstream } = await start(() => answer(), { hooks });
    const refused = await exchangeRaw(port, patch);
    expect([refused.status, refused.field('retry-after')]).toEqual([503, '1']);
    expect(upstream.bytes()).toBe('');
    may = true;
    expect((await exchangeRaw(port, patch)).status).toBe(200);
    may = false;
    expect((await exchangeRaw(port, patch)).status).toBe(503);
    expect(upstream.requestLines).toHaveLength(1);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['unsent', 'answered', 'unsent']);
    expect(outcomes[0]).toEqual({ kind: 'unsent', fault: 'not-sent' });
  });

  it('answerWithinMs includes the time in the queue; the outcome is "unsent"', async () => {
    const { hooks, outcomes } = notingHooks({ answerWithinMs: 150 });
    const { port, front } = await start(() => undefined, {
      connections: 1,
      hooks: ({ method }) => (method === 'PATCH' ? hooks() : undefined),
    });
    const first = await openRawConnection(port);
    await first.write(get);
    while (front.forwarder.inFlight === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    expect((await exchangeRaw(port, patch)).status).toBe(504);
    expect(outcomes).toEqual([{ kind: 'unsent', fault: 'aborted' }]);
    first.close();
  });

  it.each([
    ['once-sent', 'unsent', 0],
    [true, 'answered', 1],
  ] as const)(
    'ignoreClientAbort: %s: a client leaves while its request waits for a connection: %s',
    async (ignoreClientAbort, kind, sent) => {
      const { hooks, outcomes } = notingHooks({ ignoreClientAbort });
      const busy = Promise.withResolvers<string>();
      const { port, upstream, front } = await start(
        ({ head }) => (head.startsWith('GET') ? busy.promise : answer()),
        {
          connections: 1,
          hooks: ({ method }) => (method === 'PATCH' ? hooks() : undefined),
        },
      );
      const [first, second] = await Promise.all([openRawConnection(port), openRawConnection(port)]);
      await first.write(get);
      while (upstream.requestLines.length === 0) await sleep(2);
      await second.write(patch);
      while (front.forwarder.queued === 0) await sleep(2);
      second.close();
      // The proxy has noticed it.
      while (sent === 0 && front.forwarder.queued > 0) await sleep(2);
      busy.resolve(answer());
      expect((await first.readResponse()).status).toBe(200);
      await front.resultsOf(2);
      expect(outcomes.map((outcome) => outcome.kind)).toEqual([kind]);
      expect(upstream.requestLines).toHaveLength(1 + sent);
      first.close();
    },
  );

  it.each([
    ['answers', () => answer(), 'answered'],
    ['resets', undefined, 'unknown'],
  ] as const)(
    'an onOutcome that fails when the upstream %s does not hang the request',
    async (_what, script, kind) => {
      const kinds: string[] = [];
      const { port, front } = await start(
        script ??
          (({ connection }) => {
            connection.socket.resetAndDestroy();
            return undefined;
          }),
        {
          hooks: () => ({
            bufferLimit: 100,
            onOutcome: (outcome) => {
              kinds.push(outcome.kind);
              return Promise.reject(new Error('a bug'));
            },
          }),
        },
      );
      expect((await exchangeRaw(port, patch)).status).toBe(kind === 'answered' ? 500 : 502);
      expect(kinds).toEqual([kind]);
      expect((await front.resultsOf(1))[0]?.cause).toBeInstanceOf(Error);
    },
  );

  it('the answer waits for onOutcome', async ({ expect }) => {
    let release: ((edits: ResponseEdits) => void) | undefined;
    const { port, front } = await start(() => answer(), {
      hooks: () => ({
        bufferLimit: 100,
        onOutcome: () => new Promise<ResponseEdits>((resolve) => (release = resolve)),
      }),
    });
    const client = await openRawConnection(port);
    await client.write(patch);
    await expect.poll(() => release !== undefined && front.forwarder.inFlight === 0).toBe(true);
    expect(client.pending()).toHaveLength(0);
    release?.({ fields: { 'X-Done': '1' } });
    expect((await client.readResponse()).field('x-done')).toBe('1');
    client.close();
  });
});
