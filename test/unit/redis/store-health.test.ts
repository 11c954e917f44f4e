import { describe, expect, test } from 'vitest';
import type { Cause } from '../../../src/redis/faults.ts';
import { type HealthLine, StoreHealth } from '../../../src/redis/store-health.ts';

const refused: Cause = { word: 'connection', text: 'ECONNREFUSED 10.0.0.5:6379' };
const noAuth: Cause = { word: 'noauth', text: 'NOAUTH' };
const full: Cause = { word: 'oom', text: 'OOM' };
const noRight: Cause = { word: 'noperm', text: 'NOPERM del: grant +del' };
const unnamed: Cause = { word: 'connection', text: undefined };

/** A call at a second: `+` succeeds, a cause is a failure, `.` is a tick. */
type Call = readonly [second: number, does: '+' | '.' | Cause];

function play(calls: readonly Call[]) {
  const lines: string[] = [];
  let at = 0;
  const say = ({ status, cause, failed, calls: all }: HealthLine) =>
    lines.push(
      `${at} ${status}${cause === undefined ? '' : ` ${cause.text ?? cause.word}`} ${failed}/${all}`,
    );
  const health = new StoreHealth(0, say);
  for (const [second, does] of calls) {
    at = second;
    const now = second * 1000;
    if (does === '+') health.succeed(now);
    else if (does === '.') health.tick(now);
    else health.fail(does, now);
  }
  return { lines, state: health.state };
}

const seconds = (from: number, to: number, ...does: Call[1][]): Call[] =>
  Array.from({ length: to - from }, (_, i) => from + i).flatMap((second) =>
    does.map((each) => [second, each] as const),
  );

describe('StoreHealth', () => {
  test.each<[string, Call[], string[]]>([
    [
      'only successes',
      [
        [0, '+'],
        [1, '+'],
      ],
      ['0 ready 0/1'],
    ],
    [
      'a missing right: away at the first failure, although other calls succeed',
      [[0, '+'], [5, noRight], [5, '+'], ...seconds(6, 17, '+')],
      ['0 ready 0/1', '5 away NOPERM del: grant +del 1/2', '15 ready 0/10'],
    ],
    [
      'down at the start: away at once',
      [
        [0, refused],
        [1, refused],
      ],
      ['0 away ECONNREFUSED 10.0.0.5:6379 1/1'],
    ],
    [
      'one call that fails: no line',
      [
        [0, '+'],
        [1, full],
        [1, '+'],
        [11, '.'],
      ],
      ['0 ready 0/1'],
    ],
    [
      'all calls fail for a second',
      [
        [0, '+'],
        [1, refused],
        [1.5, refused],
        [2, refused],
        [2.5, refused],
      ],
      ['0 ready 0/1', '2 away ECONNREFUSED 10.0.0.5:6379 3/4'],
    ],
    [
      'one failure and no more calls: away at a tick',
      [
        [0, '+'],
        [1, refused],
        [2, '.'],
      ],
      ['0 ready 0/1', '2 away ECONNREFUSED 10.0.0.5:6379 1/2'],
    ],
    [
      'a fifth of the calls fails for a minute: away once',
      [[0, '+'], ...seconds(0, 60, '+', '+', '+', '+', full)],
      ['0 ready 0/1', '4 away OOM 5/26'],
    ],
    [
      'one of a hundred calls fails: ready',
      [[0, '+'], ...seconds(0, 25, full, ...Array.from({ length: 99 }, () => '+' as const), '.')],
      ['0 ready 0/1'],
    ],
    [
      'back when ten seconds have passed without a fault',
      [[0, '+'], [1, noAuth], [2, noAuth], ...seconds(3, 15, '+', '.')],
      ['0 ready 0/1', '2 away NOAUTH 2/3', '12 ready 0/10'],
    ],
    [
      'not back without a success',
      [[0, '+'], [1, noAuth], [2, noAuth], ...seconds(3, 30, '.')],
      ['0 ready 0/1', '2 away NOAUTH 2/3'],
    ],
    [
      'a new cause: one line',
      [
        [0, refused],
        [1, noAuth],
        [2, noAuth],
        [3, '.'],
      ],
      ['0 away ECONNREFUSED 10.0.0.5:6379 1/1', '1 away NOAUTH 2/2'],
    ],
    [
      'two alternating causes: one line each',
      [...seconds(0, 20, refused, noAuth)],
      ['0 away ECONNREFUSED 10.0.0.5:6379 1/1', '0 away NOAUTH 2/2'],
    ],
    [
      '"not connected" does not replace a cause',
      [
        [0, refused],
        [1, unnamed],
        [2, unnamed],
        [11, unnamed],
      ],
      ['0 away ECONNREFUSED 10.0.0.5:6379 1/1'],
    ],
    [
      '"not connected" does not replace a cause of a second ago',
      [
        [0, '+'],
        [1, full],
        [1, '+'],
        [2, unnamed],
        [3, '.'],
        [3, refused],
      ],
      ['0 ready 0/1', '3 away OOM 2/4', '3 away ECONNREFUSED 10.0.0.5:6379 3/5'],
    ],
    [
      'back and away again: another line with the cause',
      [[0, noAuth], ...seconds(1, 12, '+', '.'), [12, noAuth], [13, '.']],
      ['0 away NOAUTH 1/1', '10 ready 0/10', '13 away NOAUTH 1/9'],
    ],
  ])('%s', (_, calls, lines) => {
    expect(play(calls).lines).toEqual(lines);
  });

  test('a thousand causes: fifty lines', () => {
    const calls = Array.from({ length: 1000 }, (_, i): Call => [i / 1000, { word: 'error', text: `${i}` }]);
    expect(play(calls).lines).toHaveLength(50);
  });

  test('the state keeps its cause, or the next one that has a text', () => {
    expect(
      play([
        [0, refused],
        [1, unnamed],
      ]).state,
    ).toMatchObject({ status: 'away', cause: refused });
    expect(
      play([
        [0, refused],
        [1, noAuth],
        [2, unnamed],
      ]).state.cause,
    ).toBe(noAuth);
  });
});
