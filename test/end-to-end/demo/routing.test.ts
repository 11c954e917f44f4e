import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cartIds } from '../../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../../demo/shop.ts';
import { resource, send, sendRaw, statusOf } from './client.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop();
});
beforeEach(() => {
  shop.reset();
  shop.received.clear();
});
afterAll(() => shop.close());

const id = cartIds.forgotten;
const accept = 'Accept: */*';

describe('paths', () => {
  it.each([
    `/carts/${id}`,
    `/carts/${id}/`,
    `//carts/${id}`,
    `/\\carts/${id}///`,
    `/carts/x/carts/${id}`,
    `/carts/x/y/z/carts/${id}`,
    `/index.php/carts/${id}`,
    `http://evil.example/carts/${id}`,
  ])('%s acts on the cart', async (target) => {
    expect(statusOf(await sendRaw(shop, `DELETE ${target} HTTP/1.1\r\n${accept}`))).toBe(204);
    expect((await send(shop, `GET /carts/${id}`)).status).toBe(404);
    expect(shop.received.requests[0]).toMatchObject({
      method: 'DELETE',
      target,
      route: 'DELETE /carts/{id}',
    });
  });

  it.each([
    [`/carts/${cartIds.everyday}/items/x/items/218_1233`, 204],
    [`/carts/${cartIds.everyday}/items/x/y/z/items/218_1233`, 204],
    [`/carts/${cartIds.everyday}/vouchers/x/items/218_1233`, 404],
    [`/wishlists/x/items/218_1233`, 404],
    [`/Carts/${id}`, 404],
    [`/%63arts/${id}`, 404],
    [`/x/../carts/${id}`, 404],
    ['/items/218_1233', 400],
  ])('DELETE %s -> %i', async (target, status) => {
    expect(statusOf(await sendRaw(shop, `DELETE ${target} HTTP/1.1\r\n${accept}`))).toBe(status);
  });
});

describe('method override', () => {
  const json = (body: string) => `Content-Type: application/json\r\nContent-Length: ${body.length}`;
  const form = (body: string) =>
    `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}`;
  const part = 'Content-Disposition: form-data; name="_method"';
  const multipart = `--b\r\n${part}\r\n\r\nDELETE\r\n--b--\r\n`;

  it.each([
    ['the field', `POST /carts/${id}`, 'X-HTTP-Method-Override: DELETE', ''],
    ['the field in lower case', `POST /carts/${id}`, 'x-http-method-override: delete', ''],
    ['the query', `POST /carts/${id}?_method=DELETE`, json(''), ''],
    ['a mangled query name', `POST /carts/${id}?.method=DELETE`, json(''), ''],
    ['an encoded query name', `POST /carts/${id}?a=1&%5fmethod=delete`, json(''), ''],
    ['a form', `POST /carts/${id}`, form('_method=DELETE'), '_method=DELETE'],
    [
      'a multipart form',
      `POST /carts/${id}`,
      `Content-Type: multipart/form-data; boundary=b\r\nContent-Length: ${multipart.length}`,
      multipart,
    ],
  ])('through %s deletes a cart by POST', async (_, line, fields, body) => {
    const raw = await sendRaw(shop, `${line} HTTP/1.1\r\n${accept}\r\n${fields}`, body);
    expect(statusOf(raw)).toBe(204);
    expect(shop.received.requests[0]).toMatchObject({ method: 'POST', effectiveMethod: 'DELETE' });
  });

  it('changes a cart by POST with a JSON body', async () => {
    const body = resource('carts', { name: 'Renamed' });
    const reply = await send(shop, `POST /carts/${id}?_method=PATCH`, { body });
    expect(reply.json.data.attributes.name).toBe('Renamed');
  });

  it.each([
    ['GET', `GET /carts/${id}?_method=DELETE`, 'X-HTTP-Method-Override: DELETE', 200],
    ['the unknown method PUT', `POST /carts/${id}?_method=PUT`, 'Content-Length: 0', 404],
    ['a list', `POST /carts/${id}?_method[]=DELETE`, 'Content-Length: 0', 404],
  ])('does nothing for %s', async (_, line, fields, status) => {
    const raw = await sendRaw(shop, `${line} HTTP/1.1\r\n${accept}\r\n${fields}`);
    expect(statusOf(raw)).toBe(status);
    expect((await send(shop, `GET /carts/${id}`)).status).toBe(200);
  });
});
