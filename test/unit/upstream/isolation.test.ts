import { createServer } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { hearFaults } from '../../../src/lib/faults.ts';
import type { UpstreamClient, UpstreamHandler } from '../../../src/upstream/port.ts';
import { ResponseHeadCheck } from '../../../src/upstream/response-parser.ts';
import { listen } from '../../harness/listen.ts';
import { answer } from '../../harness/recording-upstream.ts';
import { ask, clientOf } from './direct-client.ts';

const bug = () => {
  throw new Error('a bug');
};

describe('an exchange that throws ends alone', () => {
  const ends: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    hearFaults(() => {});
    for (const end of ends.splice(0).reverse()) await end();
  });

  async function start() {
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.on('data', () => socket.write(`HTTP/1.1 103 Early\r\n\r\n${answer('x'.repeat(1_000))}`));
    });
    const { port, close } = await listen(server);
    const client = clientOf(port, { connections: 10, queueLimit: 100 });
    const faults: unknown[] = [];
    hearFaults((fault) => faults.push(fault));
    ends.push(close, () => client.close());
    return { client, faults };
  }

  /** Sends 20 other requests in the same tick, more than there are connections. */
  async function askAmongOthers(
    client: UpstreamClient,
    throws: Partial<UpstreamHandler>,
    maySend?: () => boolean,
  ) {
    const before = Array.from({ length: 10 }, () => ask(client));
    const one = ask(client, maySend ? { maySend } : {}, throws);
    const after = Array.from({ length: 10 }, () => ask(client));
    expect(await Promise.all([...before, ...after])).toEqual(Array(20).fill(200));
    return one;
  }

  const callbacks = ['onConnection', 'onSent', 'onInformational', 'onHead', 'onData', 'onEnd'] as const;
  it.each(callbacks)('in %s', async (name) => {
    const { client, faults } = await start();
    expect(await askAmongOthers(client, { [name]: bug })).toBe('internal');
    expect(faults).toMatchObject([{ message: 'a bug' }]);
    expect([client.inFlight, client.queued]).toEqual([0, 0]);
  });

  it('in maySend', async () => {
    const { client } = await start();
    expect(await askAmongOthers(client, {}, bug)).toBe('not-sent');
    expect([client.inFlight, client.queued]).toEqual([0, 0]);
  });

  it('in onFault', async () => {
    const { client, faults } = await start();
    const others = Array.from({ length: 20 }, () => ask(client));
    const exchange = client.dispatch(
      { method: 'GET', target: '/', fields: ['Host', 's'], body: null },
      { onHead() {}, onData: () => true, onEnd() {}, onFault: bug },
    );
    exchange.abort();
    expect(await Promise.all(others)).toEqual(Array(20).fill(200));
    expect(faults).toMatchObject([{ message: 'a bug' }]);
  });

  it('while the request leaves its connection', async () => {
    const { client, faults } = await start();
    const stream = new Readable({ read() {} });
    // Pausing the body throws, after its first byte was sent.
    stream.pause = () => {
      throw new Error('a bug');
    };
    const ended = ask(client, { method: 'POST', body: { stream, length: undefined } });
    stream.push('x');
    expect(await ended).toBe(200);
    expect(faults[0]).toMatchObject({ message: 'a bug' });
    expect(await ask(client)).toBe(200);
    expect([client.inFlight, client.queued]).toEqual([0, 0]);
  });

  it('in the check of the response head', async () => {
    const { client, faults } = await start();
    const read = ResponseHeadCheck.prototype.read;
    let reads = 0;
    ResponseHeadCheck.prototype.read = function (chunk, length) {
      reads += 1;
      if (reads === 3) bug();
      return read.call(this, chunk, length);
    };
    try {
      const seen = await Promise.all(Array.from({ length: 20 }, () => ask(client)));
      expect(seen.filter((one) => one !== 200)).toEqual(['internal']);
      expect(faults).toMatchObject([{ message: 'a bug' }]);
    } finally {
      ResponseHeadCheck.prototype.read = read;
    }
  });
});
