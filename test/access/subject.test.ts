import { describe, expect, it } from 'vitest';
import { createSubjectReader } from '../../src/access/token-claims.ts';

const user = '{"id_company_user":null,"customer_reference":"DE--21","id_customer":21,"deep":{"er":"x"}}';

describe('createSubjectReader', () => {
  it.each<[string, Record<string, unknown>, string | undefined]>([
    ['sub', { sub: 'DE--21' }, 'DE--21'],
    ['sub', { sub: user }, user],
    ['email', { sub: 'x', email: 'a@b' }, 'a@b'],
    ['sub.customer_reference', { sub: user }, 'DE--21'],
    ['sub.customer_reference', { sub: JSON.parse(user) }, 'DE--21'],
    ['sub.id_customer', { sub: user }, '21'],
    ['sub.deep.er', { sub: user }, 'x'],
    // nobody
    ['sub', {}, undefined],
    ['sub', { sub: '' }, undefined],
    ['sub', { sub: null }, undefined],
    ['sub', { sub: 21 }, undefined],
    ['sub', { sub: ['DE--21'] }, undefined],
    ['sub', { sub: { a: 1 } }, undefined],
    ['sub', { sub: '\ud800' }, undefined],
    ['sub.customer_reference', { sub: 'DE--21' }, undefined],
    ['sub.customer_reference', { sub: '"DE--21"' }, undefined],
    ['sub.customer_reference', { sub: '{"customer_reference":null}' }, undefined],
    ['sub.customer_reference', { sub: '{"customer_reference":""}' }, undefined],
    ['sub.customer_reference', { sub: '{"customer_reference":1.5}' }, undefined],
    ['sub.customer_reference', { sub: '["x"]' }, undefined],
    ['sub.length', { sub: 'abc' }, undefined],
    ['sub.0', { sub: '["x"]' }, undefined],
    ['sub.deep', { sub: user }, undefined],
    // a JSON text is opened once, not again inside it
    ['sub.deep.er', { sub: '{"deep":"{\\"er\\":\\"x\\"}"}' }, undefined],
    ['constructor.name', {}, undefined],
    ['sub.__proto__', { sub: '{"a":1}' }, undefined],
    ['toString', {}, undefined],
  ])('%s of %j: %j', (path, claims, expected) => {
    expect(createSubjectReader(path)(claims)).toBe(expected);
  });

  it.each(['', '.', 'sub.', '.sub', 'sub..x'])('refuses the path %j', (path) => {
    expect(() => createSubjectReader(path)).toThrow(TypeError);
  });
});
