import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createWithIdentity,
  encodeIdentity,
  maxIdentityOctets,
} from '../../../src/access/identity-fields.ts';
import type { TokenIdentity } from '../../../src/access/token-claims.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

const bearer = 'Bearer a.b.c';
const request = { ...accepted(sampleHead()), fields: ['Host', 'a', 'authorization', 'bearer  a.b.c'] };
const identity: TokenIdentity = {
  subject: 'of-one DE--21',
  claimedSubject: 'DE--21',
  scopes: ['customer', 'a b', 'c,d'],
  issuer: 'https://shop.example/',
  expiresAtMs: 1,
};
const forward = { subject: 'X-Subject', scopes: 'X-Scopes', issuer: 'X-Issuer' };

describe('encodeIdentity', () => {
  it.each([
    ['DE--21', 'DE--21'],
    ['auth0|5f', 'auth0|5f'],
    ['a@b.example', 'a@b.example'],
    ['a\r\nX-Admin: 1', 'a%0D%0AX-Admin:%201'],
    ['a,b;c "d\\"', 'a%2Cb%3Bc%20%22d%5C%22'],
    ['100%', '100%25'],
    ['%41', '%2541'],
    ['Jürgen', 'J%C3%BCrgen'],
    ['😀', '%F0%9F%98%80'],
    ['\0\t\x7f', '%00%09%7F'],
    ['\ud800', '%EF%BF%BD'],
  ])('%j is %s', (claim, value) => expect(encodeIdentity(claim)).toBe(value));

  it('encodes random well-formed claims as visible ASCII that decodes to the same claim', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (claim) => {
        const value = encodeIdentity(claim);
        expect(value).toMatch(/^[!-~]*$/);
        expect(value).not.toMatch(/[,;"\\ ]/);
        expect(decodeURIComponent(value)).toBe(claim);
      }),
    );
  });
});

describe('createWithIdentity', () => {
  it('returns the same request object if no field changes', () => {
    const canonical = { ...request, fields: ['Host', 'a', 'Authorization', bearer] };
    const withIdentity = createWithIdentity({ forward: {}, forwardAuthorization: true });
    expect(withIdentity(canonical, identity, bearer)).toBe(canonical);
  });

  it.each([
    ['subject', { claimedSubject: 'ü'.repeat(maxIdentityOctets / 6 + 1) }],
    ['scopes', { scopes: Array.from({ length: maxIdentityOctets / 2 + 2 }, () => 'a') }],
    ['issuer', { issuer: 'a'.repeat(maxIdentityOctets + 1) }],
  ])('too-long if the %s exceeds the limit; a long token is accepted', (_, more) => {
    const withIdentity = createWithIdentity({ forward, forwardAuthorization: true });
    expect(withIdentity(request, { ...identity, ...more }, bearer)).toBe('too-long');
    const atMost = { ...identity, claimedSubject: 'a'.repeat(maxIdentityOctets) };
    expect(withIdentity(request, atMost, `Bearer ${'a'.repeat(9000)}`)).not.toBe('too-long');
  });
});
