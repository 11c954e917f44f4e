import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { shoppingListIds, shoppingListItemIds, wishlistIds } from '../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { resource, send } from './client.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop();
});
beforeEach(() => shop.reset());
afterAll(() => shop.close());

const weekly = `/shopping-lists/${shoppingListIds.weekly}`;
const { paper, stapler } = shoppingListItemIds;

async function itemsOf(list: string): Promise<[string, number][]> {
  const { included = [] } = (await send(shop, `GET ${list}?include=shopping-list-items`)).json;
  return included.map((item: { id: string; attributes: { quantity: number } }) => [
    item.id,
    item.attributes.quantity,
  ]);
}

describe('items of a shopping list', () => {
  const type = 'shopping-list-items';

  it.each([
    ['in the path', `/${paper}`, resource(type, { quantity: 9 })],
    ['in the body, the contract’s shape', '', resource(type, { quantity: 9 }, paper)],
  ])('are changed by an id %s', async (_, id, body) => {
    const reply = await send(shop, `PATCH ${weekly}/${type}${id}`, { body });
    expect(reply.json.data).toMatchObject({ id: paper, attributes: { quantity: 9 } });
    expect(await itemsOf(weekly)).toEqual([
      [paper, 9],
      [stapler, 1],
    ]);
  });

  it.each([
    ['in the path', `/${paper}`, undefined, [[stapler, 1]]],
    ['in the body', '', resource(type, {}, paper), [[stapler, 1]]],
    ['several in the body', '', { data: [paper, stapler].map((id) => ({ type, id })) }, []],
  ])('are removed by an id %s', async (_, id, body, left) => {
    const reply = await send(shop, `DELETE ${weekly}/${type}${id}`, body === undefined ? {} : { body });
    expect(reply.status).toBe(204);
    expect(await itemsOf(weekly)).toEqual(left);
  });

  it('are counted', async () => {
    await send(shop, `POST ${weekly}/${type}`, { body: resource(type, { sku: '301_4711', quantity: 4 }) });
    expect((await send(shop, `GET ${weekly}`)).json.data.attributes.numberOfItems).toBe(10);
  });
});

describe('wishlists', () => {
  it('hold a product once', async () => {
    const body = resource('wishlist-items', { sku: '087_20344652' });
    await send(shop, `POST /wishlists/${wishlistIds.someday}/wishlist-items`, { body });
    const reply = await send(shop, `GET /wishlists/${wishlistIds.someday}?include=wishlist-items`);
    expect(reply.json.data.attributes.numberOfItems).toBe(1);
    expect(reply.json.included.map((item: { id: string }) => item.id)).toEqual(['087_20344652']);
  });

  it('are gone once deleted', async () => {
    await send(shop, `DELETE /wishlists/${wishlistIds.cameras}`);
    const left = (await send(shop, 'GET /wishlists')).json.data;
    expect(left.map((each: { id: string }) => each.id)).toEqual([wishlistIds.someday, wishlistIds.outdated]);
  });
});
