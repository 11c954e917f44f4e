import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage({ secrets: ['c4nary'] });

/** H11: PHP reads `_`, `.` and `-` in a name as the same. oauth2-proxy CVE-2025-64484, Traefik CVE-2026-39858. */
it.each([
  ...[
    'X_Forwarded_For',
    'X.Forwarded.For',
    'X_Forwarded-For',
    'x_request_id',
    'X_Anonymous_Customer_Unique_Id',
    'If_Match',
  ],
  ...[
    'Content_Length',
    'Transfer_Encoding',
    'Content_Type',
    'X_HTTP_Method_Override',
    'X.HTTP.Method.Override',
    'Store_',
  ],
  ...["X-User'", 'X-User!', 'X~User', 'X|User', '_', '__proto__', 'X+User', '*', '$x', '`', '^'],
])('H11: %s is removed', async (name) => {
  const { head } = await stage.passes(request('GET /stores', [`${name}: evil`, 'X-Kept: yes']));
  expect(head).not.toContain('evil');
  expect(head).toContain('X-Kept: yes');
});

it.each(['X(User', 'X User', 'X@User', 'X"User', 'X/User', 'X{User', 'X\xe9', '', 'X\0User'])(
  'H11: 400 for %j, which is not a field name',
  async (name) => {
    await stage.refuses(request('GET /stores', [`${name}: evil`]), 400, 'bad-request');
  },
);

it.each(['constructor', 'prototype', 'hasOwnProperty', 'toString', 'valueOf'])(
  'H11: the field %s is forwarded',
  async (name) => {
    expect((await stage.passes(request('GET /stores', [`${name}: yes`]))).fields(name)).toEqual(['yes']);
  },
);

it('H11: the id of a guest is forwarded, and is in no log', async () => {
  const { fields } = await stage.passes(
    request('GET /guest-carts', ['X-Anonymous-Customer-Unique-Id: c4nary-guest']),
  );
  expect(fields('x-anonymous-customer-unique-id')).toEqual(['c4nary-guest']);
});
