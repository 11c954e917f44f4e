import { expect, it } from 'vitest';
import { rateLimitsDefinition } from '../../src/app/rate-limits.ts';
import { validateConfig } from '../../src/config/load.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

/** The limit that a request meets under a configuration; undefined: none, or they are switched off. */
function limitOf(settings: object, method: string, url: string) {
  const { config } = validateConfig({ auth: { keys: { jwks: 'https://shop.example/keys' } }, ...settings });
  const fields = method === 'GET' ? [] : ['Content-Type', 'application/json'];
  const matcher = rateLimitsDefinition.compile(config ?? {});
  return matcher?.match(accepted(sampleHead({ method, url, fields })));
}

const row = { method: 'POST', path: '/token', requests: 5, per: '10s', mode: 'enforce' };

it.each<[string, object, string, string, object | undefined]>([
  ['default: issue', {}, 'POST', '/access-tokens', { requests: 30, perMs: 60_000, observe: true }],
  ['default: refresh', {}, 'POST', '/refresh-tokens', { requests: 30, observe: true }],
  ['default: both by one path', {}, 'POST', '/token', { requests: 30, observe: true }],
  ['default: revocation', {}, 'DELETE', '/refresh-tokens/mine', undefined],
  ['default: everything else', {}, 'GET', '/token', undefined],
  ['a row goes before', { rateLimits: { rows: [row] } }, 'POST', '/token', { requests: 5, observe: false }],
  ['off', { rateLimits: false }, 'POST', '/token', undefined],
  ['none for tokens', { rateLimits: { tokenEndpoints: false } }, 'POST', '/token', undefined],
  ['no token endpoints', { refreshTokens: false }, 'POST', '/token', undefined],
])('%s', (_, settings, method, url, expected) => {
  const limit = limitOf(settings, method, url);
  if (expected === undefined) expect(limit).toBe(undefined);
  else expect(limit).toMatchObject(expected);
});

it('is not there at all where nothing is limited', () => {
  const { config } = validateConfig({
    auth: { keys: { jwks: 'https://shop.example/keys' } },
    rateLimits: { tokenEndpoints: false },
  });
  expect(rateLimitsDefinition.compile(config ?? {})).toBe(undefined);
});
