import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { frontSuite, notingHooks } from '../../harness/forwarding-front.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

const get = 'GET / HTTP/1.1\r\nHost: s\r\n\r\n';

/** F1, F2: a target must not be rewritten after the decision, as WHATWG `URL` would do. */
frontSuite('F1: targets that a URL parser rewrites', (start) => {
  it.each([
    '/a/../orders',
    '/a/%2e%2e/orders',
    '/a/.%2e/orders',
    '/a\\..\\orders',
    '/\\orders',
    ...'/orders#frag /orders#/../x?y /orders/. /orders/%2e /orders? /a"b /a{b} /a<b> /a`b`'.split(' '),
    '/a^b',
    "/?q='",
    ...'//../orders //x/../orders //orders ///orders //[::1'.split(' '),
    ...'//user:pass@evil.test:99/orders /a/..%2forders /%252e /..;/ /%00%0a%zz'.split(' '),
    '/caf\xe9',
  ])('the target %j is forwarded unchanged', async (target) => {
    const { port, upstream } = await start(() => answer(), {
      edit: (request) => ({ ...request, path: target, query: '' }),
    });
    expect((await exchangeRaw(port, 'GET / HTTP/1.1\r\nHost: s\r\n\r\n')).status).toBe(200);
    expect(upstream.requestLines).toEqual([`GET ${target} HTTP/1.1`]);
    expect(upstream.bytes()).toMatch(/\r\nhost: s\r\n/i);
  });
});

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

/** F10, F16: each field line is forwarded, though Node's parsed view drops or joins some. Connections are kept open. */
frontSuite('F10: repeated field lines', (start) => {
  it.each('If-Match If-None-Match X-Any Cookie Accept If-Modified-Since User-Agent From'.split(' '))(
    'two lines of %s are forwarded as two, in order',
    async (name) => {
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
    },
  );

  it('F16: no request asks the upstream to close', async () => {
    const { port, upstream } = await start(() => answer());
    for (const version of ['1.1', '1.0']) {
      await exchangeRaw(port, `GET / HTTP/${version}\r\nHost: s\r\nConnection: close\r\n\r\n`);
    }
    expect(upstream.bytes()).not.toMatch(/connection: close/i);
    expect(upstream.connections).toHaveLength(1);
  });
});

/** F3, F11, H17: a request that cannot be written is refused before its first byte, and does not crash the process. */
frontSuite('F11: requests that cannot be written', (start) => {
  it.each([
    ['CR LF in a value', { fields: ['Host', 's', 'X-User', 'a\r\nX-Admin: 1'] }],
    ['LF in a value', { fields: ['Host', 's', 'X-User', 'a\nX-Admin: 1'] }],
    ['NUL in a value', { fields: ['Host', 's', 'X-User', 'a\0'] }],
    ['a value outside latin-1', { fields: ['Host', 's', 'X-User', '\u{1f600}'] }],
    ['CR LF in a name', { fields: ['Host', 's', 'X-User: a\r\nX-Admin', '1'] }],
    ['a space in a name', { fields: ['Host', 's', 'X User', '1'] }],
    ['an empty name', { fields: ['Host', 's', '', '1'] }],
    ['CR LF in the target', { path: '/a HTTP/1.1\r\nX-Admin: 1\r\n\r\nGET /b' }],
    ['a space in the target', { path: '/a b' }],
    ['a method with a space', { method: 'GET /x' as 'GET' }],
  ])('500 for %s, and nothing is sent', async (_what, change) => {
    const { hooks, outcomes } = notingHooks();
    const { port, upstream, front } = await start(() => answer(), {
      edit: (request) => (outcomes.length === 0 ? { ...request, ...change } : request),
      hooks,
    });
    const response = await exchangeRaw(port, get);
    expect([response.status, response.field('content-type')]).toEqual([500, 'application/vnd.api+json']);
    expect(upstream.bytes()).toBe('');
    expect(outcomes).toEqual([{ kind: 'unsent', fault: 'not-sent' }]);
    expect(front.forwarder.inFlight).toBe(0);
    expect((await exchangeRaw(port, get)).status).toBe(200);
  });

  it.each([
    ...'http:// http://[::1 http://a:99999/x http://%/x HTTP://[/ http://a%00b/ //[::1 * x'.split(' '),
  ])('F3: the target %j is forwarded', async (target) => {
    const { port, upstream } = await start(() => answer(), {
      edit: (request) => ({ ...request, path: target }),
    });
    const { status } = await exchangeRaw(port, get);
    expect(status).toBe(200);
    expect(upstream.requestLines).toEqual([`GET ${target} HTTP/1.1`]);
  });
});

