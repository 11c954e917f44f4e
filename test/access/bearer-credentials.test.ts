import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxTokenLength, readBearerCredentials } from '../../src/access/bearer-credentials.ts';

const token = 'aaaa.bbbb.cccc';
const good = { token, canonicalValue: `Bearer ${token}` };

describe('one field', () => {
  it.each([
    ['as everybody writes it', `Bearer ${token}`],
    ['lower case', `bearer ${token}`],
    ['mixed case', `bEaReR ${token}`],
    ['several spaces', `Bearer    ${token}`],
  ])('takes %s and forwards one spelling', (_, value) => {
    expect(readBearerCredentials(['Host', 'h', 'authorization', value])).toEqual(good);
  });

  it('takes 16,384 characters, and not one more', () => {
    const ofLength = (length: number) => `aaaa.${'A'.repeat(length - 10)}.cccc`;
    const longest = ofLength(16_384);
    expect(readBearerCredentials(['Authorization', `Bearer ${longest}`])).toMatchObject({ token: longest });
    expect(readBearerCredentials(['Authorization', `Bearer ${ofLength(16_385)}`])).toMatchObject({
      reason: 'too-long',
    });
  });

  it.each([
    ['no scheme', token, 'scheme'],
    ['one word', '3485h7', 'scheme'],
    ['another scheme', 'Basic dTpw', 'other-scheme'],
    ['another scheme before it', `Basic x, Bearer ${token}`, 'other-scheme'],
    ['a scheme that starts alike', `Bearers ${token}`, 'malformed'],
    ['a leading space', ` Bearer ${token}`, 'scheme'],
    ['the scheme alone', 'Bearer', 'malformed'],
    ['the scheme and a space', 'Bearer ', 'malformed'],
    ['no space', `Bearer${token}`, 'malformed'],
    ['a tab', `Bearer\t${token}`, 'malformed'],
    ['a tab after a space', `Bearer \t${token}`, 'malformed'],
    ['two tokens', `Bearer ${token} ${token}`, 'malformed'],
    ['a list', `Bearer ${token}, Bearer ${token}`, 'malformed'],
    ['a trailing space', `Bearer ${token} `, 'malformed'],
    ['a trailing no-break space', `Bearer ${token}\xa0`, 'malformed'],
    ['a line break', `Bearer ${token}\nx`, 'malformed'],
    ['quotes', `Bearer "${token}"`, 'malformed'],
    ['too long', `Bearer aaaa.${'b'.repeat(maxTokenLength)}.cccc`, 'too-long'],
  ])('refuses %s', (_, value, reason) => {
    expect(readBearerCredentials(['Authorization', value])).toEqual({
      rejection: 'access-token-invalid',
      reason,
    });
  });

  it.each([
    ['absent', ['Host', 'h']],
    ['empty', ['Authorization', '']],
    ['blank', ['Authorization', ' \t ']],
    ['elsewhere', ['X-Authorization', `Bearer ${token}`, 'Cookie', `access_token=${token}`]],
  ])('%s: missing', (_, fields) => {
    expect(readBearerCredentials(fields)).toEqual({ rejection: 'access-token-missing', reason: 'missing' });
  });

  it.each([
    ['the same twice', `Bearer ${token}`],
    ['and an empty one', ''],
  ])('refuses two fields: %s', (_, second) => {
    const fields = ['Authorization', `Bearer ${token}`, 'AUTHORIZATION', second];
    expect(readBearerCredentials(fields)).toEqual({ rejection: 'access-token-invalid', reason: 'repeated' });
  });
});

describe('a token is one string', () => {
  it.each([
    ['two segments', 'aaaa.bbbb'],
    ['no signature', 'aaaa.bbbb.'],
    ['no payload', 'aaaa..cccc'],
    ['no header', '.bbbb.cccc'],
    ['dots only', '..'],
    ['five segments (JWE)', 'aaaa.bbbb.cccc.dddd.eeee'],
    ['four segments', 'aaaa.bbbb.cccc.dddd'],
    ['four segments, the last two of a good length together', 'aaaa.bbbb.cccc.ddd'],
    ['no dot', 'aaaa'],
    ['a dot in front', '.aaaa.bbbb'],
    ['a dot at the end', 'aaaa.bbbb.cccc.'],
    ['padding', 'aaaa.bbbb.ccc='],
    ['double padding', 'aaaa.bbbb.cc=='],
    ['base64, not base64url', 'aaaa.bb+b.cccc'],
    ['a slash', 'aaaa.bbbb.cc/c'],
    ['a space inside', 'aaaa.bbbb.cc cc'],
    ['a tab inside', 'aaaa.bbbb.cc\tcc'],
    ['an impossible length', 'aaaa.bbbb.ccccc'],
    ['4 loose bits in the signature', 'aaaa.bbbb.cB'],
    ['2 loose bits in the signature', 'aaaa.bbbb.ccB'],
    ['loose bits in the header', 'aaB.bbbb.cccc'],
    ['loose bits in the payload', 'aaaa.bB.cccc'],
    ['a letter that only looks like one', 'aaaa.bbbb.ccc\u017f'],
  ])('refuses %s', (_, text) => {
    expect(readBearerCredentials(['Authorization', `Bearer ${text}`])).toEqual({
      rejection: 'access-token-invalid',
      reason: 'malformed',
    });
  });

  it('takes exactly what an encoder writes, and nothing else that decodes to the same octets', () => {
    const segment = fc.uint8Array({ minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(
        segment,
        segment,
        segment,
        fc.integer({ min: 0, max: 63 }),
        (...[header, payload, signature, change]) => {
          const texts = [header, payload, signature].map((octets) =>
            Buffer.from(octets).toString('base64url'),
          );
          const written = texts.join('.');
          expect(readBearerCredentials(['Authorization', `Bearer ${written}`])).toHaveProperty(
            'token',
            written,
          );
          const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
          const altered = written.slice(0, -1) + alphabet.charAt(change);
          const last = altered.slice(altered.lastIndexOf('.') + 1);
          const isCanonical = Buffer.from(last, 'base64url').toString('base64url') === last;
          expect('token' in readBearerCredentials(['Authorization', `Bearer ${altered}`])).toBe(isCanonical);
        },
      ),
    );
  });

  it('reads a hostile field in linear time', () => {
    const hostile = ['a'.repeat(16_000), `a.${'a'.repeat(16_000)}!`, '.'.repeat(16_000), ' '.repeat(60_000)];
    for (const text of hostile) {
      expect(readBearerCredentials(['Authorization', `Bearer ${text}`])).toHaveProperty('rejection');
    }
  });
});
