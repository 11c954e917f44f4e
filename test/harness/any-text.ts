import fc, { type StringConstraints } from 'fast-check';

const surrogates = { first: 0xd800, count: 0x800 };

/** Any code point except surrogates. */
const anyCharacter = fc.nat({ max: 0x10ffff - surrogates.count }).map(
  (n) => String.fromCodePoint(n < surrogates.first ? n : n + surrogates.count),
  (text) => {
    const point = typeof text === 'string' ? text.codePointAt(0) : undefined;
    if (point === undefined || text !== String.fromCodePoint(point)) throw new Error('not one character');
    return point < surrogates.first ? point : point - surrogates.count;
  },
);

/**
 * Any text, sometimes one that is dangerous in JavaScript, such as `__proto__`. Like fast-check's unit `binary`, but
 * without its table of a million characters in each process.
 */
export function anyText(constraints: Omit<StringConstraints, 'unit'> = {}): fc.Arbitrary<string> {
  return fc.string({ ...constraints, unit: anyCharacter });
}

/** Characters that a path segment may contain without an escape (RFC 3986, section 3.3). */
const plainCharacters = "ABCXYZabcxyz0189-._~!$&'()*+,;=:@";

/** The path of a URL: segments of plain and of escaped characters. Like fast-check's `webPath`, without its table. */
export function anyPath(): fc.Arbitrary<string> {
  const character = fc.oneof(
    { arbitrary: fc.constantFrom(...plainCharacters), weight: 10 },
    { arbitrary: anyCharacter.map((one) => encodeURIComponent(one)), weight: 1 },
  );
  return fc
    .array(fc.string({ unit: character }))
    .map((segments) => segments.map((one) => `/${one}`).join(''));
}
