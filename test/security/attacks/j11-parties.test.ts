import { describe, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage({
  config: { auth: { issuer: 'https://shop.example', audience: ['frontend', 'app'] } },
});
const withToken = (token: string) => request('GET /orders', [`Authorization: Bearer ${token}`]);
const good = { iss: 'https://shop.example', aud: 'frontend' };

/** J11: the same key may sign tokens for other issuers and audiences. */
describe('J11: issuer and audience', () => {
  it.each([
    ...[
      { iss: undefined },
      { iss: 'https://shop.example/' },
      { iss: 'HTTPS://shop.example' },
      { iss: 'https://evil.example' },
    ],
    ...[
      { iss: ['https://shop.example'] },
      { iss: { a: 'https://shop.example' } },
      { iss: '' },
      { iss: null },
      { iss: 'https://shop.example ' },
    ],
    ...[
      { aud: undefined },
      { aud: 'backend' },
      { aud: [] },
      { aud: ['backend'] },
      { aud: 'frontend app' },
      { aud: 'Frontend' },
    ],
    ...[
      { aud: { frontend: true } },
      { aud: null },
      { aud: '' },
      { aud: [['frontend']] },
      { sub: undefined },
      { sub: '' },
    ],
  ])('401 for %j', async (claims) => {
    await stage.refuses(withToken(stage.shopward.issueToken({ ...good, ...claims })), 401, '001');
  });

  it.each([{}, { aud: 'app' }, { aud: ['x', 'frontend'] }])('%j passes', async (claims) => {
    await stage.passes(withToken(stage.shopward.issueToken({ ...good, ...claims })));
  });
});
