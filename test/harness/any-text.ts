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

/** What a segment of a path may hold as it is (RFC 3986, section 3.3). */
const plainCharacters = "ABCXYZabcxyz0189-._~!$&'()*+,;=:@";

/** The path of a URL: segments of plain and of escaped characters. As fast-check's `webPath`, without its table. */
export function anyPath(): fc.Arbitrary<string> {
  const character = fc.oneof(
    { arbitrary: fc.constantFrom(...plainCharacters), weight: 10 },
    { arbitrary: anyCharacter.map((one) => encodeURIComponent(one)), weight: 1 },
  );
  return fc
    .array(fc.string({ unit: character }))
    .map((segments) => segments.map((one) => `/${one}`).join(''));
}
