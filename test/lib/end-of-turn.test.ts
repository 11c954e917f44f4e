import { expect, test } from 'vitest';
import { EndOfTurn } from '../../src/lib/end-of-turn.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('items run at the end of the turn, in their order; those that are added meanwhile run in the next one', async () => {
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

test('a turn runs its own items only, whatever earlier turns had, and those of others where one throws', async () => {
  const seen: string[] = [];
  const failed: string[] = [];
  const work = new EndOfTurn<string>(
    (item) => {
      if (item.startsWith('bad')) throw new Error(item);
      seen.push(item);
    },
    (item) => failed.push(item),
  );
  const turns = [
    ['a', 'b', 'c', 'd'],
    ['e', 'bad 1', 'f'],
    ['g'],
    ['bad 2', 'h'],
    ['i', 'j', 'k', 'l', 'm'],
    ['n'],
  ];
  for (const items of turns) {
    for (const item of items) work.add(item);
    await turn();
  }
  await turn();
  expect(seen.join('')).toBe('abcdefghijklmn');
  expect(failed).toEqual(['bad 1', 'bad 2']);
});
