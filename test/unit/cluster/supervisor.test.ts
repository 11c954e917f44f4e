import cluster from 'node:cluster';
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Supervisor } from '../../../src/cluster/supervisor.ts';
import type { Log } from '../../../src/telemetry/log.ts';

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
const settled = () => vi.advanceTimersByTimeAsync(0);

function create(count: number) {
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
    stallMs: undefined,
  });

  return { supervisor: created, lines, ended, exchanges };
}

async function serve(count: number) {
  const stage = create(count);
  const started = stage.supervisor.start();
  for (const one of workers) one.answer('start', { value: 'http://127.0.0.1:8080' });
  expect(await started).toBe('http://127.0.0.1:8080');
  return stage;
}

describe('a worker that ends', () => {
  it('is replaced after 100 ms, or after a second if it did not serve', async () => {
    const { supervisor, lines, ended } = await serve(2);
    worker(1).end(1);
    expect(lines).toEqual([
      { event: 'worker-ended', worker: 1, pid: 101, why: 1, serving: 1, restartInMs: 100 },
    ]);
    expect([supervisor.serving, supervisor.restarts, ended]).toEqual([1, 1, [101]]);
    await vi.advanceTimersByTimeAsync(100);
    expect(worker(3).callsOf('start')).toEqual([{ number: 1 }]);
    worker(3).end(null, 'SIGSEGV');
    expect(lines.at(-1)).toMatchObject({ pid: 103, why: 'SIGSEGV', restartInMs: 1_000 });
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
    await vi.advanceTimersByTimeAsync(1_000);
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
