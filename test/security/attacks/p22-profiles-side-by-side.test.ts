import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';

/** The answer without a profile, with `spryker` and with `plain`: t = 401 (needs a token), n = passes, r = refused. */
const shapes: readonly (readonly [line: string, needs: string])[] = [
  ['GET /orders.jsonapi', 'ttn'],
  ['GET /orders.CSV', 'ttn'],
  ['GET /orders%2ejsonld', 'ttn'],
  ['GET /orders.json', 'nnn'],
  ['GET /orders.csv.csv', 'ttn'],
  ['GET /orders.csv.x', 'nnn'],
  ['GET /orders;/x/y', 'ttt'],
  ['POST /orders/1;/x/y', 'ttt'],
  ['POST /orders;/x/y', 'nnn'],
  ['GET /orders.csv;v=1', 'ttn'],
  ['GET /orders/1.jsonapi/', 'ttt'],
  ['GET /orders/.jsonapi', 'ttt'],
  ['GET /v1/orders', 'ttn'],
  ['GET /1.0/orders.xml', 'ttn'],
  ['GET /index.php/orders', 'ttt'],
  ['GET /index.php/v1/orders.csv', 'ttn'],
  ['GET /index.phporders.csv', 'ttn'],
  ['GET /x/1/orders/2', 'ttn'],
  ['GET /x/1/orders', 'ttn'],
  ['GET /orders/1/items/2', 'nnn'],
  ['GET /orders/1/order-items/2.csv', 'ttt'],
  ['GET /orders/1/x/y/order-items/2', 'ttn'],
  ['GET /orders;a=b/1', 'ttt'],
  ['GET /%6fRDERS', 'ttt'],
  ['GET //orders//', 'ttt'],
  ['GET /orders/1//', 'ttt'],
  ['HEAD /orders/1', 'ttt'],
  ['GET /orders/../orders', 'rrr'],
  ['GET /orders%2f1', 'rrr'],
  ['GET /orders%00', 'rrr'],
  ['GET /orders\\1', 'rrr'],
  ['GET http://shop.example/orders', 'ttt'],
  ['GET http://other.example/orders', 'rrr'],
  ['GET /admin/x.csv', 'ttt'],
  ['GET /admin.csv', 'ttn'],
  ['DELETE /a/admin/x', 'ttn'],
  ['POST /orders/1', 'ttt'],
  ['POST /orders/1?x-tunneled-method=DELETE', 'ttt'],
  ['POST /orders', 'nnn'],
  ['POST /orders.csv', 'nnn'],
  ['POST /orders/1.jsonapi', 'ttt'],
  ['POST /v2/orders/1', 'ttn'],
  ['POST /x/1/orders/2', 'ttn'],
  ['PROPFIND /orders', 'rrr'],
];

describe.each([
  ['no profile', {}],
  ['spryker', { request: { profile: 'spryker' } }],
  ['plain', { request: { profile: 'plain' } }],
])('P22: %s', (name, config) => {
  const stage = useAttackStage({
    rows: [
      'GET /orders',
      'GET /orders/{id}',
      'DELETE /orders/{id}',
      'GET /orders/{id}/order-items/{item}',
      'ANY /admin/**',
    ],
    config,
  });
  const column = ['no profile', 'spryker', 'plain'].indexOf(name);
  it.each(shapes)('%s: %s, in the order none, spryker, plain', async (line, needs) => {
    const before = stage.upstream.requestLines.length;
    const method = line.split(' ', 1)[0];
    const bytes = request(line, ['Content-Type: application/json']);
    const { status } = await exchangeRaw(stage.port, bytes, method);
    const isForwarded = stage.upstream.requestLines.length > before;
    const said = isForwarded ? 'n' : status === 401 ? 't' : 'r';
    expect(`${said} ${status}`).toMatch(new RegExp(`^${needs[column]}`));
  });
});
