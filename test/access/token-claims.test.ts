import { describe, expect, it } from 'vitest';
import { createScopesReader, createSubjectReader, defaultScopePaths } from '../../src/access/claim-paths.ts';
import { type ClaimRules, validateClaims } from '../../src/access/token-claims.ts';
import { createKindCheck, type TokenType } from '../../src/access/token-kind.ts';

const nowSeconds = 1_700_000_000;
const base = { sub: 'DE--21', exp: nowSeconds + 100, iat: nowSeconds - 100, nbf: nowSeconds - 100 };
const loose: ClaimRules = {
  clockToleranceMs: 0,
  refuseKind: createKindCheck(),
  readSubject: createSubjectReader('sub'),
  readScopes: createScopesReader(defaultScopePaths),
};

function validate(claims: object, rules: Partial<ClaimRules> = {}) {
  const parsed = JSON.parse(JSON.stringify({ ...base, ...claims }));
  return validateClaims(parsed, { ...loose, ...rules }, nowSeconds * 1000);
}

/** As it is on the wire: `1e999` and the like cannot be written by JSON.stringify. */
function validateText(text: string) {
  return validateClaims(JSON.parse(text), loose, nowSeconds * 1000);
}

describe('time', () => {
  const tolerant = { clockToleranceMs: 5_000 };
  const hour = { maxTokenAgeMs: 3_600_000 };
  it.each<[string, object, Partial<ClaimRules>, string | undefined]>([
    ['exp a moment ahead', { exp: nowSeconds + 0.001 }, {}, undefined],
    ['exp is now', { exp: nowSeconds }, {}, 'expired'],
    ['exp with a fraction, past', { exp: nowSeconds - 0.25 }, {}, 'expired'],
    ['exp within the tolerance', { exp: nowSeconds - 4.999 }, tolerant, undefined],
    ['exp at the end of the tolerance', { exp: nowSeconds - 5 }, tolerant, 'expired'],
    ['exp far ahead', { exp: 8.64e12 }, {}, undefined],
    ['exp negative', { exp: -1 }, {}, 'expired'],
    ['no exp', { exp: undefined }, {}, 'no-expiry'],
    ['exp null', { exp: null }, {}, 'claims'],
    ['exp a string', { exp: `${nowSeconds + 100}` }, {}, 'claims'],
    ['exp an array', { exp: [nowSeconds + 100] }, {}, 'claims'],
    ['exp beyond any date', { exp: 1e300 }, {}, 'claims'],
    ['exp a second after the last date', { exp: 8.64e12 + 1 }, {}, 'claims'],
    ['nbf now', { nbf: nowSeconds }, {}, undefined],
    ['nbf ahead', { nbf: nowSeconds + 0.001 }, {}, 'not-before'],
    ['nbf within the tolerance', { nbf: nowSeconds + 5 }, tolerant, undefined],
    ['nbf beyond the tolerance', { nbf: nowSeconds + 5.001 }, tolerant, 'not-before'],
    ['nbf a string', { nbf: '0' }, {}, 'claims'],
    ['no nbf', { nbf: undefined }, {}, undefined],
    ['iat now', { iat: nowSeconds }, {}, undefined],
    ['iat ahead', { iat: nowSeconds + 1 }, {}, 'issued-in-future'],
    ['iat in 2286', { iat: 9_999_999_999 }, tolerant, 'issued-in-future'],
    ['iat within the tolerance', { iat: nowSeconds + 5 }, tolerant, undefined],
    ['iat null', { iat: null }, {}, 'claims'],
    ['no iat', { iat: undefined }, {}, undefined],
    ['no iat, age limited', { iat: undefined }, hour, 'no-issue-time'],
    ['younger than the limit', { iat: nowSeconds - 3599.9 }, hour, undefined],
    ['as old as the limit', { iat: nowSeconds - 3600 }, hour, 'too-old'],
    ['older, within the tolerance', { iat: nowSeconds - 3604.9 }, { ...hour, ...tolerant }, undefined],
    ['expired and too old', { exp: nowSeconds - 1, iat: nowSeconds - 9999 }, hour, 'expired'],
  ])('%s', (_, claims, rules, reason) => {
    const verdict = validate(claims, rules);
    if (reason === undefined) expect(verdict).toHaveProperty('identity.subject', 'DE--21');
    else expect(verdict).toBe(reason);
  });

  it.each([
    ['Infinity is no date', '{"sub":"a","exp":1e999}', 'claims'],
    ['-Infinity neither', '{"sub":"a","exp":2e9,"nbf":-1e999}', 'claims'],
    ['the last of two members counts', '{"sub":"a","exp":2e9,"exp":1}', 'expired'],
    ['a __proto__ member is a member', '{"__proto__":{"exp":2e9,"sub":"a"}}', 'no-expiry'],
  ])('%s', (_, text, reason) => expect(validateText(text)).toBe(reason));

  it('keeps fractions and says when the token itself expires', () => {
    expect(validate({ exp: nowSeconds + 1.5, iat: nowSeconds - 0.5, nbf: undefined }, tolerant)).toEqual({
      identity: {
        subject: 'DE--21',
        claimedSubject: 'DE--21',
        scopes: [],
        expiresAtMs: nowSeconds * 1000 + 1500,
      },
      issuedAtMs: nowSeconds * 1000 - 500,
      notBeforeMs: undefined,
    });
  });
});

