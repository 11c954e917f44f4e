import cluster from 'node:cluster';
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { stackWithinMs } from '../../src/cluster/event-loop-watch.ts';
import { Supervisor } from '../../src/cluster/supervisor.ts';
import type { Log } from '../../src/telemetry/log.ts';

interface Message {
  readonly call: string;
  readonly argument: unknown;
  readonly id?: number;
}

/** A worker as node's cluster has it, without a process: the test says what it answers, and when it ends. */
class FakeWorker extends EventEmitter {
  readonly sent: Message[] = [];
  readonly process: EventEmitter & { pid: number; kill: (signal: string) => void; send: FakeWorker['send'] };

  constructor(pid: number) {
    super();
    this.process = Object.assign(new EventEmitter(), { pid, kill: vi.fn(), send: this.send.bind(this) });
  }

  send({ shopward }: { shopward: Message }, done: (fault: null) => void): boolean {
    this.sent.push(shopward);
    done(null);
    return true;
  }

  /** Answers all questions of this name that have no answer yet. */
  answer(call: string, content: object): void {
    for (const [i, { id }] of this.sent.entries()) {
      if (this.sent[i]?.call !== call || id === undefined) continue;
      this.process.emit('message', { shopward: { id, ...content } });
    }
  }

  tell(call: string, argument?: unknown): void {
    this.process.emit('message', { shopward: { call, argument } });
  }

  end(code: number | null, signal: string | null = null): void {
    for (const one of [this, this.process]) one.emit('exit', code, signal);
  }

  callsOf(call: string): unknown[] {
    return this.sent.filter((one) => one.call === call).map(({ argument }) => argument);
  }
}

const workers: FakeWorker[] = [];

