import { describe, expect, test } from 'vitest';
import { canonicalToken, createDigests, isPlainToken } from '../../../src/refresh-tokens/token-digest.ts';

describe('isPlainToken', () => {
  const tokens =
    'def50200ab eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiIxIn0.MEUCIQ 1//0gFx-_y v1.MjAy~x Atzr|IwEBIabc ' +
    'M.C105_BL2.-CTN!x*y$$ v^1.1#i^1#p^3#t^Ul4x== 3f0c7f2e-5f0a-4b64-8f0e-7c1f3f2d9a55';
  test.each(tokens.split(' '))('%s', (token) => expect(isPlainToken(token)).toBe(true));

  const others = 'T=x|T===|T | T|T\n|T\0|T%41|T"|T\\|T;|T,|T&|T<|Té|=|';
  test.each(others.split('|'))('not %j', (token) => expect(isPlainToken(token)).toBe(false));
});

describe('two spellings that decode to one token have one digest', () => {
  const { ofToken, ofInterpretations, ofSubject } = createDigests('a key');
  const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiIxIn0';
  const base64 = 'kH0n2Q7xVb9sYt4LmPz1Rg';
  const hex = 'def50200'.repeat(8);
  test.each([
    ['hexadecimal in upper case', 'def50200ab', 'DEF50200AB'],
    ['surrounding white space', 'def50200ab', ' def50200ab\r\n'],
    ['a trailing NUL', 'def50200ab', 'def50200ab\0'],
    ["a JWT's other signature", `${jwt}.MEUCIQ`, `${jwt}.MEUCIR`],
    ["a JWT's padding", `${jwt}.MEUCIQ`, 'eyJhbGciOiJFUzI1NiJ9=.eyJqdGkiOiIxIn0=.MEUCIQ=='],
    ["a JWT's loose bits", `${jwt}.MEUCIQ`, 'eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiIxIn1.MEUCIQ'],
    ['padding', base64, `${base64}==`],
    ['loose bits', base64, base64.replace(/g$/, 'h')],
    ['a character outside base64', base64, `${base64.slice(0, 9)}!${base64.slice(9)}`],
    ['a line break', base64, `${base64.slice(0, 9)}\r\n${base64.slice(9)}`],
    ['the other alphabet', `${base64}-_`, `${base64}+/`],
    ['a spare character after groups of four', `${base64}ab`, `${base64}abc`],
    ['a spare hexadecimal digit', hex, `${hex}a`],
  ])('%s', (_, one, other) => {
    expect(ofToken(other)).toBe(ofToken(one));
  });

  test.each([
    ['a hyphen, which only some decoders know', base64, `${base64.slice(0, 9)}-${base64.slice(9)}`],
    ['a dot', base64, `${base64.slice(0, 9)}.${base64.slice(9)}`],
    ['hexadecimal up to the first other letter', hex, `${hex}zz`],
  ])('ofInterpretations includes the decoded token: %s', (_, one, other) => {
    expect(ofInterpretations(one)).toEqual([ofToken(one)]);
    expect(ofInterpretations(other)).toContain(ofToken(one));
    expect(ofInterpretations(other)[0]).toBe(ofToken(other));
  });

  test('another token, key or kind has another digest', () => {
    expect(ofToken('def50200ac')).not.toBe(ofToken('def50200ab'));
    expect(createDigests('another key').ofToken('def50200ab')).not.toBe(ofToken('def50200ab'));
    expect(ofSubject('x')).not.toBe(ofToken('x'));
    expect(ofSubject('de--21')).not.toBe(ofSubject('DE--21'));
    expect(canonicalToken('a.b')).toBe('a.b');
    expect(ofToken('v4.local.Zm9vYmFy')).not.toBe(ofToken('v4.local.Zm9vYmF6'));
    for (const name of ['refresh-token-number-', 'rt_0000000000000000000000', 'user.17.refresh.token.']) {
      expect(ofInterpretations(`${name}17`)).not.toEqual(ofInterpretations(`${name}18`));
    }
  });
});
