import { describe, expect, it } from 'vitest';
import { findFaults } from './growth.ts';
import { pureReaders } from './pure-readers.ts';
import { textKinds } from './texts.ts';

it('each kind of text is another text', () => {
  expect(new Set(textKinds.map(({ make }) => make(4096))).size).toBe(textKinds.length);
});

/**
 * No text from outside costs more than linear time, whatever it is made of: at four times the length at most six times
 * the CPU of the same run.
 */
describe.each(pureReaders)('$name', (reader) => {
  it('costs as much as it is long', async () => {
    expect(await findFaults(reader, 5)).toEqual([]);
  });
});
