import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { CanonicalRequest } from '../../../src/http/canonical-request.ts';
import { reject } from '../../../src/http/rejection.ts';
import type { Connection, ResponseReader } from '../../../src/upstream/connection.ts';
import type { ForwardResult } from '../../../src/upstream/forward.ts';
import { ForwardedExchange } from '../../../src/upstream/forwarded-exchange.ts';
import type { ForwardOutcome, ResponseEdits, UpstreamHooks } from '../../../src/upstream/hooks.ts';
import type { UpstreamHandler, UpstreamRequest } from '../../../src/upstream/port.ts';
import type { ResponseParser } from '../../../src/upstream/response-parser.ts';
import { type CallConnections, UpstreamCall } from '../../../src/upstream/upstream-call.ts';

/** Settings of an exchange. */
const setupArbitrary = fc.record({
  method: fc.constantFrom('GET' as const, 'POST' as const),
  body: fc.constantFrom('none', 'whole', 'stream' as const),
  hooks: fc.option(
    fc.record({
      bufferLimit: fc.constantFrom(0, 50, 10_000),
      ignoreClientAbort: fc.boolean(),
      answerWithinMs: fc.option(fc.constant(3_000), { nil: undefined }),
      sendWithinMs: fc.option(fc.constant(200), { nil: undefined }),
      withholds: fc.boolean(),
      maySend: fc.constantFrom(true, true, true, false),
    }),
    { nil: undefined },
  ),
  /** The last edit of the response throws. */
  hasBug: fc.constantFrom(false, false, false, false, true),
});
type Setup = typeof setupArbitrary extends fc.Arbitrary<infer T> ? T : never;

/** Events of the connection. */
const connectionEvents: Readonly<Record<string, (connection: ScriptedConnection) => void>> = {
  sent: (connection) => connection.tellSent(),
  'interim response': (connection) => {
    if (!connection.hasHead) connection.read({ informational: [head(103, ['Link', '</a>'])] });
  },
  head: (connection) => {
    if (!connection.hasHead) connection.read({ head: head(200, ['Content-Type', 'text/plain']) });
  },
  chunk: (connection) => connection.readBody(20),
  'long chunk': (connection) => connection.readBody(40_000),
  end: (connection) => connection.readEnd(true),
  'end, not reusable': (connection) => connection.readEnd(false),
  reset: ({ reader }) => reader?.onClosed(undefined, undefined),
  malformed: (connection) => connection.read({ fault: new Error('malformed') }),
  'a bug': ({ reader }) => reader?.onThrown(new Error('a bug')),
};

function head(status: number, fields: string[]) {
  return { status, reason: 'OK', fields };
}

const stageEvents: Readonly<Record<string, (stage: Stage) => void>> = {
  connection: (stage) => stage.connect(1),
  'reused connection': (stage) => stage.connect(2),
  'no connection': (stage) => stage.refuseConnection(),
  'end of turn': () => void vi.advanceTimersByTime(0),
  'a bug reports its fault again': (stage) => stage.tellAgain(),
  'some time': () => void vi.advanceTimersByTime(400),
  'a long time': () => void vi.advanceTimersByTime(10_000),
  'client leaves': ({ client, response }) => {
    client.destroy();
    response.destroy();
  },
  'client reads': ({ client }) => client.goOn(),
  'client does not read': ({ client }) => {
    client.isReading = false;
    client.hasWaited = true;
  },
  'chunk of request': ({ incoming }) => void incoming.emit('data', Buffer.alloc(10)),
  'long chunk of request': ({ incoming }) => void incoming.emit('data', Buffer.alloc(2_000)),
  'request breaks off': ({ incoming, setup }) => {
    if (setup.body === 'stream') incoming.destroy();
  },
  outcome: (stage) => stage.settle({}),
  'outcome: refused': (stage) => stage.settle({ rejection: reject('resource-busy') }),
  'outcome: not modified': (stage) => stage.settle({ notModified: true }),
  'outcome: throws': (stage) => stage.settle(new Error('a store is away')),
};

