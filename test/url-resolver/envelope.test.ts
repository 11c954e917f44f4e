import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createEnvelope,
  type EnvelopePointers,
  findPointerProblem,
  toMapping,
} from '../../src/url-resolver/envelope.ts';
import type { UrlResolver } from '../../src/url-resolver/filter.ts';
import { requestFor, resolve, targetOf, createResolver } from './resolver-request.ts';
import { documentOf, type Shop, sendMapping, startShop } from './shop.ts';

const types = ['product', 'page'];
const asked = { url: '/en/a', locale: 'de' };
const context = { ...asked, self: 'https://shop.example/r' };
const flat = { entityType: '/type', entityId: '/id' };

describe('a document of JSON pointers', () => {
  it.each<[string, EnvelopePointers, unknown]>([
    ['flat', flat, { type: 'page', id: '7' }],
    [
      'in a map',
      { entityType: '/data/kind', entityId: '/data/ref/key' },
      { data: { kind: 'page', ref: { key: '7' } } },
    ],
    [
      'in a list',
      { entityType: '/results/0/type', entityId: '/results/0/id' },
      { results: [{ type: 'page', id: '7' }] },
    ],
    ['a list itself', { entityType: '/0/type', entityId: '/0/id' }, [{ type: 'page', id: '7' }]],
    [
      'with what was asked',
      { ...flat, url: '/request/url', locale: '/request/lang' },
      { type: 'page', id: '7', request: { url: '/en/a', lang: 'de' } },
    ],
  ])('%s: read, and written as the shop writes it', (_, pointers, document) => {
    const envelope = createEnvelope(pointers, types);
    const mapping = { entityType: 'page', entityId: '7' };
    expect(envelope.read(document, asked)).toEqual(mapping);
    expect(JSON.parse(envelope.write(mapping, context))).toEqual(document);
  });

  it.each<[string, EnvelopePointers, unknown]>([
    ['another member', flat, { type: 'page', id: '7', isDraft: true }],
    ['another type', flat, { type: 'customer', id: '7' }],
    ['a type of the contract that is not configured', flat, { type: 'merchants', id: '7' }],
    ['a number as id', flat, { type: 'page', id: 7 }],
    ['no id', flat, { type: 'page' }],
    ['an empty id', flat, { type: 'page', id: '' }],
    ['an inherited member', { entityType: '/type', entityId: '/toString/name' }, { type: 'page' }],
    ['null', flat, null],
    ['text', flat, 'page'],
    [
      'two elements',
      { entityType: '/0/type', entityId: '/0/id' },
      [
        { type: 'page', id: '7' },
        { type: 'page', id: '8' },
      ],
    ],
    ['no element', { entityType: '/0/type', entityId: '/0/id' }, []],
    [
      'a map in place of the list',
      { entityType: '/0/type', entityId: '/0/id' },
      { 0: { type: 'page', id: '7' } },
    ],
    ['another URL', { ...flat, url: '/url' }, { type: 'page', id: '7', url: '/en/b' }],
    ['another locale', { ...flat, locale: '/lang' }, { type: 'page', id: '7', lang: 'en' }],
    ["the contract's", flat, JSON.parse(documentOf('merchants', '7'))],
  ])('%s is not understood', (_, pointers, document) => {
    expect(createEnvelope(pointers, types).read(document, asked)).toBeUndefined();
  });

  it('is US-ASCII whatever it holds, and no HTML', () => {
    const envelope = createEnvelope({ ...flat, url: '/url' }, types);
    const written = envelope.write(
      { entityType: 'page', entityId: '"\\<\u2028ü' },
      { ...context, url: '/</script>\u{1f600}' },
    );
    expect(written).toMatch(/^[\x20-\x7e]+$/);
    expect(written).not.toMatch(/[<>]/);
    expect(JSON.parse(written)).toEqual({ type: 'page', id: '"\\<\u2028ü', url: '/</script>\u{1f600}' });
  });

  it.each<[readonly string[], string | undefined]>([
    [['/a', '/b'], undefined],
    [['/a/0/b', '/a/0/c'], undefined],
    [['/a/b', '/a/c/d'], undefined],
    [['a', '/b'], 'a is not a JSON pointer such as /data/0/type'],
    [['/', '/b'], '/ is not a JSON pointer such as /data/0/type'],
    [['', '/b'], ' is not a JSON pointer such as /data/0/type'],
    [['/a~1b', '/b'], '/a~1b is not a JSON pointer such as /data/0/type'],
    [['/__proto__/x', '/b'], '/__proto__/x is not a JSON pointer such as /data/0/type'],
    [['/a', '/a'], '/a and /a cannot stand in one document'],
    [['/a', '/a/b'], '/a and /a/b cannot stand in one document'],
    [['/a/b', '/a'], '/a/b and /a cannot stand in one document'],
    [['/a/0', '/a/b'], '/a/0 and /a/b cannot stand in one document'],
  ])('pointers %j: %s', (pointers, problem) => {
    expect(findPointerProblem(pointers)).toBe(problem);
  });
});