/** F6, F12, H14, H15, H16, H21: the fields of one connection are not forwarded to the next. */
frontSuite('F12: hop-by-hop fields', (start) => {
  it('of a response are removed, with the fields that Connection names, except ETag and Content-Type', async () => {
    const { port } = await start(() =>
      answer(
        'ok',
        'Connection: close, X-Hop , ETag,content-type\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nProxy-Authenticate: Basic\r\n' +
          'Proxy-Connection: close\r\nUpgrade: h2c\r\nTE: trailers\r\nTrailer: X-T\r\nHTTP2-Settings: x\r\nX-Debug-Token: 1\r\n' +
          'Server: nginx/1.0\r\nETag: "1"\r\nContent-Type: text/plain\r\nX-End: 1\r\n',
      ),
    );
    const response = await exchangeRaw(port, get);
    const names = response.rawFields.filter((_, i) => i % 2 === 0);
    expect(names).toEqual([
      ...'Content-Length ETag Content-Type X-End Date Connection Keep-Alive'.split(' '),
    ]);
    expect(response.field('connection')).toBe('keep-alive');
    expect(response.field('keep-alive')).not.toBe('timeout=9');
  });

  it('H16: trailers of a response are removed, and its body is complete', async () => {
    const { port } = await start(
      () =>
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: ETag, Set-Cookie\r\n\r\n2\r\nok\r\n0\r\nETag: "t"\r\nSet-Cookie: a=b\r\n\r\n',
    );
    const { body, complete, trailers, field } = await exchangeRaw(port, get);
    expect([body.toString(), complete, trailers, field('trailer')]).toEqual(['ok', true, [], undefined]);
  });

  it('are not sent to the shop, even if the canonical request has them', async () => {
    const { port, upstream } = await start(() => answer(), {
      edit: (request) => ({
        ...request,
        fields: [
          ...request.fields,
          ...[
            'Connection',
            'Upgrade, HTTP2-Settings',
            ...'Upgrade h2c HTTP2-Settings x TE trailers'.split(' '),
          ],
          ...['Keep-Alive', '5', 'Proxy-Connection', 'close', 'Expect', '100-continue', 'Trailer', 'X-T'],
        ],
      }),
    });
    expect((await exchangeRaw(port, get)).status).toBe(200);
    expect(upstream.bytes()).not.toMatch(/upgrade|http2|\r\nte:|\r\nkeep-alive:|proxy-|expect|trailer/i);
    expect(upstream.bytes()).not.toMatch(/connection: close/i);
  });
});

/** F14: the outcome of a write must be known even if its client leaves. */
frontSuite('F14: the client leaves', (start) => {
  const patch = 'PATCH /a HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\n{}';

  it('with `ignoreClientAbort` a write is completed and its outcome reported', async () => {
    const { hooks, outcomes } = notingHooks({ ignoreClientAbort: true });
    const { port, upstream, front } = await start(
      async ({ connection }) => {
        client.close();
        // Ticks, not time: after a stall a timer would run before the proxy reads that the client has left.
        for (let tick = 0; tick < 20; tick += 1) await nextTick();
        expect(connection.socket.destroyed).toBe(false);
        return answer('done', 'ETag: "2"\r\n');
      },
      { hooks },
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
  ])(
    'without it a client that leaves %s closes the upstream connection: the outcome is unknown',
    async (_when, bytes) => {
      const { hooks, outcomes } = notingHooks({ bufferLimit: 0 });
      const { port, upstream, front } = await start(
        ({ connection }) => {
          connection.socket.write(bytes);
          setTimeout(() => client.close(), 50);
          return undefined;
        },
        { hooks },
      );
      const client = await openRawConnection(port);
      await client.write(patch);
      expect(await front.resultsOf(1)).toMatchObject([{ end: 'client-gone', rejection: undefined }]);
      await upstream.connections[0]?.closed;
      expect(outcomes).toEqual([{ kind: 'unknown', fault: 'aborted' }]);
      expect(front.forwarder.inFlight).toBe(0);
    },
  );

  it('the upstream connection is closed when a client leaves within its body', async () => {
    const { port, upstream, front } = await start(() => undefined);
    const client = await openRawConnection(port);
    await client.write('POST /a HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
    while (!upstream.bytes().includes('abc')) await sleep(5);
    client.close();
    expect(await front.resultsOf(1)).toMatchObject([{ end: 'client-gone' }]);
    await upstream.connections[0]?.closed;
    expect(upstream.bytes()).not.toContain('\r\n0\r\n');
  });

  it('the request of a client that has left the queue is not forwarded', async () => {
    let release: (said: string) => void = () => {};
    const { port, upstream, front } = await start(
      () => new Promise<string>((resolve) => (release = resolve)),
      { connections: 1 },
    );
    const first = await openRawConnection(port);
    await first.write('GET /first HTTP/1.1\r\nHost: s\r\n\r\n');
    while (upstream.requestLines.length === 0) await sleep(5);
    const second = await openRawConnection(port);
    await second.write('GET /second HTTP/1.1\r\nHost: s\r\n\r\n');
    while (front.forwarder.queued === 0) await sleep(5);
    second.close();
    expect(await front.resultsOf(1)).toMatchObject([{ end: 'client-gone' }]);
    expect(front.forwarder.queued).toBe(0);
    release(answer());
    expect((await first.readResponse()).status).toBe(200);
    expect(upstream.requestLines).toEqual(['GET /first HTTP/1.1']);
    first.close();
  });
});

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
