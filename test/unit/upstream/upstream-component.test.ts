import { expect, it, onTestFinished, vi } from 'vitest';
import { UpstreamComponent } from '../../../src/upstream/upstream-component.ts';

const lastFailure = 'upstream-unreachable (ECONNREFUSED)';

it('the tile of the upstream shows a failure for a minute', () => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const activity = {
    answers: 0,
    lastAnswerMs: 0,
    failures: 0,
    lastFailureMs: 0,
    lastFailure: '',
    failingSinceMs: 0,
  };
  const upstream = new UpstreamComponent(
    'http://shop',
    { inFlight: 2, queued: 3, close: async () => {} },
    activity,
  );
  const said = () => {
    const { status, text, reasons } = upstream.health();
    return [status, text, ...reasons];
  };
  const atMs = 1_000_000;
  Object.assign(activity, { failures: 1, lastFailureMs: atMs, lastFailure, failingSinceMs: atMs });
  const failed = 'the last request failed: upstream-unreachable (ECONNREFUSED)';
  expect(said()).toEqual(['down', failed, `upstream: ${failed}`]);
  Object.assign(activity, { answers: 1, lastAnswerMs: atMs + 1, failingSinceMs: 0 });
  vi.setSystemTime(1_059_999);
  expect(said()).toEqual([
    'degraded',
    'it answers, but failed within the last minute: upstream-unreachable (ECONNREFUSED)',
  ]);
  vi.setSystemTime(1_060_000);
  expect(said()).toEqual(['ok', 'it answers']);
});
