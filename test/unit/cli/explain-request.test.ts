import { beforeEach, describe, expect, it } from 'vitest';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import type { ProtectedList } from '../../../src/access/protected-list.ts';
import {
  createAskedReader,
  explainRequest,
  tokenToInspect,
} from '../../../src/cli/explain/explain-request.ts';
import type { Config } from '../../../src/config/schema.ts';
import { listOf, readList } from '../access/list-text.ts';
import { keys, loadGood } from '../config/config-folder.ts';

let config: Config;
let list: ProtectedList;
beforeEach(async () => {
  const text = listOf('GET /carts', '{ match: "GET /feed", tokenIn: [header, "query:ticket"] }');
  ({ config } = await loadGood(keys, { files: { 'protected-resources.yaml': text } }));
  list = compileProtectedList(readList(text), config.request);
});

const token = 'aaaa.bbbb.cccc';

function ask(target: string, { isWhole = true, authorization = `Bearer ${token}` } = {}) {
  const fields = authorization === 'none' ? [] : ['Authorization', authorization];
  const asked = { method: 'GET', target, host: 'shop', fields, isWhole };
  const explanation = explainRequest(asked, config, list);
  return { forward: explanation.forward, inspected: tokenToInspect(asked, explanation, config) };
}

describe('the token that is inspected', () => {
  it('is that of a complete request to a protected resource', () => {
    expect(ask('/carts').inspected).toBe(token);
    expect(ask(`/feed?ticket=${token}`, { authorization: '' }).inspected).toBe(token);
  });

  it.each([
    ['for an open resource', '/stores', {}],
    ['for an incomplete request', '/carts', { isWhole: false }],
    ['without credentials', '/carts', { authorization: 'none' }],
    ['for another scheme', '/carts', { authorization: 'Basic eDp5' }],
  ])('is undefined %s', (_, target, options) => expect(ask(target, options).inspected).toBeUndefined());
});

it('says which filters do not apply to requests that another proxy forwards', () => {
  const asked = { method: 'DELETE', target: '/carts/1', host: 'shop' };
  const textsWith = (authorize: Config['authorize']) =>
    explainRequest(asked, { ...config, authorize }, list).filters.map(({ name, text }) => [
      name,
      text.endsWith('; not by /authorize'),
    ]);
  expect(textsWith({ listen: { host: '127.0.0.1', port: 8082 } })).toEqual([['entity-tags', true]]);
  expect(textsWith(false)).toEqual([['entity-tags', false]]);
});

it('the shop gets the query without the token, and everything else as it is', () => {
  expect(ask(`/feed?a=1&ticket=${token}`, { authorization: '' }).forward?.target).toBe('/feed?a=1');
  expect(ask('/feed?a=1').forward?.target).toBe('/feed?a=1');
  expect(ask(`/carts?ticket=${token}`).forward?.target).toBe(`/carts?ticket=${token}`);
  expect(ask(`/stores?ticket=${token}`).forward?.target).toBe(`/stores?ticket=${token}`);
});

/** Fields of a handshake, except its key. */
const webSocket = ['Upgrade', 'websocket', 'Connection', 'Upgrade', 'Sec-WebSocket-Version', '13'];
const key = ['Sec-WebSocket-Key', 'AAAAAAAAAAAAAAAAAAAAAA=='];

describe('a request is read as the proxy reads it, with the setting', () => {
  it.each<[setting: string, config: object, asked: object, without: object, withIt: object]>([
    [
      'auth.forward, whose fields a client may not set',
      { auth: { forward: { subject: 'X-User' } } },
      { fields: ['x-user', 'evil'] },
      { fields: expect.arrayContaining(['x-user']) },
      { fields: expect.not.arrayContaining(['x-user']) },
    ],
    [
      'request.encodedSlash',
      { request: { encodedSlash: ['/files/{name}'] } },
      { target: '/files/a%2Fb' },
      { rejection: 'bad-request-target', reason: 'encoded-slash' },
      { path: '/files/a%2Fb' },
    ],
    [
      'request.methods',
      { request: { methods: ['SEARCH'] } },
      { method: 'SEARCH' },
      { rejection: 'method-not-allowed' },
      { method: 'SEARCH' },
    ],
    [
      'upstream.webSocket',
      { upstream: { webSocket: true } },
      { fields: [...webSocket, ...key] },
      { fields: expect.not.arrayContaining(key) },
      { fields: expect.arrayContaining(key) },
    ],
  ])('%s', (_, setting, part, without, withIt) => {
    const asked = { method: 'GET', target: '/stores', host: 'shop', isWhole: true, ...part };
    expect(createAskedReader({})(asked)).toMatchObject(without);
    expect(createAskedReader(setting as never)(asked)).toMatchObject(withIt);
  });
});
