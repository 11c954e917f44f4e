import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { createKeptClient } from '../../harness/kept-client.ts';

const form = 'Content-Type: application/x-www-form-urlencoded';
const json = 'Content-Type: application/json';

/** Ways to ask for DELETE in a POST, each with a server that reads it. The proxy refuses them without a list of names. */
const tunnels: readonly (readonly [what: string, query: string, fields: readonly string[], body: string])[] =
  [
    ['Plack, query', '?x-tunneled-method=DELETE', [json], '{}'],
    ['Plack, query in mixed case', '?X-Tunneled-Method=Delete', [json], '{}'],
    ['Plack, field', '', [json, 'X-HTTP-Method: DELETE', 'X-Tunneled-Method: DELETE'], '{}'],
    ['Restlet, query', '?method=DELETE', [json], '{}'],
    ['Restlet, escaped query', '?%6dethod=DELETE', [json], '{}'],
    ['Laravel, JSON', '', [json], '{"_method":"DELETE"}'],
    ['Laravel, JSON:API', '', ['Content-Type: application/vnd.api+json'], '{"_method":"delete"}'],
    ['Laravel, JSON escape', '', [json], '{"\\u005fmethod":"DELETE"}'],
    ['Rails, form', '', [form], '_method=delete'],
    ['Symfony, form', '', ['Content-Type: application/X-WWW-FORM-URLENCODED;x'], '%5Fmethod=DELETE'],
    [
      'Symfony, multipart',
      '',
      ['Content-Type: Multipart/Form-Data; boundary=b'],
      '--b\r\nContent-Disposition: form-data; name="_method"\r\n\r\nDELETE\r\n--b--',
    ],
    ['Slim, text', '', ['Content-Type: text/plain'], '_METHOD=DELETE'],
    ['Express method-override, field of its own', '', [json, 'X-Method: DELETE'], '{}'],
    ['SharePoint, field', '', [json, 'X-RequestDigest: 1', 'X-Verb-Tunnel: DELETE'], '{}'],
    ['XML', '', ['Content-Type: application/xml'], '<_method>DELETE</_method>'],
  ];

const members = [
  ...'/customers/DE--1 /CUSTOMERS/DE--1 //customers//DE--1/ /customers;x/DE--1'.split(' '),
  ...'/%63ustomers/DE--1 /index.php/customers/DE--1 /v1/customers/DE--1.jsonapi'.split(' '),
  ...'/x/y/customers/DE--1 /customers/DE--1/addresses/2 /shared-carts/3'.split(' '),
  ...['/customer-password/4', '/customers/DE--1;/x/y'],
];

describe('P14: a POST without a token on a path with a protected PATCH, PUT or DELETE', () => {
  const stage = useAttackStage();
  it.each(tunnels)('400 or 401 for an override by %s', async (_, query, fields, body) => {
    const client = createKeptClient(stage.port);
    for (const path of members) {
      const bytes = request(`POST ${path}${query}`, [...fields, `Content-Length: ${body.length}`], body);
      const { status } = await client.exchange(bytes);
      expect({ path, status: status === 400 ? 401 : status }).toEqual({ path, status: 401 });
    }
    client.close();
    expect(stage.upstream.requestLines.filter((line) => line.startsWith('POST'))).toEqual([]);
  });

  it.each([
    ...['POST /customers', 'POST /access-tokens', 'POST /refresh-tokens', 'POST /token'],
    ...['POST /guest-carts/1/guest-cart-items', 'POST /checkout', 'POST /customer-forgotten-password'],
    ...['PATCH /customer-restore-password/1', 'POST /customer-confirmation', 'POST /checkout-data'],
    ...['POST /order-payments', 'POST /availability-notifications', 'DELETE /availability-notifications/1'],
    ...['GET /abstract-products/1', 'GET /catalog-search', 'GET /stores'],
  ])('%s passes without a token', async (line) => {
    await stage.passes(request(line, line.startsWith('GET') ? [] : [json, 'Content-Length: 0']));
  });
});

