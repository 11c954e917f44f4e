import { Duplex } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { hearFaults } from '../../src/lib/faults.ts';
import { PooledConnection } from '../../src/upstream/connection.ts';
import type { ConnectionPool } from '../../src/upstream/connection-pool.ts';
import type { UpstreamFault, UpstreamHandler, UpstreamRequest } from '../../src/upstream/engine.ts';
import { PooledExchange } from '../../src/upstream/pooled-exchange.ts';

class Connection extends PooledConnection {
  read(): boolean {
    return true;
  }
}

/** An engine that writes nothing; the test says what becomes of the connection. */
class Exchange extends PooledExchange<Connection> {
  timesSent = 0;
  answerBegun = false;

  resume(): void {}

  break(kind: UpstreamFault['kind']): void {
    this.fail(kind);
  }

  complete(): void {
    this.succeed(true);
  }

  protected transmit(): void {
    if (this.mayLeave()) this.timesSent += 1;
  }

  protected detach(): void {}
}

const get: UpstreamRequest = { method: 'GET', target: '/', fields: [], body: null };

function start(request: Partial<UpstreamRequest> = {}, more: Partial<UpstreamHandler> = {}) {
  const seen: string[] = [];
  const faults: UpstreamFault[] = [];
  const pool = {
    acquire: (_: unknown, need: string) => seen.push(`acquire ${need}`),
    leave: () => seen.push('leave'),
    release: () => seen.push('release'),
    discard: () => seen.push('discard'),
  } as unknown as ConnectionPool<Connection>;
  const handler: UpstreamHandler = {
    onConnection: () => seen.push('connection'),
    onRetry: () => seen.push('retry'),
    onHead() {},
    onData: () => true,
    onEnd: () => seen.push('end'),
    onFault: (fault) => faults.push(fault),
    ...more,
  };
  const exchange = new Exchange({ ...get, ...request }, handler, pool);
  /** A connection that has served so many exchanges, this one included. */
  const connect = (exchanges: number) => {
    const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
    const connection = new Connection(socket as never, Buffer.alloc(0));
    connection.exchanges = exchanges;
    exchange.onConnection(connection);
    exchange.send();
    return connection;
  };
  exchange.start();
  return { exchange, seen, faults, connect };
}

afterEach(() => hearFaults(() => {}));

describe('a reset that a stale connection explains', () => {
  it('is tried again on a new connection, once, and its handler hears of it', () => {
    const { exchange, seen, faults, connect } = start();
    connect(2);
    exchange.break('reset');
    expect(seen).toEqual(['acquire any', 'connection', 'retry', 'discard', 'acquire new']);
    connect(2);
    expect(exchange.timesSent).toBe(2);
    exchange.break('reset');
    expect(faults).toEqual([
      { kind: 'reset', sent: true, reusedConnection: true, answerBegun: false, cause: undefined },
    ]);
    expect(seen.slice(5)).toEqual(['leave', 'discard']);
  });

  it.each<[string, Partial<UpstreamRequest>, number, boolean, UpstreamFault['kind']]>([
    ['on a new connection', {}, 1, false, 'reset'],
    ['after a byte of the answer', {}, 2, true, 'reset'],
    ['of a request that is not safe', { method: 'POST' }, 2, false, 'reset'],
    ['of a request with a body', { body: Buffer.from('a') }, 2, false, 'reset'],
    ['that is another fault', {}, 2, false, 'malformed'],
  ])('is none %s', (_, request, exchanges, answerBegun, kind) => {
    const { exchange, seen, faults, connect } = start(request);
    connect(exchanges);
    exchange.answerBegun = answerBegun;
    exchange.break(kind);
    expect(seen).not.toContain('retry');
    expect(faults).toEqual([
      { kind, sent: true, reusedConnection: exchanges > 1, answerBegun, cause: undefined },
    ]);
  });

  it('ends with the fault of a handler that cannot hear of it, and is given back', () => {
    const heard: unknown[] = [];
    hearFaults((fault) => heard.push(fault));
    const bug = new Error('a bug');
    const { exchange, seen, faults, connect } = start(
      {},
      {
        onRetry() {
          throw bug;
        },
      },
    );
    connect(2);
    exchange.break('reset');
    expect(faults).toEqual([
      { kind: 'internal', sent: true, reusedConnection: true, answerBegun: false, cause: bug },
    ]);
    expect(heard).toEqual([bug]);
    expect(seen).toEqual(['acquire any', 'connection', 'leave', 'discard']);
  });
});

describe('before anything has left', () => {
  it('a request on a reused connection that has ended is sent on a new one', () => {
    const { exchange, seen, faults, connect } = start({ method: 'POST' });
    const { onConnection } = exchange;
    exchange.onConnection = (connection) => {
      connection.socket.destroy();
      onConnection.call(exchange, connection);
    };
    connect(2);
    expect([seen, faults]).toEqual([['acquire recent', 'connection', 'discard', 'acquire new'], []]);
    connect(1);
    expect(faults).toMatchObject([{ kind: 'reset', sent: false, reusedConnection: false }]);
    expect(exchange.timesSent).toBe(0);
  });

  it.each<[string, () => boolean]>([
    ['says no', () => false],
    [
      'has a bug',
      () => {
        throw new Error('a bug');
      },
    ],
  ])('who may forbid it %s: nothing is sent', (_, maySend) => {
    const { exchange, faults, connect } = start({ maySend });
    connect(1);
    expect([exchange.timesSent, faults]).toMatchObject([0, [{ kind: 'not-sent', sent: false }]]);
  });
});

it('a whole response gives its connection back, and nothing is heard after that', () => {
  const { exchange, seen, faults, connect } = start();
  connect(1);
  exchange.complete();
  exchange.complete();
  exchange.break('reset');
  exchange.abort();
  expect([seen, faults]).toEqual([['acquire any', 'connection', 'release', 'end'], []]);
});