const names = [...Object.keys(connectionEvents), ...Object.keys(stageEvents)];
const walkArbitrary = fc
  .tuple(
    // Most random orders end early, so half of the walks begin with events that lead an exchange further.
    fc.constantFrom(0, 0, 0, 2, 2, 3, 4, 5),
    fc.constantFrom('connection', 'reused connection'),
    fc.constantFrom('chunk', 'long chunk'),
    fc.array(fc.constantFrom(...names), { maxLength: 40 }),
  )
  .map(([far, connection, chunk, rest]) => [
    ...[connection, 'end of turn', 'head', chunk, 'end'].slice(0, far),
    // A response whose client reads slowly.
    ...(far === 4 ? ['client does not read', chunk, chunk, chunk, 'client reads'] : []),
    ...rest,
  ]);

/** The client's end of a response: accepts what is written, or makes its writer wait. */
class ClientSocket extends Duplex {
  received = '';
  /** Characters written, including those that wait for the client to read. */
  written = 0;
  isReading = true;
  hasWaited = false;
  #taken: (() => void)[] = [];

  override _read(): void {}

  override write(chunk: string | Buffer, ...rest: unknown[]): boolean {
    this.written += chunk.length;
    return super.write(chunk, ...(rest as [BufferEncoding]));
  }

  override _write(chunk: Buffer, _: string, taken: () => void): void {
    this.received += chunk.toString('latin1');
    if (this.isReading) taken();
    else this.#taken.push(taken);
  }

  destroySoon(): void {
    this.end(() => this.destroy());
  }

  goOn(): void {
    this.isReading = true;
    for (const taken of this.#taken.splice(0)) taken();
  }
}

/** A connection whose upstream acts when the test says so. */
class ScriptedConnection {
  timesGivenBack = 0;
  phase = 'busy';
  cause: unknown;
  saidIdleTimeoutMs: number | undefined;
  reader: ResponseReader | undefined;
  isAsked = false;
  hasHead = false;
  readonly exchanges: number;
  /** Called when the kernel has the request. */
  #taken: (() => void) | undefined;
  #isPaused = false;
  readonly socket = {
    writable: true,
    writableLength: 1,
    write: (_bytes: unknown, encoding: unknown) => {
      if (typeof encoding === 'function') this.#taken = encoding as () => void;
      return true;
    },
    cork() {},
    uncork() {},
    pause: () => {
      this.#isPaused = true;
    },
    resume: () => {
      this.#isPaused = false;
    },
  };

  constructor(exchanges: number) {
    this.exchanges = exchanges;
  }

  assign(reader: ResponseReader): void {
    this.reader = reader;
  }

  begin(): void {
    assert.equal(this.timesGivenBack, 0);
    this.isAsked = true;
  }

  leave(): void {
    this.reader = undefined;
  }

  get isPaused(): boolean {
    return this.reader !== undefined && this.#isPaused;
  }

  tellSent(): void {
    this.socket.writableLength = 0;
    this.#taken?.();
  }

  read(what: Partial<ResponseParser>): void {
    if (what.head !== undefined) this.hasHead = true;
    const nothing = { informational: [], bodyStart: 0, bodyEnd: 0, isComplete: false, isReusable: false };
    this.reader?.onRead(
      { ...nothing, ...what } as ResponseParser,
      Buffer.alloc(what.bodyEnd ?? 0, 'x'),
      undefined,
    );
  }

  readBody(bodyEnd: number): void {
    if (this.hasHead) this.read({ bodyEnd });
  }

  readEnd(isReusable: boolean): void {
    if (this.hasHead) this.read({ isComplete: true, isReusable });
  }
}

/** An exchange with made-up partners. After each event it checks the rules of all states. */
class Stage {
  readonly setup: Setup;
  readonly results: ForwardResult[] = [];
  readonly outcomes: ForwardOutcome[] = [];
  readonly connections: ScriptedConnection[] = [];
  readonly client = new ClientSocket();
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  waiter: UpstreamCall | undefined;
  handler: UpstreamHandler | undefined;
  hear: ((edits: ResponseEdits | Promise<ResponseEdits>) => void) | undefined;
  /** Characters written to the client when the caller got the outcome. */
  writtenAtEnd = 0;

