import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { UpstreamActivity, UpstreamComponent } from '../../../src/upstream/upstream-component.ts';

const failure = { decision: 'refused', rejection: 'upstream-unreachable', fault: 'ECONNREFUSED' } as const;

describe('what exchanges have shown of the upstream', () => {
  it('is told apart from what was refused here', () => {
    const activity = new UpstreamActivity();
    activity.note({ decision: 'refused', rejection: 'access-token-missing' }, 1);
    activity.note({ decision: 'answered' }, 2);
    expect([activity.answers, activity.failures, activity.failingSinceMs]).toEqual([0, 0, 0]);
    activity.note({ decision: 'forwarded' }, 3);
    activity.note(failure, 4);
    activity.note({ decision: 'refused', rejection: 'upstream-timeout' }, 5);
    expect(activity).toMatchObject({
      ...{ answers: 1, lastAnswerMs: 3, failures: 2, lastFailureMs: 5, failingSinceMs: 4 },
      ...{ lastFailure: 'upstream-timeout', lastFailureText: 'upstream-timeout' },
    });
    activity.note({ decision: 'forwarded' }, 6);
    expect([activity.failingSinceMs, activity.lastAnswerMs]).toEqual([0, 6]);
  });
});

describe('its tile', () => {
  const open = () => {
    vi.useFakeTimers({ now: 1_000_000, toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const upstream = new UpstreamComponent('http://shop', {
      ...{ inFlight: 2, queued: 3, close: async () => {} },
    });
    const said = () => {
      const { status, text, reasons } = upstream.health();
      return [status, text, ...reasons];
    };
    return { upstream, said };
  };

  it('says what is under way and when it was heard of', () => {
    const { upstream, said } = open();
    expect(said()).toEqual(['ok', 'not asked yet']);
    const details = () =>
      Object.fromEntries((upstream.health().details ?? []).map(({ label, value }) => [label, value]));
    expect(details()).toEqual({
      ...{ address: 'http://shop', 'in flight': 2, waiting: 3, answers: 0, failures: 0 },
      ...{ 'last answer': null, 'last failure': null, 'failing since': null },
    });
    upstream.activity.note({ decision: 'forwarded' }, 5);
    expect(said()).toEqual(['ok', 'it answers']);
    upstream.activity.note(failure, 7);
    expect(details()).toMatchObject({ 'last answer': 5, 'last failure': 7, 'failing since': 7 });
    expect(upstream.health().seenMs).toBe(7);
    const values = upstream.metrics.map(({ name, value }) => [name, value()]);
    expect(values).toEqual([
      ['shopward_upstream_queue', 3],
      ['shopward_upstream_active_requests', 2],
    ]);
  });

  it('remembers a failure for a minute', () => {
    const { upstream, said } = open();
    upstream.activity.note(failure, 1_000_000);
    const failed = 'the last request failed: upstream-unreachable (ECONNREFUSED)';
    expect(said()).toEqual(['down', failed, `upstream: ${failed}`]);
    upstream.activity.note({ decision: 'forwarded' }, 1_000_001);
    vi.setSystemTime(1_059_999);
    expect(said()).toEqual([
      'degraded',
      'it answers, but failed within the last minute: upstream-unreachable (ECONNREFUSED)',
    ]);
    vi.setSystemTime(1_060_000);
    expect(said()).toEqual(['ok', 'it answers']);
  });
});