it.each<[unknown, unknown]>([
  ['page', 'a\nb'],
  ['page', '\ud800'],
  ['page', 'x'.repeat(256)],
  ['page', undefined],
  [undefined, '7'],
  ['other', '7'],
])('%j with id %j is no mapping', (type, id) => {
  expect(toMapping(type, id, types)).toBeUndefined();
});

describe('a resolver of a shop that speaks plain JSON', () => {
  let shop: Shop;
  let resolver: UrlResolver;
  beforeEach(async () => {
    shop = await startShop(() => {});
    resolver = createResolver({ upstream: { ask: shop.ask }, entityTypes: types, envelope: flat });
  });
  afterEach(() => Promise.all([resolver.close(), shop.close()]));
  const target = targetOf('/en/a');

  const plain =
    (status: number, document: unknown): RequestListener =>
    (_, response) => {
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(document));
    };

  it('asks for plain JSON, keeps what it understands, and says the same as the shop', async () => {
    shop.handler = plain(200, { type: 'page', id: '7' });
    const [first, second] = [await resolve(resolver, target), await resolve(resolver, target)];
    expect(shop.requests).toHaveLength(1);
    expect(shop.requests[0]?.rawHeaders).toContain('application/json');
    for (const answer of [first, second]) {
      expect([answer.status, answer.field('Content-Type'), answer.body]).toEqual([
        200,
        'application/json',
        '{"type":"page","id":"7"}',
      ]);
    }
    expect(first.field('ETag')).toBe(second.field('ETag'));
    expect(
      (await resolve(resolver, target, { fields: ['If-None-Match', first.field('ETag') ?? ''] })).status,
    ).toBe(304);
  });

  it.each<[string, string, RequestListener]>([
    ["the shop's 404", target, plain(404, { errors: [{ code: '2802' }] })],
    ["the shop's 422", target, plain(422, { errors: [{ code: '2801' }] })],
    ['a document with more in it', target, plain(200, { type: 'page', id: '7', price: 5 })],
    ["the contract's document", target, (_, response) => sendMapping(response, 'merchants', '7')],
    ['a request without url', '/url-resolver', plain(200, {})],
    ['one whose url is not UTF-8', '/url-resolver?url=%ff', plain(200, {})],
  ])('%s is passed on, each time', async (_, where, handler) => {
    shop.handler = handler;
    for (let i = 0; i < 2; i += 1) expect(await resolver.answer(requestFor(where))).toBeUndefined();
    expect(resolver.stats()).toMatchObject({ entries: 0, passedOn: 2 });
  });

  it('answers from a mapping file of such types in the same form', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'shopward-envelope-'));
    const file = path.join(folder, 'urls.csv');
    writeFileSync(file, 'url,entityType,entityId\n/en/a,page,7\n');
    const withFile = createResolver({ mappingFile: { path: file }, entityTypes: types, envelope: flat });
    expect(await withFile.start()).toEqual([]);
    expect((await resolve(withFile, target)).body).toBe('{"type":"page","id":"7"}');
    // Nobody else can be asked: what it does not hold is not there.
    expect((await resolve(withFile, targetOf('/en/b'))).rejection).toBe('url-not-found');
    expect((await resolve(withFile, '/url-resolver')).rejection).toBe('url-missing');
    await withFile.close();
    rmSync(folder, { recursive: true });
  });

  it('is 502 where the shop fails', async () => {
    shop.handler = plain(503, {});
    expect((await resolve(resolver, target)).rejection).toBe('upstream-invalid');
  });
});
