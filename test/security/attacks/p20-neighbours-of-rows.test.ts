import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { contractCalls } from '../../end-to-end/demo/contract-calls.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { createKeptClient, type KeptClient } from '../../harness/kept-client.ts';

const json = ['Content-Type: application/json'];

/** Spellings that some upstream reads as the path. Each must be answered 400 or 401 without a token. */
const spellings: readonly ((path: string) => string)[] = [
  (path) => path,
  (path) => `${path}/`,
  (path) => `${path}//`,
  (path) => `/${path}`,
  (path) => path.replaceAll('/', '//'),
  (path) => `${path}/.`,
  (path) => `${path}/..`,
  (path) => `/.${path}`,
  (path) => `/x/..${path}`,
  (path) => `/x/%2e%2e${path}`,
  (path) => `/x/%252e%252e${path}`,
  (path) => `/x/..;${path}`,
  (path) => `/x/..%2f${path.slice(1)}`,
  (path) => path.toUpperCase(),
  (path) => `${path};a=b`,
  (path) => path.replace(/^\/[^/]+/, '$&;a=b'),
  (path) => `/;a${path}`,
  (path) => `${path}.`,
  (path) => `${path}%20`,
  (path) => `${path}%00`,
  (path) => `${path}%0a`,
  (path) => `${path}%c0%80`,
  (path) => `${path}#`,
  (path) => `${path}%23`,
  (path) => `${path}?`,
  (path) => `${path}??x#y`,
  (path) => `${path}%3f`,
  (path) => `${path}\\`,
  (path) => path.replaceAll('/', '\\'),
  (path) => `/\\${path}`,
  (path) => path.replaceAll('/', '%2f'),
  (path) => path.replaceAll('/', '%5c'),
  (path) => `/index.php${path}`,
  (path) => `/INDEX.php/${path}`,
  (path) => `/v0${path}`,
  (path) => `/v0.42${path}/`,
  (path) => `/1${path}`,
  (path) => `/index.phpv0${path}`,
  (path) => `/V1.0;x/${path}`,
  (path) => `/x/y${path}`,
  (path) => `/a/b/c/d${path}`,
  (path) => `http://shop.example${path}`,
  (path) => `http://evil.example${path}`,
  (path) => `//evil.example${path.split('/').length > 2 ? path : `/y${path}`}`,
];

describe('P20: requests without a token', () => {
  const stage = useAttackStage();
  let client: KeptClient;
  beforeAll(() => {
    client = createKeptClient(stage.port);
  });
  afterAll(() => client?.close());

  it.each(contractCalls)('400 or 401 for each spelling of $row', async ({ method, path }) => {
    const before = stage.upstream.bytes();
    const passed: string[] = [];
    for (const spell of spellings) {
      for (const verb of method === 'GET' ? ['GET', 'HEAD'] : [method]) {
        const { status } = await client.exchange(request(`${verb} ${spell(path)}`, json));
        if (status !== 400 && status !== 401) passed.push(`${status} ${spell(path)}`);
      }
    }
    expect(passed).toEqual([]);
    expect(stage.upstream.bytes()).toBe(before);
  });

  const named = contractCalls.filter(({ row }) => !row.endsWith('}'));
  it.each(named)('401 for $row with an id after it', async ({ method, path }) => {
    for (const behind of ['/x', '/x/', '/x.html', '//x']) {
      await stage.demandsToken(request(`${method} ${path}${behind}`, json));
      await stage.demandsToken(request(`${method} /v0${path}${behind}`, json));
    }
  });

  it.each([
    ...[
      'GET /orders-history',
      'GET /order',
      'GET /orders1',
      'GET /xorders',
      'GET /cartss/1',
      'GET /customer-passwords/1',
    ],
    ...[
      'POST /orders',
      'DELETE /orders/1',
      'PUT /carts/1',
      'GET /abstract-products/1',
      'GET /stores/orders',
      'GET /wishlists-x',
    ],
  ])('%s passes: another resource or method', async (line) => {
    await stage.passes(request(line, json));
  });
});

describe('P20: rows that overlap all apply, in either order', () => {
  const rows = [
    'GET /reports/{id}',
    { match: 'GET /reports/**', scopes: ['analyst'] },
    { match: 'ANY /reports/{id}/secret', scopes: ['admin'], observe: true },
    { match: 'ANY /reports/{id}/{part}', scopes: ['auditor'] },
  ];

  describe.each([
    ['in this order', rows],
    ['backwards', rows.toReversed()],
  ])('%s', (_, ordered) => {
    const stage = useAttackStage({ rows: ordered });
    const as = (line: string, ...scopes: string[]) =>
      request(line, [...json, `Authorization: Bearer ${stage.shopward.issueToken({ scopes })}`]);

    it('a request needs the scopes of all rows that match', async () => {
      await stage.refuses(as('GET /reports/1'), 403, 'insufficient-scope');
      await stage.passes(as('GET /reports/1', 'analyst'));
      await stage.refuses(as('GET /reports/1/x', 'analyst'), 403, 'insufficient-scope');
      await stage.passes(as('GET /reports/1/x', 'analyst', 'auditor'));
      await stage.refuses(as('GET /reports/1/secret', 'analyst', 'auditor'), 403, 'insufficient-scope');
      await stage.passes(as('GET /reports/1/secret', 'analyst', 'auditor', 'admin'));
    });

    it('401 without a token where an observing row and an enforcing one match', async () => {
      await stage.demandsToken(request('GET /reports/1/secret'));
      await stage.demandsToken(request('DELETE /reports/1/secret'));
    });
  });
});
