import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { createUpstreamClient } from '../../src/upstream/client.ts';
import type { ClientOptions, UpstreamClient, UpstreamFault } from '../../src/upstream/port.ts';
import { closingAtEnd } from '../harness/closing-at-end.ts';
import { answer } from '../harness/recording-upstream.ts';

/**
 * Milliseconds in which this process was awake. The shop and its clients live by them: while the process stands still, the shop's
 * connections age no further, as they would if it had a machine of its own.
 */
class WakingClock {
  readonly #due = new Map<number, (() => void)[]>();
  #nowMs = 0;
  #timer: NodeJS.Timeout | undefined;

  start(): void {
    this.#timer = setInterval(() => {
      this.#nowMs += 1;
      for (const act of this.#due.get(this.#nowMs) ?? []) act();
      this.#due.delete(this.#nowMs);
    }, 1);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  after(ms: number, act: () => void): void {
    const atMs = this.#nowMs + ms;
    const acts = this.#due.get(atMs);
    if (acts === undefined) this.#due.set(atMs, [act]);
    else acts.push(act);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }
}

const clock = new WakingClock();
beforeAll(() => clock.start());
afterAll(() => clock.stop());

/** A shop that ends a connection that was idle for `idleMs`, and does not say so. */
async function start(context: TestContext, idleMs: number, options: Partial<ClientOptions> = {}) {
  const open = closingAtEnd(context);
  const sockets = new Set<Socket>();
  const agesMs: number[] = [];
  let connections = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    connections += 1;
    sockets.add(socket);
    let requests = 0;
    const openedMs = performance.now();
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      sockets.delete(socket);
      agesMs.push(performance.now() - openedMs);
    });
    socket.on('data', () => {
      requests += 1;
      const mine = requests;
      socket.write(answer());
      clock.after(idleMs, () => {
        if (mine === requests) socket.destroy();
      });
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  open(server);
  open({
    close() {
      for (const socket of sockets) socket.destroy();
    },
  });
  const client = open(
    createUpstreamClient({
      upstream: { scheme: 'http', hostname: '127.0.0.1', port: (server.address() as AddressInfo).port },
      connectTimeoutMs: 30_000,
      queueLimit: 1_000,
      queueTimeoutMs: 60_000,
      connections: 200,
      ...options,
    }),
  );
  return { client, sockets, agesMs, connections: () => connections };
}

describe.concurrent('connections that age', () => {
  /** A hundred clients that post in step with the shop's idle time-out, and beside it: the worst there is. */
  it.for([
    ['the time-out', 400],
    ['half of it', 200],
    ['a quarter of it', 100],
  ] as const)(
    'a POST never meets the end of an idle connection: rhythm of %s',
    async ([, rhythmMs], context) => {
      const { client, connections } = await start(context, 400);
      const failed: (number | string)[] = [];
      const visit = async (i: number) => {
        for (let k = 0; k < 8; k += 1) {
          await clock.sleep(rhythmMs + ((i + k) % 6));
          const seen = await ask(client, 'POST');
          if (seen !== 200) failed.push(seen);
        }
      };
      // The shop has shown what it does, as it has to any process that is up for longer than its time-out.
      await Promise.all(Array.from({ length: 20 }, () => ask(client, 'GET')));
      await clock.sleep(800);
      await Promise.all(Array.from({ length: 100 }, (_none, i) => visit(i)));
      expect(failed).toEqual([]);
      expect(connections()).toBeGreaterThan(20);
    },
  );

  it('a POST takes no connection that was idle for long, and a GET does', async (context) => {
    const { client, connections } = await start(context, 60_000, { idleTimeoutMs: 600_000 });
    expect(await ask(client, 'GET')).toBe(200);
    await sleep(700);
    expect([await ask(client, 'GET'), connections()]).toEqual([200, 1]);
    await sleep(700);
    expect([await ask(client, 'POST'), connections()]).toEqual([200, 2]);
  });
});

// One after another: they ask as fast as they can.
describe('connections in use', () => {
  it('a POST takes a connection that was in use a moment ago', async (context) => {
    const { client, connections } = await start(context, 60_000);
    for (let i = 0; i < 20; i += 1) expect(await ask(client, 'POST')).toBe(200);
    expect(connections()).toBe(1);
  });

  it('every connection, busy or idle, is left within its lifetime', async (context) => {
    const lifetimeMs = 400;
    const options = { connectionLifetimeMs: lifetimeMs, idleTimeoutMs: 600_000 };
    const { client, sockets, agesMs } = await start(context, 600_000, options);
    const clients = 8;
    const visit = async () => {
      while (agesMs.length < 3 * clients) expect(await ask(client, 'GET')).toBe(200);
    };
    await Promise.all(Array.from({ length: clients }, visit));
    await expect.poll(() => sockets.size).toBe(0);
    // Each that the machine did not hold up: the one that it held up least.
    expect(Math.min(...agesMs)).toBeLessThan(1.5 * lifetimeMs);
  });
});

function ask(client: UpstreamClient, method: string): Promise<number | UpstreamFault['kind']> {
  return new Promise((resolve) => {
    let seen = 0;
    client.dispatch(
      { method, target: '/', fields: ['Host', 's'], body: method === 'GET' ? null : Buffer.from('a=1') },
      {
        onHead: (status) => {
          seen = status;
        },
        onData: () => true,
        onEnd: () => resolve(seen),
        onFault: ({ kind }) => resolve(kind),
      },
    );
  });
}
