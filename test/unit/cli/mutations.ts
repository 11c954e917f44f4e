import fc from 'fast-check';
import { anyText } from '../../harness/any-text.ts';

/** Removes or replaces octets. */
export const mutation = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.nat({ max: 12 }),
  by: fc.oneof(
    fc.constantFrom('', '\t', '\n', '\n      - GET /x\n', '  ', ': ', '---\n', '%YAML 1.1\n'),
    fc.constantFrom(
      '\u0000',
      '\ufeff',
      '\ud800',
      ...`{ [ " ' &a *a !x # null -1 /.. %ff __proto__ ,`.split(' '),
    ),
    fc.constantFrom(
      '<<: 1',
      '"$ref":"#/paths"',
      '<<<<<<< a\n',
      '${X}',
      '{"a":'.repeat(600),
      '- '.repeat(600),
    ),
    anyText({ maxLength: 8 }),
  ),
});

export const mutate = (text: string, all: readonly { at: number; length: number; by: string }[]) =>
  all.reduce((now, { at, length, by }) => {
    const start = Math.floor(at * now.length);
    return now.slice(0, start) + by + now.slice(start + length);
  }, text);
