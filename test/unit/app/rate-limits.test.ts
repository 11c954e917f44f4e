import { expect, it } from 'vitest';
import { rateLimitsDefinition } from '../../../src/app/rate-limits.ts';
import { validateConfig } from '../../../src/config/load.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

/** The limits that a request meets under a configuration; undefined: none, or they are switched off. */
function limitsOf(settings: object, method: string, url: string) {
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
  [
    'a row wins over the default',
    { rateLimits: { rows: [row] } },
    'POST',
    '/token',
    { requests: 5, observe: false },
  ],
  ['off', { rateLimits: false }, 'POST', '/token', undefined],
  ['none for tokens', { rateLimits: { tokenEndpoints: false } }, 'POST', '/token', undefined],
  ['no token endpoints', { refreshTokens: false }, 'POST', '/token', undefined],
])('%s', (_, settings, method, url, expected) => {
  const limits = limitsOf(settings, method, url);
  if (expected === undefined) expect(limits).toBe(undefined);
  else expect(limits).toEqual([expect.objectContaining(expected)]);
});

it('a row for all paths applies in addition to that of a token endpoint', () => {
  const wide = { method: 'ANY', path: '/**', requests: 1000, per: '1m', mode: 'enforce' };
  expect(limitsOf({ rateLimits: { rows: [wide] } }, 'POST', '/Token')).toMatchObject([
    { path: '/**', observe: false },
    { path: '/token', observe: true },
  ]);
});
