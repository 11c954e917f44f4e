import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

describe('P21: profile plain', () => {
  const resource = { collection: '/store/carts', member: '/store/carts/{id}', methods: ['PATCH', 'DELETE'] };
  const stage = useAttackStage({
    rows: [
      { match: 'GET /store/orders/{id}', scopes: ['orders'] },
      'GET /store/orders/{id}/items/{item}',
      'GET /me',
      'ANY /admin/**',
      'GET /api/orders.php',
    ],
    config: { request: { profile: 'plain' }, entityTags: { resources: [resource] } },
  });
  const token = () => `Authorization: Bearer ${stage.shopward.issueToken()}`;

  it.each([
    ...[
      'POST /store/carts/1/line-items/2',
      'DELETE /store/carts/1/line-items/2',
      'PATCH /store/carts/1/items/2/x/3',
    ],
    ...['POST /store/carts/1/a/b/c/d', 'GET /store/carts/1/line-items/2'],
  ])('%s passes: a path below a tracked member is no member itself', async (line) => {
    await stage.passes(request(line));
  });

  it('the scopes of a row do not apply to a longer path', async () => {
    await stage.passes(request('GET /store/orders/5/items/7', [token()]));
    await stage.refuses(request('GET /store/orders/5', [token()]), 403, 'insufficient-scope');
  });

  it.each([
    ...[
      'GET /ME',
      'GET /%6de',
      'GET //me',
      'GET /me/',
      'GET /me;x=1',
      'GET /me.',
      'GET /;/me',
      'GET /store/orders/5;x',
      'GET /me;/x/y',
      'GET /api/orders.php/x',
      'GET /api/orders.PHP/x/y/z',
      'GET /index.php/api/orders%2ephp//x;/y',
      'GET /store/orders/5;/x/y/z',
      'GET /index.php/me',
      'GET /INDEX.PHPme/',
      'GET //index.php/store/orders/5',
    ],
    ...['GET /Admin', 'GET /admin/a/b', 'HEAD /me', 'GET //admin//x'],
  ])('401 for %s, a spelling of a row', async (line) => {
    await stage.demandsToken(request(line));
  });

  it.each(['GET /x/y/me', 'GET /v1/me', 'GET /app.php/me', 'GET /me/17', 'GET /me.csv', 'GET /a/admin/x'])(
    '%s passes: it matches no row',
    async (line) => {
      await stage.passes(request(line));
    },
  );

  it('428 for a change of the tracked member without If-Match', async () => {
    const line = ['PATCH /store/carts/1', 'DELETE /store/carts/1'];
    for (const one of line) await stage.refuses(request(one, ['Content-Length: 0']), 428, '005');
  });
});

describe('P21: a key overrides its profile', () => {
  const stage = useAttackStage({
    rows: ['GET /me'],
    config: { request: { profile: 'plain', lastPair: true, formatSuffixes: ['json'] } },
  });
  it.each(['GET /x/y/me', 'GET /me.json'])('%s needs a token', async (line) => {
    await stage.demandsToken(request(line));
  });
  it('GET /v1/me passes: the profile still ignores no version', async () => {
    const { requestLine } = await stage.passes(request('GET /v1/me'));
    expect(requestLine).toBe('GET /v1/me HTTP/1.1');
  });
});
