import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DemoShop, startDemoShop } from '../../../demo/shop.ts';
import { send } from './client.ts';
import { type ContractCall, contractCalls } from './contract-calls.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop();
});
afterAll(() => shop.close());

function sendCall({ method, path, as, body }: ContractCall) {
  return send(shop, `${method} ${path}`, { as, ...(body === undefined ? {} : { body }) });
}

describe('calls of the contract', () => {
  beforeEach(() => shop.reset());

  it('are one for each of the 56 rows', () => {
    expect(contractCalls).toHaveLength(56);
    expect(new Set(contractCalls.map((call) => call.row)).size).toBe(56);
  });

  it.each(contractCalls)('$row', async (call) => {
    shop.received.clear();
    const reply = await sendCall(call);
    expect(reply.status).toBe(call.status);
    if (call.status === 204) {
      expect(reply.text).toBe('');
    } else {
      expect(reply.headers.get('content-type')).toBe('application/vnd.api+json');
      const isMember = call.method !== 'GET' || isIdLast(call.path);
      expect(Array.isArray(reply.json.data)).toBe(!isMember);
      for (const element of [reply.json.data].flat()) {
        expect(element.type).toEqual(expect.any(String));
        expect(element.links.self).toMatch(shop.url);
      }
    }
    expect(shop.received.requests.map(({ method, target }) => [method, target])).toEqual([
      [call.method, call.path],
    ]);
  });

  it.each([
    ['the contract’s order', contractCalls],
    ['the opposite order', contractCalls.toReversed()],
  ])('all succeed one after the other in %s', async (_, calls) => {
    for (const call of calls)
      expect(`${call.row} ${(await sendCall(call)).status}`).toBe(`${call.row} ${call.status}`);
  });
});

function isIdLast(path: string): boolean {
  return path.split('/').length % 2 === 1;
}