  constructor(setup: Setup) {
    this.setup = setup;
    this.client.on('error', () => {});
    // Its fields announce no body; other tests cover an early answer to a request with a body.
    this.incoming = new IncomingMessage(this.client as unknown as Socket);
    Object.assign(this.incoming, { method: setup.method, httpVersionMajor: 1, httpVersionMinor: 1 });
    this.incoming.httpVersion = '1.1';
    this.incoming.on('error', () => {});
    this.response = new ServerResponse(this.incoming);
    this.response.assignSocket(this.client as unknown as Socket);
  }

  start(): void {
    const { body, method } = this.setup;
    const connections: CallConnections = {
      queueTimeoutMs: 60_000,
      enter: (exchange) => {
        assert.equal(this.waiter, undefined);
        this.waiter = exchange;
      },
      replace: (exchange, connection) => {
        giveBack(connection);
        exchange.connection = undefined;
        this.waiter = exchange;
      },
      leave: ({ connection }) => {
        this.waiter = undefined;
        if (connection !== undefined) giveBack(connection);
      },
      faultOfWait: () => 'overloaded',
    };
    const client = {
      dispatch: (request: UpstreamRequest, handler: UpstreamHandler) => {
        this.handler = handler;
        const exchange = new UpstreamCall(request, handler, connections);
        exchange.start();
        return exchange;
      },
      inFlight: 0,
      queued: 0,
      close: () => Promise.resolve(),
    };
    const options = {
      client,
      responseTimeoutMs: 2_000,
      writeStallTimeoutMs: 4_000,
      bodyLimitBytes: 1_000,
      bodyTimeoutMs: 1_500,
    };
    const request = { method, path: '/', query: '', fields: ['Host', 's'], expectsContinue: false };
    const { incoming, response } = this;
    const input = {
      request: request as unknown as CanonicalRequest,
      incoming,
      response,
      hooks: this.setup.hooks && this.#hooks(this.setup.hooks),
    };
    const bodies = { none: null, whole: Buffer.from('b'), stream: { stream: incoming, length: undefined } };
    new ForwardedExchange(options, input, bodies[body], {
      editResponse: (fields) => {
        if (this.setup.hasBug) throw new Error('a bug of ours');
        return fields;
      },
      conclude: (result) => {
        this.writtenAtEnd = this.client.written;
        this.results.push(result);
      },
    }).start();
  }

  async play(event: string): Promise<void> {
    const onConnection = connectionEvents[event];
    const connection = this.connections.at(-1);
    if (onConnection === undefined) stageEvents[event]?.(this);
    // The upstream acts only after a request, and while it is read.
    else if (connection?.isAsked === true && !connection.isPaused) onConnection(connection);
    // For promises of the hooks, and for streams that report in a later tick.
    for (let i = 0; i < 4; i += 1) await new Promise((resolve) => process.nextTick(resolve));
    this.#check(event);
  }

  /** Timers end whatever is left open; only a feature must give its answer. */
  async finish(): Promise<void> {
    await this.play('no connection');
    for (let i = 0; i < 4 && this.results.length === 0; i += 1) {
      await this.play('a long time');
      await this.play('a long time');
      await this.play('outcome');
    }
    assert.equal(this.results.length, 1);
    await this.play('client reads');
    await this.play('a long time');
    assert.equal(this.waiter, undefined);
    this.response.destroy();
    this.incoming.destroy();
    await this.play('end of turn');
    await this.play('end of turn');
    assert.equal(vi.getTimerCount(), 0);
  }

  connect(exchanges: number): void {
    const { waiter } = this;
    if (waiter === undefined) return;
    this.waiter = undefined;
    const connection = new ScriptedConnection(exchanges);
    this.connections.push(connection);
    waiter.onConnection(connection as unknown as Connection);
  }

  refuseConnection(): void {
    const { waiter } = this;
    this.waiter = undefined;
    waiter?.onConnectionFault('unreachable', undefined);
  }

