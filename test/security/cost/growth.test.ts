import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documentReaders } from './document-readers.ts';
import { pureReaders } from './pure-readers.ts';
import { type Reader, textKinds } from './texts.ts';
import { findGrowth, WorkCounter } from './work.ts';

let counter: WorkCounter;
beforeAll(async () => {
  counter = await WorkCounter.open();
});
afterAll(() => counter.close());

it('all kinds of text differ', () => {
  expect(new Set(textKinds.map(({ make }) => make(4096))).size).toBe(textKinds.length);
});

it('finds a reader that is quadratic for one kind of text', async () => {
  const read = (text: string) => {
    let pairs = 0;
    const length = text.startsWith('x{"a":{') ? text.length : 1;
    for (let i = 0; i < text.length; i++) for (let j = 0; j < length; j++) pairs += j;
    return pairs;
  };
  const reader = fewOf({ name: 'a square', limit: 65_536, kinds: textKinds, read });
  expect(await findGrowth(counter, reader)).toHaveLength(1);
});

/** Text from outside must cost linear work, whatever it contains. */
describe.each([...pureReaders, ...documentReaders])('$name', (reader) => {
  it('costs work that is linear in the length of the text', async () => {
    expect(await findGrowth(counter, fewOf(reader))).toEqual([]);
  });
});

/** Keeps one kind in five (a run after a letter); of long texts one in forty. `npm run cost` uses all kinds. */
function fewOf(reader: Reader): Reader {
  const [every, offset] = reader.start === undefined ? [5, 2] : [40, 4];
  return {
    ...reader,
    kinds: reader.kinds.filter((_, i) => reader.kinds.length < 20 || i % every === offset),
  };
}
