import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cartIds } from '../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { send } from '../demo/client.ts';
import { expectRejection, request } from '../harness/attack-stage.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

let shop: DemoShop;
let shopward: RunningShopward;
beforeAll(async () => {
  shop = await startDemoShop();
  shopward = await startShopwardHere({ upstream: shop.url });
});
beforeEach(() => {
  shop.reset();
  shop.received.clear();
});
afterAll(async () => {
  await shopward?.stop();
  await shop?.close();
});

const cart = `/carts/${cartIds.everyday}`;
const accept = 'Accept: */*';
const form = 'Content-Type: application/x-www-form-urlencoded';
const json = 'Content-Type: application/json';

/** Such as a shop does that honours the override; without a token it is not even asked. */
async function expectUntouched(): Promise<void> {
  expect(shop.received.total).toBe(0);
  expect((await send(shop, `GET ${cart}`, { headers: { accept: '*/*' } })).status).toBe(200);
}

/** P14: a POST that the upstream takes for a DELETE or PATCH. */
describe('P14: method override', () => {
  it('works on the bare shop, or these tests would prove nothing', async () => {
    const override = { accept: '*/*', 'x-http-method-override': 'DELETE' };
    expect((await send(shop, `POST ${cart}`, { headers: override })).status).toBe(204);
  });

  it.each(['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'x-http-method-override'])(
    'by the field %s is refused',
    async (name) => {
      for (const type of [json, form]) {
        const fields = [accept, type, `${name}: DELETE`];
        expectRejection(
          await exchangeRaw(shopward.port, request(`POST ${cart}`, fields)),
          400,
          'method-override',
        );
      }
      await expectUntouched();
    },
  );

  it.each([
    ...[
      '_method=DELETE',
      '_method=patch',
      '_method',
      'x=1&_method=DELETE',
      '%5Fmethod=DELETE',
      '%5f%6Dethod=DELETE',
    ],
    ...[
      '_method[]=DELETE',
      '_method%5B%5D=DELETE',
      '.method=DELETE',
      '%20_method=DELETE',
      '++_method=x',
      '%2Emethod=x',
    ],
    ...['_method%00x=DELETE', 'x;_method=DELETE', '[method=DELETE', '%5Bmethod=DELETE', '_method[=DELETE'],
  ])('by the query ?%s is refused', async (query) => {
    const answer = await exchangeRaw(shopward.port, request(`POST ${cart}?${query}`, [accept, json]));
    expectRejection(answer, 400, 'method-override');
    await expectUntouched();
  });

  it.each([
    ['application/x-www-form-urlencoded', '_method=DELETE'],
    ['APPLICATION/X-WWW-FORM-URLENCODED; charset=utf-8', '_method=DELETE'],
    ['application/x-www-form-urlencoded,text/plain', '_method=DELETE'],
    [
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Disposition: form-data; name="_method"\r\n\r\nDELETE\r\n--b--',
    ],
    ['', '_method=DELETE'],
  ])('by a body of type %j counts as every method of the path', async (type, body) => {
    const length = `Content-Length: ${body.length}`;
    const bytes = request(`POST ${cart}`, [accept, `Content-Type: ${type}`, length], body);
    expectRejection(await exchangeRaw(shopward.port, bytes), 401, '002');
    await expectUntouched();
  });

  it('in a body without a type counts too', async () => {
    const bytes = request(`POST ${cart}`, [accept, 'Content-Length: 14'], '_method=DELETE');
    expectRejection(await exchangeRaw(shopward.port, bytes), 401, '002');
    await expectUntouched();
  });

  it.each(['application/json', 'application/vnd.api+json', 'text/plain', 'application/xml'])(
    'in a body of type %s is none for the shop either',
    async (type) => {
      const fields = [accept, `Content-Type: ${type}`, 'Content-Length: 14'];
      const { status } = await exchangeRaw(
        shopward.port,
        request('POST /customers/x', fields, '_method=DELETE'),
      );
      expect(status).toBe(404);
      expect(shop.received.requests.map(({ effectiveMethod }) => effectiveMethod)).toEqual(['POST']);
      shop.received.clear();
      await expectUntouched();
    },
  );

  it('on any method but POST goes on without the field', async () => {
    const fields = [accept, 'X-HTTP-Method-Override: DELETE'];
    expect((await exchangeRaw(shopward.port, request('GET /stores', fields))).status).toBe(200);
    expectRejection(await exchangeRaw(shopward.port, request(`GET ${cart}`, fields)), 401, '002');
  });
});
