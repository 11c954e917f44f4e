import { expect, it } from 'vitest';
import type { ForwardOutcome, UpstreamHooks } from '../../../src/upstream/hooks.ts';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

/** F14: the outcome of a write must be known even if its client leaves. */
frontSuite('F14: the client leaves', (start) => {
  const patch = 'PATCH /a HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\n{}';

  it('with `ignoreClientAbort` a write is completed and its outcome reported', async () => {
    const outcomes: ForwardOutcome[] = [];
    const hooks: UpstreamHooks = {
      bufferLimit: 1000,
      ignoreClientAbort: true,
      onOutcome: (outcome) => {
        outcomes.push(outcome);
        return {};
      },
    };
    const { port, upstream, front } = await start(
      async ({ connection }) => {
        client.close();
        await new Promise((resolve) => setTimeout(resolve, 100));
        expect(connection.socket.destroyed).toBe(false);
        return answer('done', 'ETag: "2"\r\n');
      },
      { hooks: () => hooks },
    );
    const client = await openRawConnection(port);
    await client.write(patch);
    expect(await front.resultsOf(1)).toMatchObject([{ end: 'client-gone', upstreamStatus: 200 }]);
    expect(outcomes).toMatchObject([{ kind: 'answered', status: 200, body: Buffer.from('done') }]);
    expect(upstream.requestLines).toHaveLength(1);
    expect(front.forwarder.inFlight).toBe(0);
  });

  it.each([
    ['before the head', ''],
    ['inside the body', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'],
  ])('without it the upstream connection is closed %s, and the outcome is unknown', async (_when, bytes) => {
    const outcomes: ForwardOutcome[] = [];
    const hooks: UpstreamHooks = {
      bufferLimit: 0,
      onOutcome: (outcome) => {
        outcomes.push(outcome);
        return {};
      },
    };
    const { port, upstream, front } = await start(
      ({ connection }) => {
        connection.socket.write(bytes);
        setTimeout(() => client.close(), 50);
        return undefined;
      },
      { hooks: () => hooks },
    );
    const client = await openRawConnection(port);
    await client.write(patch);
    expect(await front.resultsOf(1)).toMatchObject([{ end: 'client-gone', rejection: undefined }]);
    await upstream.connections[0]?.closed;
    expect(outcomes).toEqual([{ kind: 'unknown', fault: 'aborted' }]);
    expect(front.forwarder.inFlight).toBe(0);
  });

  it('the upstream connection is closed when a client leaves within its body', async () => {
    const { port, upstream, front } = await start(() => undefined);
    const client = await openRawConnection(port);
    await client.write('POST /a HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
    while (!upstream.bytes().includes('abc')) await new Promise((resolve) => setTimeout(resolve, 5));
    client.close();
    expect(await front.resultsOf(1)).toMatchObject([{ end: 'client-gone' }]);
    await upstream.connections[0]?.closed;
    expect(upstream.bytes()).not.toContain('\r\n0\r\n');
  });

  it('the request of a client that has left the queue is not forwarded', async () => {
    let release: (said: string) => void = () => {};
    const { port, upstream, front } = await start(
      () => new Promise<string>((resolve) => (release = resolve)),
      {
        connections: 1,
      },
    );
    const first = await openRawConnection(port);
    await first.write('GET /first HTTP/1.1\r\nHost: s\r\n\r\n');
    while (upstream.requestLines.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = await openRawConnection(port);
    await second.write('GET /second HTTP/1.1\r\nHost: s\r\n\r\n');
    while (front.forwarder.queued === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    second.close();
    expect(await front.resultsOf(1)).toMatchObject([{ end: 'client-gone' }]);
    expect(front.forwarder.queued).toBe(0);
    release(answer());
    expect((await first.readResponse()).status).toBe(200);
    expect(upstream.requestLines).toEqual(['GET /first HTTP/1.1']);
    first.close();
  });
});
