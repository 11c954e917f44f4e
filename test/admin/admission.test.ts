import { describe, expect, it } from 'vitest';
import { createAdmission } from '../../src/admin/admission.ts';

const token = 'a-token-of-an-operator';

describe('the token of the admin port', () => {
  it.each<[string | undefined, boolean]>([
    [`Bearer ${token}`, true],
    [`bearer   ${token}`, true],
    [`Bearer ${token} `, false],
    [`Bearer ${token}x`, false],
    [`Bearer ${token.slice(1)}`, false],
    [`Basic ${token}`, false],
    [`Bearer${token}`, false],
    [`x Bearer ${token}`, false],
    ['Bearer ', false],
    ['', false],
    [undefined, false],
  ])('%j: %s', (authorization, isRight) => {
    const { hasToken } = createAdmission({ host: '127.0.0.1', token, hosts: [] });
    expect(hasToken(authorization === undefined ? {} : { authorization })).toBe(isRight);
  });

  it('is none where none is configured, and the newest from when there is another', () => {
    const admission = createAdmission({ host: '127.0.0.1', hosts: [] });
    expect(admission.hasToken({})).toBe(true);
    admission.useToken('first');
    expect([{}, { authorization: 'Bearer first' }].map(admission.hasToken)).toEqual([false, true]);
    admission.useToken('second');
    const given = ['first', 'second'].map((text) => ({ authorization: `Bearer ${text}` }));
    expect(given.map(admission.hasToken)).toEqual([false, true]);
  });
});

describe('the name by which the admin port is addressed', () => {
  const names = [
    'localhost',
    'LOCALHOST:8081',
    '127.0.0.1:8081',
    '[::1]',
    '[::1]:8081',
    '[FD00::1]:1',
    'Ops.Example:',
  ];
  const addresses = ['192.0.2.7', '192.0.2.7:8081', '[2001:db8::1]:8081'];
  const others = ['', 'evil.example', 'localhost.evil.example', 'localhost:x', 'ops.example:1:2', '[::2'];

  it('is a loopback one, its own, or a configured one; with a token any bare address will do', () => {
    const options = { host: 'fd00::1', hosts: ['ops.example'] };
    const [open, guarded] = [createAdmission(options), createAdmission({ ...options, token })];
    const known = (admission: typeof open) =>
      [...names, ...addresses, ...others].filter((host) => admission.isKnownHost({ host }));
    expect(known(open)).toEqual(names);
    expect(known(guarded)).toEqual([...names, ...addresses]);
    expect([open.isKnownHost({}), guarded.isKnownHost({})]).toEqual([false, false]);
  });
});

it.each<[string, Record<string, string>, boolean]>([
  ['no browser', {}, true],
  ['a person who typed the address', { 'sec-fetch-site': 'none' }, true],
  ['our own page', { origin: 'http://ops.example:8081', 'sec-fetch-site': 'same-origin' }, true],
  ['our own page over https', { origin: 'https://ops.example:8081' }, true],
  ['a page of another port', { origin: 'http://ops.example:8082' }, false],
  ['a page without an origin', { origin: 'null' }, false],
  ['a neighbour', { 'sec-fetch-site': 'same-site' }, false],
  ['a stranger', { 'sec-fetch-site': 'cross-site' }, false],
  [
    'a stranger that claims our origin',
    { origin: 'http://ops.example:8081', 'sec-fetch-site': 'cross-site' },
    false,
  ],
  ['a stranger that browsers do not call so', { origin: 'http://evil.example' }, false],
])('%s writes: %j is %s', (_, fields, may) => {
  const { isSameOrigin } = createAdmission({ host: '127.0.0.1', hosts: [] });
  expect(isSameOrigin({ host: 'ops.example:8081', ...fields })).toBe(may);
});
