import fc, { type StringConstraints } from 'fast-check';

const surrogates = { first: 0xd800, count: 0x800 };

/** Any code point but halves of a pair. */
const anyCharacter = fc.nat({ max: 0x10ffff - surrogates.count }).map(
  (n) => String.fromCodePoint(n < surrogates.first ? n : n + surrogates.count),
  (text) => {
    const point = typeof text === 'string' ? text.codePointAt(0) : undefined;
    if (point === undefined || text !== String.fromCodePoint(point)) throw new Error('not one character');
    return point < surrogates.first ? point : point - surrogates.count;
  },
);

/**
 * Any text, and now and then one that is dangerous to JavaScript, such as `__proto__`. As fast-check's own unit `binary`,
 * which first makes a table of all million characters, in each process that asks for it.
 */
export function anyText(constraints: Omit<StringConstraints, 'unit'> = {}): fc.Arbitrary<string> {
  return fc.string({ ...constraints, unit: anyCharacter });
}
