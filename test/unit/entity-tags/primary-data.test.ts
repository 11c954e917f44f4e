import { describe, expect, it } from 'vitest';
import { findData } from '../../../src/entity-tags/json-api.ts';
import { finish } from '../../../src/lib/slices.ts';

const find = (text: string) => finish(findData(Buffer.from(text)))?.toString();

describe('findData, which looks for the primary data in slices', () => {
  it.each([
    ['{"data":{"id":1}}', '{"id":1}'],
    ['{"data":[{"id":"a"},{"id":"b"}],"x":1}', '[{"id":"a"},{"id":"b"}]'],
    ['{"x":{"data":1},"y":["data"],"data" : "\\"}," , "z":0}', ' "\\"}," '],
    ['{"a":"data","b":1,"data":2}', '2'],
    ['{"dat":1,"dataa":2,"xdata":3}', undefined],
    ['{"data":{"id":"b"},"data":{"id":"c"}}', '{"id":"b"}'],
    ['[{"data":{"id":"a"}}]', undefined],
    ['{"data":{"id":"a"', undefined],
    ['', undefined],
    ['1', undefined],
  ])('of %s is %j', (text, data) => {
    expect(find(text)).toBe(data);
  });

  /** The number of slices. */
  function stepsOf(octets: Buffer): number {
    const steps = findData(octets);
    let count = 1;
    while (!steps.next().done) count += 1;
    return count;
  }
  const megabyte = 1_048_576;
  it.each([
    ['numbers', `{"included":[${'1,'.repeat(megabyte / 2)}1]}`],
    ['one string', `{"data":{"id":"${'a'.repeat(megabyte)}"}}`],
    ['one string of escapes', `{"data":{"id":"${'\\\\'.repeat(megabyte / 2)}"}}`],
    ['one name', `{"${'\\u0061'.repeat(megabyte / 6)}":1}`],
    ['spaces', `{"data":${' '.repeat(megabyte)}1}`],
  ])('stops after each slice of 16 KiB: %s', (_, text) => {
    // A slice may be a little longer than 16 KiB, because its end is only checked between steps.
    expect(stepsOf(Buffer.from(text))).toBeGreaterThan(megabyte / 16_384 - 4);
  });

  it.each(['\\"', '\\\\', '\\u0061'])('gives the same data wherever a slice ends: %j', (chunk) => {
    for (let before = 16_384 - 12; before < 16_384 + 4; before++) {
      const data = `{"x":"${'a'.repeat(before)}${chunk}b","id":"${chunk}c"}`;
      expect(find(`{"data":${data}}`), String(before)).toBe(data);
    }
  });
});
