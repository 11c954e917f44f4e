import { beforeEach, describe, expect, it } from 'vitest';
import { compileProtectedList, type ProtectedList } from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { explainRequest, tokenToInspect } from '../../src/cli/explain/explain-request.ts';
import type { Config } from '../../src/config/schema.ts';
import { keys, loadGood } from '../config/config-folder.ts';
import { listOf } from './openapi-sample.ts';

let config: Config;
let list: ProtectedList;
beforeEach(async () => {
  const text = listOf('GET /carts', '{ match: "GET /feed", tokenIn: [header, "query:ticket"] }');
  ({ config } = await loadGood(keys, { files: { 'protected-resources.yaml': text } }));
  const { list: rows } = parseProtectedList(text, 'list');
  if (rows === undefined) throw new Error('the list is broken');
  list = compileProtectedList(rows, config.request);
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

  it('is not looked for where nobody would: of an open resource, or of a request that is not known to its end', () => {
    expect(ask('/stores').inspected).toBeUndefined();
    expect(ask('/carts', { isWhole: false }).inspected).toBeUndefined();
  });

  it('is none where the proxy would refuse the request before', () => {
    expect(ask('/carts', { authorization: 'none' }).inspected).toBeUndefined();
    expect(ask('/carts', { authorization: 'Basic eDp5' }).inspected).toBeUndefined();
  });
});

it('the shop gets the query without the token, and everything else as it is', () => {
  expect(ask(`/feed?a=1&ticket=${token}`, { authorization: '' }).forward?.target).toBe('/feed?a=1');
  expect(ask('/feed?a=1').forward?.target).toBe('/feed?a=1');
  expect(ask(`/carts?ticket=${token}`).forward?.target).toBe(`/carts?ticket=${token}`);
  expect(ask(`/stores?ticket=${token}`).forward?.target).toBe(`/stores?ticket=${token}`);
});
