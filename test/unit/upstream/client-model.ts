import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { OnReadOpts, Socket } from 'node:net';
import fc from 'fast-check';
import { vi } from 'vitest';
import type { createUpstreamClient } from '../../../src/upstream/client.ts';
import type { UpstreamClient, UpstreamExchange } from '../../../src/upstream/port.ts';

/** Events of the model. A number selects one of the sockets or exchanges that can have the event. */
type Event =
  | { readonly kind: 'request'; readonly sender: number; readonly method: 'GET' | 'POST' }
  | {
      readonly kind:
        | 'open'
        | 'fail'
        | 'answer'
        | 'last answer'
        | 'surplus answer'
        | 'end'
        | 'reset'
        | 'closed'
        | 'abort';
      readonly which: number;
    }
  | { readonly kind: 'tick' | 'close' }
  | { readonly kind: 'time'; readonly ms: number };

export const eventArbitrary: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 60,
    arbitrary: fc.record({
      kind: fc.constant('request' as const),
      sender: fc.nat(2),
      method: fc.constantFrom('GET', 'GET', 'POST'),
    }),
  },
  {
    weight: 120,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        ...(['open', 'open', 'open', 'open', 'fail', 'answer', 'answer', 'answer', 'answer'] as const),
        ...([
          'last answer',
          'surplus answer',
          'end',
          'reset',
          'closed',
          'closed',
          'closed',
          'abort',
        ] as const),
      ),
      which: fc.nat(20),
    }),
  },
  { weight: 80, arbitrary: fc.constant({ kind: 'tick' as const }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('time' as const),
      ms: fc.constantFrom(10, 10, 300, 1_200, 3_000),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'close' as const }) },
);

export const limitsArbitrary = fc.record({
  connections: fc.integer({ min: 1, max: 5 }),
  queueLimit: fc.integer({ min: 0, max: 6 }),
  sharePercent: fc.constantFrom(50, 50, 100),
});
type Limits = typeof limitsArbitrary extends fc.Arbitrary<infer T> ? T : never;

/** The parts of a socket that the client uses. The model emits its `close` event. */
class FakeSocket extends EventEmitter {
  isOpen = false;
  isClosed = false;
  destroyed = false;
  /** Targets of the written requests. */
  readonly targets: string[] = [];
  answered = 0;
  readonly writableLength = 0;
  readonly #onread: OnReadOpts;

  constructor(onread: OnReadOpts) {
    super();
    this.#onread = onread;
  }

  get writable(): boolean {
    return !this.destroyed;
  }

  write(text: string): boolean {
    assert.equal(this.isOpen && !this.destroyed, true);
    this.targets.push(/^\S+ (\S+)/.exec(text)?.[1] ?? '');
    return true;
  }

  destroy(): this {
    this.destroyed = true;
    return this;
  }

  read(text: string): void {
    if (this.destroyed) return;
    const buffer = this.#onread.buffer as () => Buffer;
    this.#onread.callback(buffer().write(text, 'latin1'), Buffer.alloc(0));
  }

  get isAsked(): boolean {
    return this.targets.length > this.answered;
  }

  answer(isLast: boolean): void {
    const target = this.targets.at(-1) ?? '';
    this.answered = this.targets.length;
    const fields = isLast ? 'Connection: close\r\n' : '';
    this.read(`HTTP/1.1 200 OK\r\n${fields}Content-Length: ${target.length}\r\n\r\n${target}`);
  }

  isPaused(): boolean {
    return false;
  }

  pause(): void {}
  resume(): void {}
  cork(): void {}
  uncork(): void {}
}

interface Asked {
  readonly address: string;
  readonly target: string;
  exchange: UpstreamExchange | undefined;
  hasConnection: boolean;
  received: string;
  ends: number;
}

/** A client with fake sockets and timers. The rules are checked after each event. */
export class ClientModel {
  readonly #limits: Limits;
  readonly #client: UpstreamClient;
  #sockets: FakeSocket[] = [];
  readonly #asked: Asked[] = [];
  /** Requests that got the answer of another one. */
  readonly #foreign: string[] = [];
  #isClosing = false;
  #isClosed = false;

  constructor(create: typeof createUpstreamClient, limits: Limits) {
    this.#limits = limits;
    const upstream = { scheme: 'http', hostname: '127.0.0.1', port: 1 } as const;
    const open = (_: unknown, onread: OnReadOpts) => {
      const socket = new FakeSocket(onread);
      this.#sockets.push(socket);
      return socket as unknown as Socket;
    };
    const times = { connectTimeoutMs: 5_000, queueTimeoutMs: 2_000, connectionLifetimeMs: 20_000 };
    this.#client = create({ upstream, ...times, ...limits }, open);
  }

  async play(event: Event): Promise<void> {
    this.#happen(event);
    // Lets the promise of `close` resolve.
    for (let i = 0; i < 3; i += 1) await Promise.resolve();
    this.#check();
  }

