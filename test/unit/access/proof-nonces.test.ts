import { expect, it } from 'vitest';
import { createProofNonces } from '../../../src/access/proof-of-possession.ts';

const windowMs = 300_000;
const secret = 'a-secret-of-at-least-thirty-two-characters';
const at = (ms: number, own = secret) => createProofNonces(own, 5_000, () => ms);
/** The start of a window. */
const begin = 1_000 * windowMs;
const nonce = at(begin).current();

it.each([
  ['when it is given', 0, true],
  ['at the end of the next window', 2 * windowMs - 1, true],
  ['after the next window', 2 * windowMs, false],
  ['by a replica whose clock is 5 s behind', -5_000, true],
  ['by a replica whose clock is further behind', -5_001, false],
])('a nonce %s (%s ms later): accepted: %s', (_, laterMs, isAccepted) => {
  expect(at(begin + laterMs).accepts(nonce)).toBe(isAccepted);
});

it.each([
  ['made with another secret', at(begin, `${secret}x`).current()],
  ['with an extra octet', `${nonce}A`],
  ['without its first octet', nonce.slice(1)],
  ['in a list', [nonce]],
  ['that is a number', 1_000],
  ['that is missing', undefined],
])('refuses a nonce %s', (_, given) => {
  expect(at(begin).accepts(given)).toBe(false);
});