const trackedMembers = [
  ...['/carts/1', '/%63arts/1', '/carts/1.jsonapi', '/CARTS/1', '/Carts/1', '/carts/1/', '/carts/1//'],
  ...['//carts/1', '/carts/1;x', '/carts;x/1', '/index.php/carts/1', '/v1/carts/1', '/x/y/carts/1'],
  ...['/carts/2/carts/1', '/carts/items', '/carts/2/x/carts/1'],
];

describe('P14: a POST to a tracked member, which the shop may execute as a PATCH or DELETE', () => {
  const stage = useAttackStage({ config: { request: { formatSuffixes: ['jsonapi'] } } });
  const withToken = (fields: readonly string[], body: string) => [
    ...fields,
    `Content-Length: ${body.length}`,
    `Authorization: Bearer ${stage.shopward.issueToken()}`,
  ];

  it.each([...tunnels, ['no known override', '', [json], '{"a":1}'] as const])(
    '%s: 428 without a tag, 412 with an old one',
    async (_, query, fields, body) => {
      const client = createKeptClient(stage.port);
      for (const path of trackedMembers) {
        const post = (more: readonly string[]) =>
          client.exchange(request(`POST ${path}${query}`, withToken([...fields, ...more], body), body));
        const without = (await post([])).status;
        expect({ path, without }).toEqual({ path, without: without === 400 ? 400 : 428 });
        const { status } = await post([`If-Match: "${'a'.repeat(32)}"`]);
        expect({ path, status }).toEqual({ path, status: without === 400 ? 400 : 412 });
      }
      client.close();
      expect(stage.upstream.requestLines.filter((line) => line.startsWith('POST'))).toEqual([]);
    },
  );

  it.each([...['/carts', '/carts/1/items', '/carts/1/vouchers', '/wishlists/1', '/returns']])(
    'POST %s passes without a tag',
    async (path) => {
      await stage.passes(request(`POST ${path}`, withToken([json], '{}'), '{}'));
    },
  );
});

describe('P14: the scopes that a POST needs', () => {
  const stage = useAttackStage({
    rows: [
      { match: 'DELETE /notes/{id}', scopes: ['delete'] },
      { match: 'PUT /notes/{id}', scopes: ['write'] },
      { match: 'DELETE /forms/{id}', scopes: ['delete'] },
      { match: 'POST /forms/{id}', open: true },
      { match: 'POST /drafts', scopes: ['create'] },
      { match: 'DELETE /drafts/{id}', scopes: ['delete'] },
      { match: 'POST /tries/{id}', observe: true },
      'DELETE /tries/{id}',
      'GET /reports/{id}',
    ],
  });
  const as = (line: string, ...scopes: string[]) =>
    request(line, [
      json,
      'Content-Length: 0',
      `Authorization: Bearer ${stage.shopward.issueToken({ scopes })}`,
    ]);

  it('a POST needs the scopes of every row that an override could reach', async () => {
    await stage.refuses(as('POST /notes/1', 'delete'), 403, 'insufficient-scope');
    await stage.passes(as('POST /notes/1', 'delete', 'write'));
  });
  it('a row for POST /drafts does not lower the scopes for POST /drafts/1', async () => {
    await stage.refuses(as('POST /drafts/1', 'create'), 403, 'insufficient-scope');
    await stage.passes(as('POST /drafts/1', 'create', 'delete'));
    await stage.passes(as('POST /drafts', 'create'));
  });
  it('a POST row that only observes opens nothing', async () => {
    await stage.demandsToken(request('POST /tries/1', [json]));
  });
  it('`open: true` opens the exact path for JSON and forms, but no other spelling of it', async () => {
    for (const type of [json, form])
      await stage.passes(request('POST /forms/1', [type, 'Content-Length: 0']));
    for (const path of ['/FORMS/1', '/forms/1/', '/forms//1', '/forms;a/1', '/x/y/forms/1', '/v1/forms/1'])
      await stage.demandsToken(request(`POST ${path}`, [json]));
    await stage.demandsToken(request('DELETE /forms/1'));
  });
  it('a POST passes without a token where only a GET row covers the path', async () => {
    await stage.passes(request('POST /reports/1', [json, 'Content-Length: 0']));
  });
});

