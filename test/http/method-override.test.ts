import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { overridesMethod } from '../../src/http/form-encoding.ts';

describe('overridesMethod', () => {
  it.each([
    '?_method=PATCH',
    '?_method',
    '?_method=',
    '?a=1&_method=DELETE',
    '?a=1;_method=DELETE',
    '?;_method=DELETE',
    '?&&_method=DELETE',
    '?_method=GET&_method=DELETE',
    '?%5fmethod=PATCH',
    '?%5Fm%65thod=PATCH',
    '?%5f%6d%65%74%68%6f%64=PATCH',
    '?+_method=PATCH',
    '?%20_method=PATCH',
    '?++%20+_method=PATCH',
    '?.method=PATCH',
    '?%2emethod=PATCH',
    '?a=b&+.method',
    '?_method%00=PATCH',
    '?_method%00x=PATCH',
    '?_method[]=PATCH',
    '?_method[x]=PATCH',
    '?_method%5b%5d=PATCH',
    '?_method[=PATCH',
    '?[method=PATCH',
    '?%5Bmethod=PATCH',
    '?_method[;]=PATCH',
    '?_method%00[=PATCH',
  ])('%j', (query) => {
    expect(overridesMethod(query)).toBe(true);
  });

  it.each([
    '',
    '?',
    '?include=items',
    '?method=PATCH',
    '?__method=PATCH',
    '?_methods=PATCH',
    '?_method_=PATCH',
    '?_METHOD=PATCH',
    '?a=_method',
    '?a[_method]=PATCH',
    '?a=%26_method=PATCH',
    '?%00_method=PATCH',
    '?_method%20=PATCH',
    '?%25_method=PATCH',
    '?%_method',
    '?%E4=%zz',
  ])('not %j', (query) => {
    expect(overridesMethod(query)).toBe(false);
  });

  it('finds the name however its octets are written', () => {
    const octet = (character: string) =>
      fc.constantFrom(character, `%${Buffer.from(character).toString('hex')}`, encodeUpper(character));
    const underscore = fc.constantFrom('_', '.', '%5f', '%5F', '%2e', '%2E');
    const name = fc.tuple(
      fc.constantFrom('', '+', '%20', ' +%20'),
      underscore,
      ...Array.from('method', octet),
      fc.constantFrom('', '%00', '%00x', '[', '[]', '%5b0%5D', '[a][b]'),
    );
    const before = fc.constantFrom('', 'a=1&', '&', ';', 'x;');
    const after = fc.constantFrom('', '=', '=PATCH', '=a=b', '&b');
    fc.assert(
      fc.property(before, name, after, (front, spelling, back) => {
        assert.equal(overridesMethod(`?${front}${spelling.join('')}${back}`), true);
      }),
      { numRuns: 2000 },
    );
  });

  it('reads as PHP does, step by step', () => {
    const piece = fc.constantFrom(
      ...['_', '.', '[', ']', '+', '%', '%5', '%5f', '%5B', '%00', '%20', '%2e', '%26', '%3d', 'm', '%6d'],
      ...['method', 'ethod', 'METHOD', '&', ';', '=', '_method', 'x', 'é', '%zz'],
    );
    const queries = fc.array(piece, { maxLength: 12 }).map((pieces) => `?${pieces.join('')}`);
    fc.assert(
      fc.property(queries, (query) => {
        assert.equal(overridesMethod(query), query.slice(1).split(/[&;]/).some(isMethodToPhp), query);
      }),
      { numRuns: 5000 },
    );
  });
});

function isMethodToPhp(parameter: string): boolean {
  const [field = ''] = parameter.split('=');
  const name = field
    .replaceAll('+', ' ')
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/^ +/, '');
  const folded = (name.split('\0', 1)[0] ?? '').replace(/[. ]/g, '_');
  return folded.split('[', 1)[0] === '_method' || folded.replaceAll('[', '_') === '_method';
}

function encodeUpper(character: string): string {
  return `%${Buffer.from(character).toString('hex').toUpperCase()}`;
}
