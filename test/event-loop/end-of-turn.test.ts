import { expect, test } from 'vitest';
import { EndOfTurn } from '../../src/event-loop/end-of-turn.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('items wait for the end of the turn, in their order, and those that come meanwhile for the next one', async () => {
  const seen: string[] = [];
  const work = new EndOfTurn<string>(
    (item) => {
      seen.push(item);
      if (item === 'a') work.add('late');
    },
    () => {},
  );
  work.add('a');
  work.add('b');
  await Promise.resolve();
  await new Promise((resolve) => process.nextTick(resolve));
  expect(seen).toEqual([]);
  await turn();
  expect(seen).toEqual(['a', 'b']);
  await turn();
  expect(seen).toEqual(['a', 'b', 'late']);
  work.add('c');
  await turn();
  expect(seen).toEqual(['a', 'b', 'late', 'c']);
});
