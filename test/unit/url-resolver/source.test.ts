import type { RequestListener } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { UrlResolver } from '../../../src/url-resolver/filter.ts';
import {
  createResolver,
  entityOf,
  type ResolverSettings,
  requestFor,
  resolve,
  targetOf,
} from './resolver-request.ts';
import { catalogue, documentOf, jsonApi, type Shop, sendMapping, startShop } from './shop.ts';

let shop: Shop;
let resolver: UrlResolver;
let nowMs: number;
const acer = targetOf('/en/acer');

function create(more: ResolverSettings = {}): UrlResolver {
  return createResolver({ upstream: { ask: shop.ask, timeoutMs: 60_000 }, now: () => nowMs, ...more });
}

beforeEach(async () => {
  nowMs = 1_800_000_000_000;
  shop = await startShop(catalogue({ '/en/acer': ['abstract-products', '134'] }));
  resolver = create();
});
afterEach(async () => {
  await resolver.close();
  await shop.close();
});

const send =
  (status: number, fields: Record<string, string | string[]>, body: string | Buffer = ''): RequestListener =>
  (_, response) => {
    response.writeHead(status, fields);
    response.end(body);
  };
const json = (body: string | Buffer, status = 200) => send(status, { 'Content-Type': jsonApi }, body);
const good = documentOf('abstract-products', '134');
const errorBody = (code?: string) => JSON.stringify({ errors: [{ detail: 'x', status: 404, code }] });
const element = (attributes: unknown, type = 'url-resolver') => ({ type, id: null, attributes });
const dataOf = (...data: unknown[]) => JSON.stringify({ data });

describe('failures of the shop: 502, and nothing is kept', () => {
  it.each<[string, string, RequestListener]>([
    ['500', 'invalid', send(500, { 'Content-Type': 'text/html' }, 'Internal Server Error')],
    ['503 with the envelope', 'invalid', json(good, 503)],
    [
      'a body that is cut off',
      'invalid',
      (_, response) => {
        response.writeHead(200, { 'Content-Type': jsonApi, 'Content-Length': '5000' });
        response.write(good);
        setImmediate(() => response.destroy());
      },
    ],
    ['bytes that are no HTTP', 'invalid', (_, response) => void response.socket?.end('SSH-2.0\r\n\r\n')],
    ['a reset', 'unreachable', (_, response) => void response.destroy()],
  ])('%s: upstream-%s', async (_, fault, handler) => {
    const believed = shop.handler;
    shop.handler = handler;
    const answer = await resolve(resolver, acer);
    expect([answer.status, answer.rejection]).toEqual([502, `upstream-${fault}`]);
    expect(answer.field('Cache-Control')).toBe('no-store');
    expect(resolver.stats().entries).toBe(0);
    shop.handler = believed;
    expect((await resolve(resolver, acer)).status).toBe(200);
    expect(shop.requests.length).toBe(2);
  });
});

// The shop may have another resolver. Then the request is forwarded and the client gets the shop's own answer.
describe('replies in another form: the request is forwarded, and nothing is kept', () => {
  it.each<[string, RequestListener]>([
    ['401', json(errorBody('002'), 401)],
    ['403', json(errorBody('2802'), 403)],
    ['429', json(errorBody(), 429)],
    ['301', send(301, { Location: '/login' })],
    ['302 with the envelope', send(302, { Location: '/', 'Content-Type': jsonApi }, good)],
    ['204', send(204, {})],
    ['206', json(good, 206)],
    ['404 without a code', json(errorBody(), 404)],
    ['404 with another code', json(errorBody('2801'), 404)],
    ['404 of a web server', send(404, { 'Content-Type': 'text/html' }, '<h1>Not Found</h1>')],
    ['422 without the code', json(errorBody('901'), 422)],
    ['a login page', send(200, { 'Content-Type': 'text/html' }, good)],
    ['no type', send(200, {}, good)],
    ['cut JSON', json(good.slice(0, -2))],
    ['not UTF-8', json(Buffer.from(good.replace('134', '\xff'), 'latin1'))],
    ['a byte order mark', json(`\ufeff${good}`)],
    ['null', json('null')],
    ['gzip', send(200, { 'Content-Type': jsonApi, 'Content-Encoding': 'gzip' }, good)],
    ['no data', json('{}')],
    ['empty data', json(dataOf())],
    ['data as an object', json(JSON.stringify({ data: element({}) }))],
    ['another type of entity', json(dataOf(element({ entityType: 'customers', entityId: '1' })))],
    ['another resource', json(dataOf(element({ entityType: 'merchants', entityId: '1' }, 'x')))],
    ['an empty id', json(dataOf(element({ entityType: 'merchants', entityId: '' })))],
    ['a number as id', json(dataOf(element({ entityType: 'merchants', entityId: 5 })))],
    ['a control character in the id', json(dataOf(element({ entityType: 'merchants', entityId: 'a\nb' })))],
    ['more than 64 KiB', json(good.padEnd(65_537))],
    [
      'a plain document of another shop',
      send(200, { 'Content-Type': 'application/json' }, '{"type":"product","id":"134"}'),
    ],
    ["another shop's plain 404", send(404, { 'Content-Type': 'application/json' }, '{"error":"not found"}')],
  ])('%s', async (_, handler) => {
    const believed = shop.handler;
    shop.handler = handler;
    expect(await resolver.answer(requestFor(acer))).toBeUndefined();
    expect(resolver.stats()).toMatchObject({ entries: 0, passedOn: 1, failures: 1 });
    shop.handler = believed;
    expect((await resolve(resolver, acer)).status).toBe(200);
    expect(shop.requests.length).toBe(2);
  });
});

