import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** J16: on an open route Authorization is forwarded unchanged; shopward reads no identity from it. */
it.each(['Bearer x.y.z', 'Bearer x', 'Basic dTpw', 'bearer   a', 'anything at all'])(
  'J16: Authorization: %s is forwarded unchanged',
  async (value) => {
    const { fields } = await stage.passes(request('GET /stores', [`Authorization: ${value}`]));
    expect(fields('authorization')).toEqual([value]);
  },
);

it.each(['X-User', 'X-Subject', 'X-Forwarded-User', 'X-Auth-Request-User', 'X-Authenticated-User'])(
  'J16: shopward sets no %s on a request with a token',
  async (name) => {
    const token = stage.shopward.issueToken();
    const { fields } = await stage.passes(request('GET /orders', [`Authorization: Bearer ${token}`]));
    expect(fields(name)).toEqual([]);
  },
);
