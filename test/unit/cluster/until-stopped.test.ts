import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { untilStopped } from '../../../src/cluster/until-stopped.ts';
import type { Log } from '../../../src/telemetry/log.ts';

type Listener = (...args: readonly unknown[]) => void;

/** What the process would be told, without its being told: others run in it as well. */
const listeners = new Map<string, Listener>();
const exit = vi.fn();

beforeEach(() => {
  listeners.clear();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.spyOn(process, 'on').mockImplementation(((event: string, listener: Listener) => {
    listeners.set(event, listener);
    return process;
  }) as never);
  vi.spyOn(process, 'exit').mockImplementation(exit as never);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  exit.mockReset();
});

const tell = (event: string, ...args: readonly unknown[]) => listeners.get(event)?.(...args);

function run({ reload = async () => {} }: { reload?: () => Promise<void> } = {}) {
  const closed = Promise.withResolvers<void>();
  const close = vi.fn((_graceMs?: number) => closed.promise);
  const lines: string[] = [];
  const logAs = (level: string) => (fields: { event: string; why?: string }) =>
    void lines.push([level, fields.event, fields.why].filter(Boolean).join(' '));
  const log = { info: logAs('info'), error: logAs('error'), fatal: logAs('fatal') } as unknown as Log;
  const running = { reload: vi.fn(reload), close };
  return { running, close, closed, lines, code: untilStopped(running, log) };
}

describe('what runs until it is stopped', () => {
  it.each([
    ['SIGTERM', undefined],
    ['SIGINT', 0],
  ])('%s drains it with a grace of %s, and the process ends well', async (signal, graceMs) => {
    const { close, closed, lines, code } = run();
    tell(signal);
    expect(close.mock.calls).toEqual([[graceMs]]);
    expect(lines).toEqual([`info draining ${signal}`]);
    closed.resolve();
    expect(await code).toBe(0);
    vi.advanceTimersByTime(1_000_000);
    expect(exit).not.toHaveBeenCalled();
  });

  it.each(['SIGTERM', 'SIGINT'])('%s once more does not wait for the drain', (signal) => {
    const { close } = run();
    tell('SIGTERM');
    expect(exit).not.toHaveBeenCalled();
    tell(signal);
    expect(exit.mock.calls[0]).toEqual([1]);
    expect(close).toHaveBeenCalledTimes(1);
  });

  it('a drain that fails is told by the exit code', async () => {
    const { closed, code } = run();
    tell('SIGTERM');
    closed.reject(new Error('the listener is broken'));
    expect(await code).toBe(1);
  });

  it('SIGHUP looks at files anew and stops nothing, also where that fails', async () => {
    const { running, close, lines } = run({ reload: () => Promise.reject(new Error('a bug')) });
    tell('SIGHUP');
    await vi.waitFor(() => expect(lines).toEqual(['info reload', 'error fault']));
    expect(running.reload).toHaveBeenCalledTimes(1);
    expect(close).not.toHaveBeenCalled();
  });

  it('a fault that nobody caught drains it at once, ends with 1, and in any case after a while', async () => {
    const { close, closed, lines, code } = run();
    tell('uncaughtException', new Error('a bug'), 'unhandledRejection');
    expect(lines).toEqual(['fatal crash', 'info draining unhandledRejection']);
    expect(close.mock.calls).toEqual([[0]]);
    vi.advanceTimersByTime(44_999);
    tell('uncaughtException', new Error('another one'), 'uncaughtException');
    expect([close.mock.calls.length, exit.mock.calls]).toEqual([1, []]);
    vi.advanceTimersByTime(1);
    expect(exit.mock.calls).toEqual([[1]]);
    closed.resolve();
    expect(await code).toBe(1);
  });
});