describe('replies that are used', () => {
  it('422 with code 2801: url-missing, and it is not kept', async () => {
    shop.handler = json(errorBody('2801'), 422);
    expect((await resolve(resolver, targetOf('0'))).rejection).toBe('url-missing');
    await resolve(resolver, targetOf('0'));
    expect(shop.requests.length).toBe(2);
  });

  it.each<[string, Record<string, string>, number]>([
    ['private and no-cache, which Spryker always sends', { 'Cache-Control': 'no-cache, private' }, 1],
    ['no-store', { 'Cache-Control': 'no-store, private' }, 2],
    ['a cookie', { 'Set-Cookie': 'session=1' }, 2],
    ['a charset', { 'Content-Type': 'application/json; charset=utf-8' }, 1],
  ])('%s', async (_, fields, questions) => {
    shop.handler = send(200, { 'Content-Type': jsonApi, ...fields }, good);
    for (let i = 0; i < 2; i += 1) expect((await resolve(resolver, acer)).status).toBe(200);
    expect(shop.requests.length).toBe(questions);
    expect((await resolve(resolver, acer)).field('Set-Cookie')).toBeUndefined();
  });
});

describe('the request to the shop', () => {
  it('has the URL, locale and store of the key, and nothing else of the client', async () => {
    resolver = create({ stores: ['DE'] });
    await resolve(resolver, '/url-resolver?x=1&url=%252Fen+%26&include=a', {
      fields: [
        ...['Host', 'evil.example', 'Accept-Language', 'de-AT', 'Cookie', 'a=b', 'Authorization', 'Bearer x'],
        ...['X-Forwarded-Host', 'evil.example', 'Origin', 'https://evil.example', 'Store', 'DE'],
        ...['Range', 'bytes=0-1'],
      ],
    });
    const [asked] = shop.requests;
    expect(asked?.url).toBe('/url-resolver?url=%252Fen%20%26&_store=DE');
    const fields = asked?.rawHeaders.filter(
      (name) => !/^(Host|127.*|Connection|close|keep-alive)$/.test(name),
    );
    expect(fields).toEqual([
      ...['Accept', 'application/vnd.api+json', 'Accept-Encoding', 'identity', 'Accept-Language', 'de'],
      ...['Store', 'DE'],
    ]);
    expect(asked?.rawHeaders).toContain(`127.0.0.1:${shop.port}`);
  });

  it.each<[string, string[], string, string[]]>([
    ['a line break', [], '_store=D%0d%0aEvil:%20x', ['_store=D%0D%0AEvil%3A%20x']],
    ['NUL', [], '_store=D%00', ['_store=D%00']],
    ['the euro sign', [], '_store=%E2%82%AC', ['_store=%E2%82%AC']],
    ['an umlaut', [], '_store=%C3%BC', ['_store=%C3%BC']],
    ['a space in front, which a field would lose', [], '_store=+DE', ['_store=%20DE']],
    ['a space within', [], '_store=A+B', ['_store=A%20B', 'A B']],
    ['an ampersand', [], '_store=A%26url=B', ['_store=A%26url%3DB', 'A&url=B']],
    ['octets beyond ASCII in the field', ['Store', '\u00c3\u00bc'], '', ['_store=%C3%83%C2%BC']],
    ['a tab in the field', ['Store', 'A\tB'], '', ['_store=A%09B']],
    ['two fields', ['Store', 'DE', 'Store', 'AT'], '', ['_store=DE%2C%20AT', 'DE, AT']],
    ['both, which differ', ['Store', 'DE'], '_store=AT', ['_store=DE', 'DE']],
  ])(
    'names a store with %s in the query, and in the field Store if a field can carry it',
    async (_, fields, query, said) => {
      expect((await resolve(resolver, `${acer}&${query}`, { fields })).status).toBe(200);
      const [asked] = shop.requests;
      const at = asked?.rawHeaders.indexOf('Store') ?? -1;
      const named = at < 0 ? [] : [asked?.rawHeaders[at + 1]];
      expect([asked?.url.replace(/.*&/, ''), ...named]).toEqual(said);
      expect(resolver.stats()).toMatchObject({ failures: 0, entries: 0 });
    },
  );

  it('names stores that no field can carry, and each one is cached separately', async () => {
    resolver = create({ stores: ['Zürich', '€'] });
    for (const store of ['Z%C3%BCrich', 'Z%c3%bcrich', '%E2%82%AC'])
      await resolve(resolver, `${acer}&_store=${store}`);
    expect(shop.requests.map(({ url }) => url.replace(/.*&/, ''))).toEqual([
      '_store=Z%C3%BCrich',
      '_store=%E2%82%AC',
    ]);
  });

  it.each<[string, string[], string]>([
    ['not UTF-8', [], '&_store=%ff'],
    ['too long in the query', [], `&_store=${'D'.repeat(256)}`],
    ['too long in the field', ['Store', 'D'.repeat(256)], ''],
  ])('is not sent for a store whose name is %s: 404', async (_, fields, query) => {
    const answer = await resolve(resolver, acer + query, { fields });
    expect([answer.status, answer.field('Cache-Status')]).toEqual([404, 'shopward; detail=unasked']);
    expect(shop.requests.length).toBe(0);
  });

  it('has the Host of the client with storeByHost', async () => {
    resolver = create({ storeByHost: true, stores: ['shop.de'] });
    await resolve(resolver, acer, { host: 'Shop.DE' });
    await resolve(resolver, acer, { host: 'shop.de' });
    expect(shop.requests.length).toBe(1);
    expect(shop.requests[0]?.rawHeaders).toContain('shop.de');
  });

  it('is sent for each request of an unconfigured store, and nothing is kept', async () => {
    for (let i = 0; i < 20; i += 1) {
      const answer = await resolve(resolver, acer, { fields: ['Store', `S${i}`] });
      expect(answer.field('Cache-Status')).toBe('shopward; fwd=bypass');
      expect(answer.field('Cache-Control')).toBe('public, max-age=0');
    }
    expect(shop.requests.length).toBe(20);
    expect(resolver.stats().entries).toBe(0);
  });
});

describe('concurrent requests', () => {
  it('1,000 requests of one key that is not cached: one look-up', async () => {
    const delayed = Promise.withResolvers<void>();
    shop.handler = (_, response) =>
      void delayed.promise.then(() => sendMapping(response, 'merchants', 'MER1'));
    const answers = Array.from({ length: 1000 }, () => resolve(resolver, acer));
    delayed.resolve();
    for (const answer of await Promise.all(answers))
      expect(entityOf(answer.body)).toEqual(['merchants', 'MER1']);
    expect(shop.requests.length).toBe(1);
    expect(resolver.stats()).toMatchObject({ lookups: 1, misses: 1000 });
  });

  it('a failed look-up fails its 100 requests, and the next request starts another one', async () => {
    shop.handler = (_, response) => void response.destroy();
    const answers = await Promise.all(Array.from({ length: 100 }, () => resolve(resolver, acer)));
    expect(answers.every((answer) => answer.rejection === 'upstream-unreachable')).toBe(true);
    expect(shop.requests.length).toBe(1);
    shop.handler = catalogue({ '/en/acer': ['abstract-products', '134'] });
    expect((await resolve(resolver, acer)).status).toBe(200);
  });
});