beforeEach(() => {
  workers.length = 0;
  vi.useFakeTimers();
  vi.spyOn(cluster, 'setupPrimary').mockImplementation(() => {});
  vi.spyOn(cluster, 'fork').mockImplementation((() => {
    const worker = new FakeWorker(101 + workers.length);
    workers.push(worker);
    return worker;
  }) as never);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const worker = (number: number) => workers[number - 1] as FakeWorker;
/** Who was started last in this place. */
const latestOf = (place: number) =>
  workers.findLast((one) => (one.callsOf('start')[0] as { number: number }).number === place) as FakeWorker;
const settled = () => vi.advanceTimersByTimeAsync(0);

function create(count: number, stallMs?: number) {
  const lines: Record<string, unknown>[] = [];
  const note = (fields: Record<string, unknown>) => void lines.push(fields);
  const ended: number[] = [];
  const exchanges: unknown[] = [];
  const created = new Supervisor({
    count,
    startOf: (number) => ({ number }) as never,
    log: { info: note, error: note } as unknown as Log,
    onExchanges: (records) => void exchanges.push(records),
    onEnd: (pid) => void ended.push(pid),
    stallMs,
  });

  return { supervisor: created, lines, ended, exchanges };
}

async function serve(count: number, stallMs?: number) {
  const stage = create(count, stallMs);
  const started = stage.supervisor.start();
  for (const one of workers) one.answer('start', { value: 'http://127.0.0.1:8080' });
  expect(await started).toBe('http://127.0.0.1:8080');
  return stage;
}

describe('workers', () => {
  it('are all started, each with its number, and serve from when they say so', async () => {
    const { supervisor, exchanges } = create(2);
    const started = supervisor.start();
    expect(workers.map((one) => one.callsOf('start'))).toEqual([[{ number: 1 }], [{ number: 2 }]]);
    worker(2).answer('start', { value: 'url' });
    await settled();
    expect(supervisor.serving).toBe(1);
    worker(1).answer('start', { value: 'url' });
    expect(await started).toBe('url');
    expect([supervisor.serving, supervisor.restarts]).toEqual([2, 0]);
    worker(2).tell('exchanges', ['record']);
    expect(exchanges).toEqual([['record']]);
    expect(vi.mocked(cluster.setupPrimary).mock.calls[0]?.[0]).toMatchObject({
      args: [],
      serialization: 'advanced',
    });
  });

  it.each<[number | null, string | null, string]>([
    [78, null, 'worker 1 ended with 78 before it served'],
    [null, 'SIGKILL', 'worker 1 ended with SIGKILL before it served'],
  ])('that end (%s, %s) before they serve fail the start', async (code, signal, message) => {
    const started = create(1).supervisor.start();
    worker(1).end(code, signal);
    await expect(started).rejects.toThrow(message);
  });

  it('that cannot start fail it with their own fault', async () => {
    const started = create(1).supervisor.start();
    worker(1).answer('start', { fault: { message: 'the port is taken', code: 'EADDRINUSE' } });
    await expect(started).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});

describe('a worker that ends', () => {
  it('is replaced while others serve, each time a little later', async () => {
    const { supervisor, lines, ended } = await serve(2);
    worker(1).end(1);
    expect(lines).toEqual([
      { event: 'worker-ended', worker: 1, pid: 101, why: 1, serving: 1, restartInMs: 100 },
    ]);
    expect([supervisor.serving, supervisor.restarts, ended]).toEqual([1, 1, [101]]);
    await vi.advanceTimersByTimeAsync(99);
    expect(workers).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(worker(3).callsOf('start')).toEqual([{ number: 1 }]);
    worker(3).answer('start', { value: 'url' });
    await settled();
    expect([supervisor.serving, lines.at(-1)]).toEqual([2, { event: 'worker-replaced', worker: 1 }]);
    worker(3).end(null, 'SIGSEGV');
    expect(lines.at(-1)).toMatchObject({ pid: 103, why: 'SIGSEGV', restartInMs: 200 });
  });

  it('after a minute is replaced as the first time', async () => {
    const { lines } = await serve(2);
    worker(1).end(1);
    await vi.advanceTimersByTimeAsync(100);
    worker(3).answer('start', { value: 'url' });
    await vi.advanceTimersByTimeAsync(60_000);
    worker(3).end(1);
    expect(lines.at(-1)).toMatchObject({ restartInMs: 100 });
  });

  it('as the last of all is replaced within a second, and all others at once', async () => {
    const { lines } = await serve(2);
    for (let i = 1; i <= 6; i++) {
      latestOf(1).end(1);
      await vi.advanceTimersByTimeAsync(Number(lines.at(-1)?.restartInMs));
      workers.at(-1)?.answer('start', { value: 'url' });
      await settled();
    }
    expect(lines.filter(({ event }) => event === 'worker-ended').at(-1)).toMatchObject({
      restartInMs: 3_200,
    });
    workers.at(-1)?.end(1);
    expect(lines.at(-1)).toMatchObject({ serving: 1, restartInMs: 6_400 });
    const before = workers.length;
    worker(2).end(1);
    expect(lines.at(-1)).toMatchObject({ worker: 2, serving: 0, restartInMs: 100 });
    // The first place waits no longer.
    expect(workers.slice(before).map((one) => one.callsOf('start'))).toEqual([[{ number: 1 }]]);
    workers.at(-1)?.end(1);
    expect(lines.at(-1)).toMatchObject({ worker: 1, serving: 0, restartInMs: 1_000 });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(workers).toHaveLength(before + 3);
  });

  it('and cannot start again is killed, which leads to the next attempt', async () => {
    const { lines } = await serve(2);
    worker(1).end(1);
    await vi.advanceTimersByTimeAsync(100);
    worker(3).answer('start', { fault: { message: 'a file is gone' } });
    await settled();
    expect(lines.at(-1)).toMatchObject({ event: 'worker-not-started', worker: 1 });
    expect(worker(3).process.kill).toHaveBeenCalledWith('SIGKILL');
    worker(3).end(null, 'SIGKILL');
    await vi.advanceTimersByTimeAsync(200);
    expect(worker(4).callsOf('start')).toEqual([{ number: 1 }]);
  });

  it('or says that it fails, is replaced once', async () => {
    const { supervisor, lines, ended } = await serve(2);
    worker(1).tell('failing');
    await settled();
    expect(supervisor.serving).toBe(1);
    expect(lines).toMatchObject([{ event: 'worker-ended', worker: 1, why: 'fault', restartInMs: 100 }]);
    worker(1).end(1);
    await vi.advanceTimersByTimeAsync(60_000);
    expect([workers.length, supervisor.restarts, ended]).toEqual([3, 1, [101]]);
  });
});

describe('a question', () => {
  it('to all is answered by those who serve, in time', async () => {
    const { supervisor } = await serve(3);
    const asked = supervisor.askAll('health');
    worker(1).answer('health', { value: ['well'] });
    worker(3).answer('health', { fault: { message: 'a bug' } });
    await vi.advanceTimersByTimeAsync(400);
    expect(await asked).toEqual([{ pid: 101, answer: ['well'] }]);
    worker(2).end(1);
    void supervisor.askAll('system');
    expect(workers.map((one) => one.callsOf('system').length)).toEqual([1, 0, 1]);
  });

  it('to one goes on to the next who serves after 2 s', async () => {
    const name = 'purge';
    const { supervisor } = await serve(3);
    const asked = supervisor.askOne(name, 'argument' as never);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(worker(2).callsOf(name)).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(worker(2).callsOf(name)).toEqual(['argument']);
    worker(2).answer(name, { value: 'answer' });
    expect(await asked).toBe('answer');
    expect(worker(3).callsOf(name)).toEqual([]);
  });

  it('to one that nobody answers has no answer', async () => {
    const { supervisor } = await serve(2);
    const asked = supervisor.askOne('purge');
    await vi.advanceTimersByTimeAsync(4_000);
    expect(await asked).toBeUndefined();
  });
});

it('what all are told reaches those who only start as well', async () => {
  const { supervisor } = await serve(2);
  worker(1).end(1);
  await vi.advanceTimersByTimeAsync(100);
  supervisor.emitAll('list', 'content' as never);
  expect(workers.map((one) => one.callsOf('list').length)).toEqual([0, 1, 1]);
});

describe('the end', () => {
  it('drains all, kills who is late, and nobody is replaced', async () => {
    const { supervisor, lines } = await serve(2, 100_000);
    let isOver = false;
    const stopped = supervisor.stop(500, 10_000).then(() => {
      isOver = true;
    });
    expect(workers.map((one) => one.callsOf('stop'))).toEqual([[500], [500]]);
    worker(1).end(0);
    await vi.advanceTimersByTimeAsync(9_999);
    expect([isOver, vi.mocked(worker(2).process.kill).mock.calls]).toEqual([false, []]);
    await vi.advanceTimersByTimeAsync(1);
    expect(vi.mocked(worker(2).process.kill).mock.calls).toEqual([['SIGKILL']]);
    expect(worker(1).process.kill).not.toHaveBeenCalled();
    worker(2).end(null, 'SIGKILL');
    await stopped;
    await vi.advanceTimersByTimeAsync(60_000);
    expect([workers.length, lines.filter(({ event }) => event === 'worker-ended')]).toEqual([2, []]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('starts nobody whose turn had been to come', async () => {
    const { supervisor } = await serve(2);
    worker(1).end(1);
    const stopped = supervisor.stop(0, 10_000);
    worker(2).end(0);
    await stopped;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(workers).toHaveLength(2);
  });
});

describe('an event loop that stands still', () => {
  const stallMs = 3_000;
  /** Looks without an answer, a second each, after which it is too late. */
  const looks = (stallMs + stackWithinMs + 2_000) / 1_000;

  it('is killed when it has missed enough looks, and serves nobody from then on', async () => {
    const { supervisor, lines } = await serve(2, stallMs);
    for (let i = 0; i < looks; i++) {
      await vi.advanceTimersByTimeAsync(1_000);
      worker(2).answer('ping', { value: true });
    }
    expect(worker(1).process.kill).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(worker(1).process.kill).toHaveBeenCalledWith('SIGKILL');
    expect(lines.at(-1)).toEqual({ event: 'worker-stuck', pid: 101 });
    expect(supervisor.serving).toBe(1);
    expect(worker(2).process.kill).not.toHaveBeenCalled();
  });

  it('that answers once in a while is not killed', async () => {
    await serve(1, stallMs);
    for (let i = 1; i < 5 * looks; i++) {
      await vi.advanceTimersByTimeAsync(1_000);
      if (i % (looks - 1) === 0) worker(1).answer('ping', { value: true });
    }
    expect(worker(1).process.kill).not.toHaveBeenCalled();
  });

  it('is not looked for in a worker that only starts, nor where nobody wants it', async () => {
    const { supervisor } = create(1, stallMs);
    const started = supervisor.start();
    started.catch(() => {});
    await vi.advanceTimersByTimeAsync(20_000);
    expect(worker(1).callsOf('ping')).toEqual([]);
    await serve(1);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(worker(2).callsOf('ping')).toEqual([]);
  });
});
