import { describe, expect, it } from 'vitest';
import type { Explanation } from '../../../src/cli/explain/explanation.ts';
import { runExplain } from '../../../src/cli/explain.ts';
import { keys, makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';

const list = `groups:
  Carts:
    - GET /carts
    - POST /carts
    - GET /carts/{cart_id}
    - PATCH /carts/{cart_id}
    - DELETE /carts/{cart_id}
    - POST /carts/{cart_id}/items
  Reports:
    - { match: "GET /reports/**", scopes: [analyst, reader] }
  Trial:
    - { match: "GET /wishlists", observe: true }
  Tokens:
    - DELETE /refresh-tokens/{refresh_token_id}
complete: true
`;

function explain(words: readonly string[], { config = '', header = [] as string[], asJson = false } = {}) {
  const cwd = makeFolder({
    'config/shopward.yaml': `${keys}\n${config}\nurlResolver: {}\n`,
    'config/protected-resources.yaml': list,
  });
  return runCommand((io) => runExplain(words, { header, json: asJson }, io), { cwd });
}

async function asData(
  text: string,
  options: { config?: string; header?: string[] } = {},
): Promise<Explanation> {
  const { out } = await explain([text], { ...options, asJson: true });
  return JSON.parse(out.join('\n'));
}

describe('explain reads what was pasted', () => {
  const cart = { method: 'PATCH', target: '/carts/17?a=1&b=2', host: 'localhost' };
  const shop = { ...cart, host: 'api.shop.example' };
  it.each([
    ['PATCH /carts/17?a=1&b=2', cart],
    ['patch /carts/17?a=1&b=2', cart],
    ['"PATCH /carts/17?a=1&b=2 HTTP/1.1"', cart],
    ['PATCH /carts/17?a=1&b=2 HTTP/1.1', cart],
    ['10.0.0.1 - - [21/Nov/2026:10:00:00 +0000] "PATCH /carts/17?a=1&b=2 HTTP/2.0" 401 71 "-" "curl"', cart],
    ['PATCH https://api.shop.example/carts/17?a=1&b=2', shop],
    ['PATCH https://user:word@api.shop.example/carts/17?a=1&b=2#top', shop],
    ['/carts/17?a=1&b=2', { ...cart, method: 'GET' }],
    ['{"event":"request","method":"PATCH","path":"/carts/17?a=1&b=2","status":428}', cart],
    ['shopward-1  | {"requestId":"x","method":"PATCH","path":"/carts/17?a=1&b=2"}', cart],
    [`curl -sX PATCH 'https://api.shop.example/carts/17?a=1&b=2' -H 'Authorization: Bearer x'`, shop],
    [`$ curl "https://api.shop.example/carts/17?a=1&b=2" --request=PATCH --data '{}'`, shop],
    [`curl -sd '{}' 'https://api.shop.example/carts/17?a=1&b=2'`, { ...shop, method: 'POST' }],
    [`curl -sI https://api.shop.example/carts/17?a=1\\&b=2`, { ...shop, method: 'HEAD' }],
    ['GET /x?f={"method":"PATCH"}', { method: 'GET', target: '/x?f={"method":"PATCH"}', host: 'localhost' }],
    ['GET https://api.shop.example', { method: 'GET', target: '/', host: 'api.shop.example' }],
  ])('%s', async (text, request) => {
    expect((await asData(text)).request).toEqual(request);
  });

  it('says how the text was read', async () => {
    const { out } = await explain(['https://api.shop.example/carts']);
    expect(out.filter((line) => line.startsWith('  as pasted'))).toEqual([
      '  as pasted       no method: GET is explained',
    ]);
  });

  it('a curl command whose quotes the shell removed', async () => {
    const words = ['curl', '-X', 'PATCH', 'https://s/carts/17?a=1&b=2', '-H', 'If-Match: "it\'s"'];
    const { out } = await explain(words, { asJson: true });
    expect(JSON.parse(out.join('')).request).toEqual({ ...cart, host: 's' });
  });
});

describe('explain names the rows', () => {
  it.each([
    ['GET /carts/17', [['GET /carts/{cart_id}', 5, true]], []],
    ['HEAD /carts/17', [['GET /carts/{cart_id}', 5, true]], []],
    ['GET /CARTS//17/', [['GET /carts/{cart_id}', 5, false]], []],
    ['GET /reports/a/b', [['GET /reports/**', 10, true]], ['analyst', 'reader']],
  ])('%s', async (text, rows, scopes) => {
    const explanation = await asData(text);
    expect(explanation.verdict).toBe('protected');
    expect(explanation.rows.map(({ row, line, exact }) => [row, line, exact])).toEqual(rows);
    expect(explanation.token).toMatchObject({ needed: true, scopes, observed: false });
  });

  it('with the statuses of this configuration, and the observe mode of a row and of the proxy', async () => {
    const config = 'rejections: { access-token-missing: { status: 403 } }';
    const { token } = await asData('GET /carts', { config });
    expect([token.missing?.status, token.missing?.code, token.invalid?.status]).toEqual([403, '002', 401]);
    expect((await asData('GET /wishlists')).token.observed).toBe(true);
    expect((await asData('GET /carts', { config: 'mode: observe' })).token.observed).toBe(true);
  });
});

it.each([
  ['PUT /carts/17', ['the method differs: the list has GET, POST, PATCH, DELETE for this path']],
  ['OPTIONS /carts', ['OPTIONS is never authenticated']],
  ['GET /nothing/like/it', []],
])('explain says why %s is open', async (text, reasons) => {
  const { verdict, whyNot, token } = await asData(text);
  expect([verdict, token.needed, whyNot]).toEqual(['open', false, reasons]);
});

describe('explain tells of entity tags, refresh tokens and own endpoints', () => {
  it.each([
    ['GET /carts/17', 'read', 'member'],
    ['PATCH /carts/17', 'precondition', 'member'],
    ['PUT /carts/17', 'write', 'member'],
    ['POST /carts', 'creation', 'collection'],
    ['POST /carts/17/items', 'child-write', 'below'],
    ['DELETE /Carts/17', 'lenient-spelling', undefined],
    ['DELETE /carts/17/refresh-tokens/x', 'lenient-spelling', undefined],
    ['GET /orders', undefined, undefined],
  ])('%s: %s', async (text, rule, role) => {
    const { entityTags, forward } = await asData(text);
    expect([entityTags?.rule, entityTags?.resource?.role]).toEqual([rule, role]);
    expect(forward === null).toBe(rule === 'lenient-spelling');
  });

  it.each([
    ['POST /carts', 'batch'],
    ['PATCH /carts', 'batch'],
    ['PUT /carts', 'collection-write'],
  ])('%s of a guarded collection: %s', async (text, rule) => {
    const resource = "{ collection: /carts, member: '/carts/{id}', batch: guarded }";
    const { entityTags } = await asData(text, { config: `entityTags: { resources: [${resource}] }` });
    expect(entityTags?.rule).toBe(rule);
  });

  it('the ifMatch mode and the statuses of the precondition', async () => {
    const config =
      'entityTags: { resources: [{ collection: /carts, member: "/carts/{cart_id}", ifMatch: lenient }] }';
    expect((await asData('PATCH /carts/17', { config })).entityTags).toMatchObject({
      resource: { ifMatch: 'lenient', methods: ['PATCH', 'DELETE'] },
      text: expect.stringContaining('428 code 005 without, 412 code 006 with another'),
    });
    expect((await asData('PATCH /carts/17', { config: 'entityTags: false' })).entityTags).toBeNull();
  });

  it('a form, whatever its method, counts as every method', async () => {
    const form = { header: ['Content-Type: application/x-www-form-urlencoded'] };
    const { rows, entityTags } = await asData('POST /carts/17', form);
    expect(rows.map(({ row, reading }) => `${row} ${reading}`)).toEqual([
      ...['GET', 'PATCH', 'DELETE'].map((method) => `${method} /carts/{cart_id} method-override`),
      'POST /carts item-form',
    ]);
    expect(entityTags?.rule).toBe('precondition');
    const put = await asData('PUT /carts/17', form);
    expect(put.rows.map(({ row }) => row)).toContain('DELETE /carts/{cart_id}');
  });

  it.each([
    ['POST /access-tokens', ['issue']],
    ['POST /refresh-tokens', ['exchange']],
    ['POST /token', ['issue', 'exchange']],
    ['DELETE /refresh-tokens/mine', ['revoke']],
    ['GET /refresh-tokens', []],
  ])('%s', async (text, kinds) => {
    expect((await asData(text)).refreshTokens).toEqual(kinds);
  });

  it('a revocation that no row protects revokes nothing, and says so', async () => {
    const texts = (explanation: Explanation) => explanation.filters.map(({ text }) => text);
    expect(texts(await asData('DELETE /refresh-tokens/mine'))).toEqual([
      "revokes the user's own refresh token",
    ]);
    const config =
      'refreshTokens: { endpoints: [{ kind: revoke, method: DELETE, path: "/sessions/{token}" }] }';
    const [text] = texts(await asData('DELETE /sessions/mine', { config }));
    expect(text).toMatch(/^revokes nothing: no row asks for a token/);
  });

  it.each([
    ['GET /url-resolver?url=/en/x', 'url-resolver'],
    ['GET /protected-resources', 'protected-resources'],
    ['GET /.well-known/oauth-protected-resource', 'resource-metadata'],
    ['POST /url-resolver', null],
  ])('%s', async (text, own) => {
    const { ownEndpoint, verdict } = await asData(text);
    expect([ownEndpoint, verdict]).toEqual([own, own === null ? 'open' : 'own-endpoint']);
  });
});

describe('explain prints', () => {
  it('one fact per line', async () => {
    expect(await explain(['PATCH', '/carts/17?include=items'])).toEqual({
      code: 0,
      out: [
        'PATCH /carts/17?include=items',
        '  protected       needs a valid access token; 401 code 002 without, 401 code 001 with a bad one',
        '  row             PATCH /carts/{cart_id} (config/protected-resources.yaml:6), group Carts',
        '  entity tag      a change of /carts/{cart_id}: If-Match must be its current ETag (ifMatch: strict); 428 code 005 without, 412 code 006 with another',
        '  forwarded       PATCH /carts/17?include=items to http://127.0.0.1:9000',
      ],
      err: [],
    });
  });

  it('the target at the upstream if upstream.url has a path', async () => {
    const config = 'upstream: { url: "http://shop:9000/api/v2/" }';
    expect((await explain(['GET /orders?a=1'], { config })).out).toContain(
      '  forwarded       GET /api/v2/orders?a=1 to http://shop:9000',
    );
    const { canonicalPath, rows } = await asData('GET /carts', { config });
    expect([canonicalPath, rows[0]?.row]).toEqual(['/carts', 'GET /carts']);
  });

  it('the limits of a route', async () => {
    const config = 'limits: { routes: [{ path: "/uploads/**", requestBody: 5MiB }] }';
    expect((await explain(['POST /uploads/1'], { config })).out).toContain(
      '  limits          5242880 bytes of body, 60000 ms for the shop',
    );
    expect((await asData('POST /uploads/1')).limits).toBeNull();
  });

  it('a refusal with its reason', async () => {
    expect((await explain(['POST /x?_method=DELETE'])).out).toEqual([
      'POST /x?_method=DELETE',
      '  refused         400 code method-override: Method override is not accepted.',
      '  see             docs/reasons.md#method-override',
      '  forwarded       no: the upstream is not asked',
    ]);
  });

  it('JSON with every key, including those that do not apply', async () => {
    expect(
      Object.keys(await asData('GET /nothing'))
        .sort()
        .join(' '),
    ).toBe(
      'canonicalPath entityTags filters forward limits notes observed ownEndpoint record refreshTokens refusal ' +
        'request rows token verdict whyNot',
    );
  });

  it.each([
    [['GET'], [] as string[]],
    [[''], []],
    [['GET /x'], ['no colon']],
  ])('an error for bad usage, with exit code 2: %j %j', async (words, header) => {
    const { code, err } = await explain(words, { header });
    expect(code).toBe(2);
    expect(err).toHaveLength(1);
  });

  it('the problems of the configuration, with exit code 78', async () => {
    const { code, out, err } = await explain(['GET /x'], { config: 'mode: x' });
    const problem = 'config/shopward.yaml:2:7: error: mode must be one of enforce, observe';
    expect({ code, out, err }).toEqual({ code: 78, out: [''], err: [problem] });
  });
});