describe('P14: a POST row does not weaken the DELETE row of another reading of the path', () => {
  const stage = useAttackStage({
    rows: [
      { match: 'POST /opened/{id}', open: true },
      { match: 'POST /weaker/{id}', scopes: ['write'] },
      { match: 'POST /shops/{id}', credentials: 'shop' },
      { match: 'POST /{locale}/notes', scopes: ['write'] },
      { match: 'POST /{locale}/forms', open: true },
      ...['opened', 'weaker', 'shops'].flatMap((name) => [
        { match: `DELETE /${name}/{id}`, scopes: ['delete'] },
        { match: `DELETE /${name}/{id}/parts/{part}`, scopes: ['delete'] },
      ]),
      { match: 'DELETE /weaker/{id}/all/**', scopes: ['delete'] },
      { match: 'DELETE /notes', scopes: ['delete'] },
      { match: 'DELETE /forms', scopes: ['delete'] },
      // Without the locale, the endings of these paths match, too.
      { match: 'POST /{locale}/drafts/{id}', scopes: ['write'] },
      { match: 'DELETE /drafts/{id}', scopes: ['delete'] },
      { match: 'POST /{locale}/tries/**', open: true },
      { match: 'DELETE /tries/{id}', scopes: ['delete'] },
      { match: 'DELETE /tries/{id}/parts/**', scopes: ['delete'] },
    ],
    config: {
      request: { encodedSlash: ['/opened/{id}', '/weaker/{id}', '/shops/{id}'], formatSuffixes: ['jsonapi'] },
      auth: { sessionCookies: ['SESSION'] },
    },
  });
  const post = (path: string, field: string) => request(`POST ${path}`, [json, field, 'Content-Length: 0']);
  const write = () => `Authorization: Bearer ${stage.shopward.issueToken({ scopes: ['write'] })}`;
  const cookie = 'Cookie: SESSION=1';

  it('401 or 403 when an encoded slash, read as a slash, leads to another row', async () => {
    await stage.refuses(post('/opened/1%2Fparts%2F2', cookie), 401, '002');
    await stage.refuses(post('/shops/1%2Fparts%2F2', cookie), 401, '002');
    for (const path of ['/weaker/1%2Fparts%2F2', '/weaker/1%2Fall%2F2%2F3'])
      await stage.refuses(post(path, write()), 403, 'insufficient-scope');
    await stage.passes(post('/opened/1%2F2', cookie));
    await stage.passes(post('/shops/1%2F2', cookie));
    await stage.passes(post('/weaker/1%2F2', write()));
  });

  it('401 or 403 when the first segment is a prefix or a version', async () => {
    for (const id of ['index.php', 'v1']) await stage.refuses(post(`/${id}/forms`, cookie), 401, '002');
    await stage.refuses(post('/index.php/notes', write()), 403, 'insufficient-scope');
    await stage.passes(post('/de/forms', cookie));
    await stage.passes(post('/de/notes', write()));
  });

  it('401 or 403 behind one or two prefixes or versions', async () => {
    for (const start of ['/index.php', '/v1', '//index.php', '/index.php/v1', '/v1/index.php', '/v1/']) {
      for (const end of ['tries/1', 'tries/1/parts/2'])
        await stage.demandsToken(post(`${start}/${end}`, cookie));
      await stage.refuses(post(`${start}/drafts/1`, write()), 403, 'insufficient-scope');
    }
    await stage.passes(post('/de/tries/1', cookie));
    await stage.passes(post('/de/tries/1/parts/2', cookie));
    await stage.passes(post('/de/drafts/1', write()));
  });

  it('a format suffix passes as the same path without it does', async () => {
    await stage.passes(post('/opened/1.jsonapi', cookie));
    await stage.passes(post('/weaker/1.jsonapi', write()));
    await stage.passes(post('/de/drafts/1.jsonapi', write()));
  });
});
