import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { endResponse } from '../../../src/http/write-response.ts';
import { EndOfTick } from '../../../src/lib/end-of-tick.ts';
import { hearFaults } from '../../../src/lib/faults.ts';
import { Listener, type ListenerOptions } from '../../../src/server/listener.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';

/** An exchange that throws ends itself and no other. */
let listener: Listener;
let faults: unknown[] = [];
const uncaught: unknown[] = [];
const onUncaught = (fault: unknown) => void uncaught.push(fault);
afterEach(async () => {
  await listener?.drain({ graceMs: 0, withinMs: 0 });
  expect(uncaught).toEqual([]);
});
process.on('uncaughtException', onUncaught);

async function start(
  handle: ListenerOptions['handle'],
  more: Partial<ListenerOptions> = {},
): Promise<number> {
  faults = [];
  hearFaults((fault) => {
    faults.push(fault);
    throw new Error('the log is broken as well');
  });
  listener = new Listener({
    host: '127.0.0.1',
    port: 0,
    keepAliveTimeoutMs: 60_000,
    requestHeadersBytes: 16_384,
    rejectMalformed: (_why, socket) => socket.destroy(),
    handle,
    ...more,
  });
  return (await listener.listen()).port;
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: s\r\n\r\n`;
const bug = () => {
  throw new Error('a bug');
};

describe('the end of a tick', () => {
  it('runs all items if some throw, and if their end throws', async () => {
    const seen: number[] = [];
    hearFaults((fault) => faults.push(fault));
    faults = [];
    const work = new EndOfTick<number>(
      (item) => (item % 2 === 0 ? bug() : void seen.push(item)),
      (item) => {
        seen.push(-item);
        bug();
      },
    );
    for (let i = 0; i < 5; i++) work.add(i);
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toEqual([-0, 1, -2, 3, -4]);
    expect(faults).toHaveLength(3);
  });

  it('a response whose write throws ends its connection; others in the same tick are complete', async () => {
    const port = await start((incoming, response) => {
      if (incoming.url === '/bad') response.end = bug as never;
      response.writeHead(200, { 'Content-Length': 2 });
      endResponse(incoming, response, 'ok');
      return undefined;
    });
    const ask = (path: string) =>
      exchangeRaw(port, get(path)).then(
        ({ status, body }) => `${status} ${body}`,
        () => 'ended',
      );
    expect(await Promise.all(['/1', '/bad', '/2', '/bad', '/3'].map(ask))).toEqual([
      ...['200 ok', 'ended', '200 ok', 'ended', '200 ok'],
    ]);
    expect(faults).toHaveLength(2);
  });
});

describe('an event of a connection', () => {
  const answerOr =
    (isBad: (path: string) => boolean): ListenerOptions['handle'] =>
    (incoming, response) => {
      if (isBad(incoming.url ?? '')) bug();
      response.end('ok');
      return { ended: () => (incoming.url === '/ends-badly' ? bug() : undefined) };
    };
  const closed = (bytes: string, port: number) =>
    new Promise<void>((resolve) => {
      const socket: Socket = connect(port, '127.0.0.1', () => socket.write(bytes));
      socket.on('error', () => {}).on('close', () => resolve());
      socket.resume();
    });

  it.each([
    ['a request', get('/bad'), {}],
    ['the end of a response', get('/ends-badly'), {}],
    ['a request that waited', get('/good') + get('/bad'), {}],
    ['octets that are no request', 'nonsense\r\n\r\n', { rejectMalformed: bug }],
    ['a tunnel', 'CONNECT s:1 HTTP/1.1\r\nHost: s\r\n\r\n', { rejectMalformed: bug }],
    [
      'an upgrade',
      'GET /ws HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      { handleUpgrade: bug },
    ],
  ])('that throws in %s ends only its connection', async (_, bytes, more) => {
    const port = await start(
      answerOr((path) => path === '/bad'),
      more,
    );
    const other = connect(port, '127.0.0.1');
    other.write(get('/good'));
    await new Promise((resolve) => other.once('data', resolve));
    await closed(bytes, port);
    expect(faults).toHaveLength(1);
    other.write(get('/good'));
    expect(String(await new Promise((resolve) => other.once('data', resolve)))).toContain('200 OK');
    other.destroy();
  });
});
