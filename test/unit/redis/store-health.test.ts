import { describe, expect, test } from 'vitest';
import type { Cause } from '../../../src/redis/faults.ts';
import { type HealthLine, StoreHealth } from '../../../src/redis/store-health.ts';

const causes: Readonly<Record<string, Cause>> = {
  refused: { word: 'connection', text: 'ECONNREFUSED 10.0.0.5:6379' },
  noauth: { word: 'noauth', text: 'NOAUTH' },
  oom: { word: 'oom', text: 'OOM' },
  noperm: { word: 'noperm', text: 'NOPERM del: grant +del' },
  unnamed: { word: 'connection', text: undefined },
};

/**
 * Plays calls, such as `0 + | 1.5 oom | 3-9 + .`: at a second, or at each second of a range, `+` succeeds, a cause is a
 * failure, `.` is a tick.
 */
function play(calls: string) {
  const lines: string[] = [];
  let at = 0;
  const say = ({ status, cause, failed, calls: all }: HealthLine) =>
    lines.push(
      `${at} ${status}${cause === undefined ? '' : ` ${cause.text ?? cause.word}`} ${failed}/${all}`,
    );
  const health = new StoreHealth(0, say);
  for (const group of calls.split(' | ')) {
    const [when = '', ...does] = group.split(' ');
    const [from = 0, to = from] = when.split('-').map(Number);
    for (at = from; at <= to; at += 1) {
      const now = at * 1000;
      for (const one of does) {
        if (one === '+') health.succeed(now);
        else if (one === '.') health.tick(now);
        else health.fail(causes[one] ?? { word: 'error', text: one }, now);
      }
    }
  }
  return { lines, state: health.state };
}

const refused = 'ECONNREFUSED 10.0.0.5:6379';
const often = (what: string, times: number) => Array(times).fill(what).join(' ');

describe('StoreHealth', () => {
  test.each<[string, string, string[]]>([
    ['only successes', '0 + | 1 +', ['0 ready 0/1']],
    [
      'a missing right: away at the first failure, although other calls succeed',
      '0 + | 5 noperm + | 6-16 +',
      ['0 ready 0/1', '5 away NOPERM del: grant +del 1/2', '15 ready 0/10'],
    ],
    ['down at the start: away at once', '0 refused | 1 refused', [`0 away ${refused} 1/1`]],
    ['one call that fails: no line', '0 + | 1 oom + | 11 .', ['0 ready 0/1']],
    [
      'all calls fail for a second',
      '0 + | 1 refused | 1.5 refused | 2 refused | 2.5 refused',
      ['0 ready 0/1', `2 away ${refused} 3/4`],
    ],
    [
      'one failure and no more calls: away at a tick',
      '0 + | 1 refused | 2 .',
      ['0 ready 0/1', `2 away ${refused} 1/2`],
    ],
    [
      'a fifth of the calls fails for a minute: away once',
      '0 + | 0-59 + + + + oom',
      ['0 ready 0/1', '4 away OOM 5/26'],
    ],
    ['one of a hundred calls fails: ready', `0 + | 0-24 oom ${often('+', 99)} .`, ['0 ready 0/1']],
    [
      'back when ten seconds have passed without a fault',
      '0 + | 1-2 noauth | 3-14 + .',
      ['0 ready 0/1', '2 away NOAUTH 2/3', '12 ready 0/10'],
    ],
    ['not back without a success', '0 + | 1-2 noauth | 3-29 .', ['0 ready 0/1', '2 away NOAUTH 2/3']],
    ['a new cause: one line', '0 refused | 1-2 noauth | 3 .', [`0 away ${refused} 1/1`, '1 away NOAUTH 2/2']],
    [
      'two alternating causes: one line each',
      '0-19 refused noauth',
      [`0 away ${refused} 1/1`, '0 away NOAUTH 2/2'],
    ],
    [
      '"not connected" does not replace a cause',
      '0 refused | 1-2 unnamed | 11 unnamed',
      [`0 away ${refused} 1/1`],
    ],
    [
      '"not connected" does not replace a cause of a second ago',
      '0 + | 1 oom + | 2 unnamed | 3 . refused',
      ['0 ready 0/1', '3 away OOM 2/4', `3 away ${refused} 3/5`],
    ],
    [
      'back and away again: another line with the cause',
      '0 noauth | 1-11 + . | 12 noauth | 13 .',
      ['0 away NOAUTH 1/1', '10 ready 0/10', '13 away NOAUTH 1/9'],
    ],
  ])('%s', (_, calls, lines) => {
    expect(play(calls).lines).toEqual(lines);
  });

  test('a thousand causes: fifty lines', () => {
    const calls = Array.from({ length: 1000 }, (_, i) => `${i / 1000} cause-${i}`);
    expect(play(calls.join(' | ')).lines).toHaveLength(50);
  });

  test('the state keeps its cause, or the next one that has a text', () => {
    expect(play('0 refused | 1 unnamed').state).toMatchObject({ status: 'away', cause: causes.refused });
    expect(play('0 refused | 1 noauth | 2 unnamed').state.cause).toBe(causes.noauth);
  });
});