  /** Closes the client, lets all exchanges end, and checks that each got one answer. */
  async finish(): Promise<void> {
    await this.play({ kind: 'close' });
    for (let i = 0; i < 100 && this.#sockets.length > 0; i += 1) {
      for (const kind of ['answer', 'tick', 'closed'] as const) await this.play({ kind, which: 0 });
      if (i > 50) await this.play({ kind: 'time', ms: 9_000 });
    }
    await this.play({ kind: 'time', ms: 9_000 });
    assert.equal(this.#isClosed, true, 'close() resolves');
    for (const { ends } of this.#asked) assert.equal(ends, 1, 'each waiter gets one answer');
  }

  #happen(event: Event): void {
    switch (event.kind) {
      case 'request':
        this.#request(`192.0.2.${event.sender}`, event.method);
        return;
      case 'tick':
        vi.advanceTimersByTime(0);
        return;
      case 'time':
        vi.advanceTimersByTime(event.ms);
        return;
      case 'close':
        if (!this.#isClosing) this.#close();
        return;
      case 'abort':
        pick(
          this.#asked.filter(({ ends }) => ends === 0),
          event.which,
        )?.exchange?.abort();
        return;
      default:
        this.#onSocket(event.kind, event.which);
    }
  }

  #onSocket(kind: Exclude<Event, { ms: number }>['kind'], which: number): void {
    const among = (is: (socket: FakeSocket) => boolean) => pick(this.#sockets.filter(is), which);
    if (kind === 'open') {
      const socket = among(({ isOpen, destroyed }) => !isOpen && !destroyed);
      if (socket !== undefined) socket.isOpen = true;
      socket?.emit('connect');
    } else if (kind === 'fail') {
      among(({ isOpen, destroyed }) => !isOpen && !destroyed)?.destroy();
    } else if (kind === 'closed') {
      const socket = among(({ destroyed }) => destroyed);
      if (socket !== undefined) socket.isClosed = true;
      this.#sockets = this.#sockets.filter(({ isClosed }) => !isClosed);
      socket?.emit('close');
    } else if (kind === 'answer' || kind === 'last answer') {
      among(({ isAsked, destroyed }) => isAsked && !destroyed)?.answer(kind === 'last answer');
    } else if (kind === 'surplus answer') {
      const socket = among(({ isAsked, destroyed }) => isAsked && !destroyed);
      socket?.answer(false);
      socket?.read('HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nforeign');
    } else {
      const socket = among(({ isOpen, destroyed }) => isOpen && !destroyed);
      if (kind === 'end') socket?.emit('end');
      socket?.destroy();
    }
  }

  #request(address: string, method: string): void {
    const target = `/${this.#asked.length}`;
    const body = method === 'GET' ? null : Buffer.from('a');
    const asked: Asked = {
      address,
      target,
      exchange: undefined,
      hasConnection: false,
      received: '',
      ends: 0,
    };
    this.#asked.push(asked);
    asked.exchange = this.#client.dispatch(
      { method, target, fields: ['Host', 's'], body, sender: { address, subject: undefined } },
      {
        onConnection: () => {
          asked.hasConnection = true;
        },
        onHead() {},
        onData: (chunk) => {
          asked.received += chunk.toString('latin1');
          return true;
        },
        onEnd: () => {
          asked.ends += 1;
          if (asked.received !== target) this.#foreign.push(target);
        },
        onFault: () => {
          asked.ends += 1;
        },
      },
    );
  }

  #close(): void {
    this.#isClosing = true;
    const busy = this.#sockets.filter(({ isAsked, destroyed }) => isAsked && !destroyed);
    void this.#client.close().then(() => {
      this.#isClosed = true;
    });
    for (const { destroyed } of busy)
      assert.equal(destroyed, false, 'busy connections are closed after their exchange');
  }

  #check(): void {
    const { connections, sharePercent } = this.#limits;
    assert.ok(this.#sockets.length <= connections, 'the connection bound');
    assert.deepEqual(this.#foreign, [], 'each waiter gets its own answer');
    for (const { ends } of this.#asked) assert.ok(ends <= 1, 'each waiter gets one answer');
    const pending = this.#asked.filter(({ ends }) => ends === 0);
    const active = pending.filter(({ hasConnection }) => hasConnection);
    assert.deepEqual(
      [this.#client.inFlight, this.#client.queued],
      [active.length, pending.length - active.length],
    );
    const share = sharePercent === 100 ? connections : Math.max(1, Math.floor(connections / 2));
    const waiting = Object.groupBy(pending, ({ address }) => address);
    let ready = 0;
    for (const ofAddress of Object.values(waiting)) {
      const busy = ofAddress?.filter(({ hasConnection }) => hasConnection).length ?? 0;
      assert.ok(busy <= share, 'the share of an address');
      ready += Math.min((ofAddress?.length ?? 0) - busy, share - busy);
    }
    const isComing = this.#sockets.some(({ isOpen, destroyed }) => !isOpen || destroyed);
    if (ready > 0 && !this.#isClosing) {
      assert.ok(isComing || active.length >= connections, 'no request waits without a reason');
    }
    if (this.#isClosing) this.#checkClosing();
  }

  #checkClosing(): void {
    const open = this.#sockets.filter(({ destroyed }) => !destroyed);
    const active = this.#asked.filter(({ ends, hasConnection }) => ends === 0 && hasConnection);
    assert.ok(open.length <= active.length, 'idle connections are closed at once');
    assert.equal(this.#isClosed, this.#sockets.length === 0, 'close() resolves with the last connection');
  }
}

function pick<T>(all: readonly T[], which: number): T | undefined {
  return all[which % Math.max(1, all.length)];
}
