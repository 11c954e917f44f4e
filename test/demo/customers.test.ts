import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { addressIds } from '../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { resource, send } from './client.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop();
});
beforeEach(() => shop.reset());
afterAll(() => shop.close());

async function signIn(username: string, password: string): Promise<number> {
  const body = resource('access-tokens', { username, password });
  return (await send(shop, 'POST /access-tokens', { body })).status;
}

const registration = {
  salutation: 'Ms',
  firstName: 'Ada',
  lastName: 'Moor',
  gender: 'Female',
  email: 'ada@shop.example',
  password: 'change123',
  confirmPassword: 'change123',
  acceptedTerms: true,
};

describe('a customer', () => {
  it('registers, signs in and has nothing yet', async () => {
    const reply = await send(shop, 'POST /customers', { body: resource('customers', registration) });
    expect(reply.status).toBe(201);
    expect(reply.text).not.toContain('change123');
    expect(await signIn('ada@shop.example', 'change123')).toBe(201);
    expect((await send(shop, 'GET /carts', { as: reply.json.data.id })).json.data).toEqual([]);
  });

  it.each([
    ['an address that is taken', { email: 'sonia@shop.example' }, '400'],
    ['terms that were not accepted', { acceptedTerms: false }, '413'],
    ['passwords that differ', { confirmPassword: 'change124' }, '406'],
  ])('is not registered with %s', async (_, change, code) => {
    const body = resource('customers', { ...registration, ...change });
    expect((await send(shop, 'POST /customers', { body })).json.errors[0].code).toBe(code);
  });

  it('signs in with a new password and no longer with the old one', async () => {
    const attributes = { password: 'change123', newPassword: 'change1234', confirmPassword: 'change1234' };
    const body = resource('customer-password', attributes);
    expect((await send(shop, 'PATCH /customer-password/DE--21', { body })).status).toBe(204);
    expect(await signIn('sonia@shop.example', 'change123')).toBe(401);
    expect(await signIn('sonia@shop.example', 'change1234')).toBe(201);
  });

  it('is gone after being anonymised, and so is what named the person', async () => {
    const as = 'DE--21';
    expect((await send(shop, 'DELETE /customers/DE--21', { as })).status).toBe(204);
    expect((await send(shop, 'GET /customers/DE--21', { as })).json.errors[0].code).toBe('402');
    expect(await signIn('sonia@shop.example', 'change123')).toBe(401);
    expect((await send(shop, 'GET /carts', { as })).json.data).toEqual([]);
    expect((await send(shop, 'GET /orders', { as })).json.data).toHaveLength(2);
  });

  it('is read as a collection by the pseudo id', async () => {
    const reply = await send(shop, 'GET /customers/mine', { as: 'DE--22' });
    expect(reply.json.data).toMatchObject([{ id: 'DE--22', attributes: { firstName: 'Karl' } }]);
  });
});

describe('addresses', () => {
  const path = '/customers/DE--21/addresses';

  it('keep one default', async () => {
    const body = resource('addresses', { isDefaultShipping: true, city: 'Hamburg' });
    const changed = await send(shop, `PATCH ${path}/${addressIds.office}`, { body });
    expect(changed.json.data.attributes).toMatchObject({ city: 'Hamburg', isDefaultShipping: true });
    const all = (await send(shop, `GET ${path}`)).json.data;
    const defaults = all.filter(
      (each: { attributes: { isDefaultShipping: boolean } }) => each.attributes.isDefaultShipping,
    );
    expect(defaults.map((each: { id: string }) => each.id)).toEqual([addressIds.office]);
  });

  it('are gone once deleted', async () => {
    await send(shop, `DELETE ${path}/${addressIds.home}`);
    expect((await send(shop, `GET ${path}/${addressIds.home}`)).json.errors[0].code).toBe('404');
    expect((await send(shop, `GET ${path}`)).json.data).toHaveLength(2);
  });
});