  tellAgain(): void {
    const isOver = this.waiter === undefined && this.connections.at(-1)?.timesGivenBack !== 0;
    if (isOver) this.handler?.onFault({ kind: 'internal', sent: true, answerBegun: true });
  }

  settle(edits: ResponseEdits | Error): void {
    const heard = this.hear;
    this.hear = undefined;
    heard?.(edits instanceof Error ? Promise.reject(edits) : edits);
  }

  #hooks({ bufferLimit, ignoreClientAbort, ...setup }: NonNullable<Setup['hooks']>): UpstreamHooks {
    return {
      bufferLimit,
      ignoreClientAbort,
      ...(setup.answerWithinMs && { answerWithinMs: setup.answerWithinMs }),
      ...(setup.sendWithinMs && { sendWithinMs: setup.sendWithinMs }),
      withholds: () => setup.withholds && setup.answerWithinMs !== undefined,
      maySend: () => setup.maySend,
      onOutcome: (outcome) => {
        this.outcomes.push(outcome);
        return new Promise((resolve) => {
          this.hear = resolve;
        });
      },
    };
  }

  #check(event: string): void {
    const { results, outcomes, setup, client } = this;
    assert.ok(results.length <= 1);
    assert.ok(outcomes.length <= 1);
    const [result] = results;
    if (result !== undefined && setup.hooks !== undefined) assert.equal(outcomes.length, 1);
    for (const { timesGivenBack } of this.connections) assert.ok(timesGivenBack <= 1);
    // At most one connection at a time; none at the end.
    const held = this.connections.filter(({ timesGivenBack }) => timesGivenBack === 0).length;
    const isConcluded = outcomes.length > 0 || result !== undefined;
    assert.ok(held <= (isConcluded ? 0 : 1));
    // The body has no reader and the exchange no timer, except for a response that waits for its client.
    if (isConcluded) assert.equal(this.incoming.listenerCount('data'), 0);
    if (isConcluded && event === 'end of turn' && !client.hasWaited) assert.equal(vi.getTimerCount(), 0);
    if (event === 'client leaves' && setup.hooks?.ignoreClientAbort !== true) assert.equal(isConcluded, true);
    if (event === 'client reads' && !isConcluded) assert.notEqual(this.connections.at(-1)?.isPaused, true);
    // At most one response. The caller writes a refusal, so nothing was written and nothing will be.
    const heads = client.received.match(/HTTP\/1\.1 [2-5]\d\d/g) ?? [];
    assert.ok(heads.length <= 1);
    if (result?.end === 'rejected') assert.deepEqual([result.status, heads.length], [0, 0]);
    if (result?.end === 'rejected') assert.equal(client.written, this.writtenAtEnd);
    if (result?.end === 'sent') assert.ok(result.status > 0);
    if (result?.end !== 'rejected') assert.equal(result?.rejection, undefined);
  }
}

function giveBack(connection: Connection): void {
  (connection as unknown as ScriptedConnection).timesGivenBack += 1;
}

describe('a forwarded exchange', () => {
  beforeAll(() => {
    vi.useFakeTimers({
      toFake: [
        'setTimeout',
        'clearTimeout',
        'setInterval',
        'clearInterval',
        'setImmediate',
        'clearImmediate',
        'performance',
      ],
    });
  });
  afterAll(() => {
    vi.useRealTimers();
  });

  it('ends once, releases its connection once, and stops reading its body, in random orders of events', async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(setupArbitrary, walkArbitrary, async (setup, played) => {
        const stage = new Stage(setup);
        stage.start();
        for (const event of played) await stage.play(event);
        await stage.finish();
        const [result] = stage.results;
        seen.add(`${result?.end}`).add(`${result?.fault}`).add(`${result?.rejection?.rejection}`);
        if (result?.retried === true) seen.add('retried');
      }),
      { numRuns: 800 },
    );
    // The walks reached different ends.
    for (const end of ['sent', 'rejected', 'cut', 'client-gone', 'retried', 'timeout', 'late', 'internal']) {
      expect(seen).toContain(end);
    }
    expect(seen).toContain('resource-busy');
    expect(seen).toContain('payload-too-large');
  });
});
