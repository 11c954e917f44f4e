import { describe, expect, it } from 'vitest';
import { createDrift, guessTemplate } from '../../../src/admin/drift.ts';
import { exchangeRecord } from './exchange-records.ts';

describe('routes that the shop refuses and no row names', () => {
  it.each([
    ['401 of the shop on an open route', { status: 401 }, 1],
    ['403 of the shop on an open route', { status: 403 }, 1],
    ['404', { status: 404 }, 0],
    ['200', { status: 200 }, 0],
    ['a refusal by a row', { status: 401, decision: 'refused', route: '/orders' }, 0],
    ['a refusal of the shop where a row matches', { status: 403, route: '/orders' }, 0],
    ['our own refusal of an open route', { status: 403, decision: 'refused' }, 0],
    ['an own endpoint', { status: 401, decision: 'answered', route: '/url-resolver' }, 0],
    ['OPTIONS', { status: 401, method: 'OPTIONS' }, 0],
  ] as const)('%s: %o', (_, record, routes) => {
    const drift = createDrift();
    drift.note(exchangeRecord({ path: '/orders', ...record }), 1);
    expect(drift.unlisted()).toHaveLength(routes);
  });

  it('are counted by method, HEAD as GET; only a status below 400 is a success', () => {
    const drift = createDrift();
    for (const [method, status] of [
      ['GET', 401],
      ['HEAD', 403],
      ['GET', 399],
      ['GET', 400],
    ] as const)
      drift.note(exchangeRecord({ path: '/agents/7', method, status }), status);
    expect(drift.unlisted()).toEqual([
      { method: 'GET', template: '/agents/{id}', unauthorized: 1, forbidden: 1, passed: 1, lastSeenMs: 403 },
    ]);
  });

  it('are bounded, and a flood of new ones does not push out a frequent one', () => {
    const drift = createDrift();
    for (let i = 0; i < 3; i++) drift.note(exchangeRecord({ path: '/agents', status: 401 }), i);
    for (let i = 0; i < 1_000; i++) drift.note(exchangeRecord({ path: `/flood-${i}-x`, status: 401 }), i);
    const unlisted = drift.unlisted();
    expect(unlisted).toHaveLength(200);
    expect(unlisted[0]).toMatchObject({ template: '/agents', unauthorized: 3 });
    drift.note(exchangeRecord({ path: '/agents', status: 200 }), 9);
    expect(drift.unlisted()[0]?.passed).toBe(1);
  });
});

it.each([
  ['/', '/'],
  ['/agents/7', '/agents/{id}'],
  ['/agents/abc/things', '/agents/{id}/things'],
  ['/agents/abc/things/x%20y', '/agents/{id}/things/{id}'],
  ['/0f0e5f0a-7b1c-4ee1-8c0a-000000000000', '/{id}'],
  [`/${'x'.repeat(48)}`, `/${'x'.repeat(48)}`],
  [`/${'x'.repeat(49)}`, '/{id}'],
  [`/${'A'.repeat(20)}`, '/{id}'],
  ['/4-7', '/{id}'],
  ['/v1', '/v1'],
  ['/a*b', '/{id}'],
])('guesses %s to be %s', (path, template) => {
  expect(guessTemplate(path)).toBe(template);
});

it('guesses no more segments than a row has', () => {
  expect(guessTemplate('/a'.repeat(60)).split('/')).toHaveLength(13);
});