describe('issuer and audience', () => {
  const shop = 'https://shop.example';
  it.each<[string, object, Partial<ClaimRules>, string | undefined]>([
    ['same issuer', { iss: shop }, { issuer: shop }, undefined],
    ['one of several', { iss: shop }, { issuer: ['x', shop] }, undefined],
    ['trailing slash', { iss: `${shop}/` }, { issuer: shop }, 'issuer'],
    ['no issuer', {}, { issuer: shop }, 'issuer'],
    ['issuer array', { iss: [shop] }, { issuer: shop }, 'issuer'],
    ['issuer not checked', { iss: 7 }, {}, undefined],
    ['audience string', { aud: 'frontend' }, { audience: 'frontend' }, undefined],
    ['audience array', { aud: ['x', 'frontend'] }, { audience: 'frontend' }, undefined],
    ['one of several audiences', { aud: 'frontend' }, { audience: ['x', 'frontend'] }, undefined],
    ['other audience', { aud: 'backend' }, { audience: 'frontend' }, 'audience'],
    ['prefix of the audience', { aud: 'front' }, { audience: 'frontend' }, 'audience'],
    ['no audience', {}, { audience: 'frontend' }, 'audience'],
    ['empty audience array', { aud: [] }, { audience: 'frontend' }, 'audience'],
    ['audience array with a number', { aud: ['frontend', 1] }, { audience: 'frontend' }, 'audience'],
    ['audience object', { aud: { frontend: true } }, { audience: 'frontend' }, 'audience'],
  ])('%s', (_, claims, rules, reason) => {
    const verdict = validate(claims, rules);
    if (reason === undefined) expect(verdict).toHaveProperty('identity');
    else expect(verdict).toBe(reason);
  });
});

describe('scopes', () => {
  it.each<[object, string[]]>([
    [{}, []],
    [{ scopes: ['customer', 'company_user'] }, ['customer', 'company_user']],
    [{ scopes: 'customer  company_user' }, ['customer', 'company_user']],
    [{ scope: 'customer company_user' }, ['customer', 'company_user']],
    [{ scopes: ['customer'], scope: 'customer other' }, ['customer', 'other']],
    [{ scopes: ['customer', 1, null, ['x']] }, ['customer']],
    [{ scopes: { customer: true } }, []],
    [{ scope: 7 }, []],
  ])('%j', (claims, scopes) => {
    expect(validate(claims)).toHaveProperty('identity.scopes', scopes);
  });
});

it('refuses a token that names nobody', () => {
  expect(validate({ sub: undefined })).toBe('subject');
});

describe('auth.tokenType', () => {
  const kindOf = (type: TokenType, claims: object, header: object = {}) =>
    createKindCheck(type)(claims as never, true, header as never);
  const atOnly: TokenType = { header: 'typ', values: ['at+jwt', 'x+jwt'] };
  const use: TokenType = { claim: 'token_use', values: ['access'] };
  const other: TokenType = { header: 'kind', values: ['access'] };
  const dotted: TokenType = { claim: ['https://id.example/use'], values: ['api'] };
  it.each<[string, TokenType, object, object, string | undefined]>([
    ['header typ is named', atOnly, {}, { typ: 'AT+JWT' }, undefined],
    ['header typ has its prefix', atOnly, {}, { typ: 'application/x+jwt' }, undefined],
    ['header typ is missing', atOnly, {}, {}, 'other-kind'],
    ['header typ is JWT, which is not named', atOnly, {}, { typ: 'JWT' }, 'other-kind'],
    ['another parameter', other, {}, { kind: 'access' }, undefined],
    ['another parameter beside a wrong typ', other, {}, { kind: 'access', typ: 'logout+jwt' }, 'other-kind'],
    ['another parameter is missing', other, {}, {}, 'other-kind'],
    ['a parameter of the prototype', { header: 'constructor', values: ['x'] }, {}, {}, 'other-kind'],
    ['the claim has the value', use, { token_use: 'access' }, {}, undefined],
    ['the claim has another case', use, { token_use: 'Access' }, {}, 'other-kind'],
    ['the claim is a list', use, { token_use: ['access'] }, {}, 'other-kind'],
    ['the claim is missing', use, {}, {}, 'other-kind'],
    ['a claim with dots in its name', dotted, { 'https://id.example/use': 'api' }, {}, undefined],
    ['the claim beside an event', use, { token_use: 'access', events: {} }, {}, 'other-kind'],
    ['the claim beside cnf', use, { token_use: 'access', cnf: {} }, {}, 'sender-constrained'],
  ])('%s', (_, type, claims, header, expected) => {
    expect(kindOf(type, claims, header)).toBe(expected);
  });
});
