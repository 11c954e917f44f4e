import { afterAll, beforeAll, expect, it } from 'vitest';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import type { FilterDefinition } from '../../../src/app/filter-definition.ts';
import { filterDefinitions } from '../../../src/app/filters.ts';
import { explainRequest } from '../../../src/cli/explain/explain-request.ts';
import { explanationText } from '../../../src/cli/explain/explanation-text.ts';
import { reject } from '../../../src/http/rejection.ts';
import { healthOf } from '../../../src/lib/component.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { type ShopwardHere, startShopwardHere } from '../../harness/shopward-here.ts';
import { listOf, readList } from '../access/list-text.ts';

/** A whole feature in one file: a shop that takes no orders on Sundays. */
let isSunday = false;
let refusals = 0;
const events: string[] = [];
const closedOnSundays: FilterDefinition = {
  name: 'sundays',
  stage: 'forward',
  compile: () => ({
    name: 'sundays',
    match: ({ method, path }) => (method === 'POST' && path === '/checkout' ? true : undefined),
    describe: (_match, _request, name) => ({ text: `refused on Sundays: ${name('overloaded')}` }),
  }),
  create: (matcher) => ({
    ...matcher,
    run() {
      if (!isSunday) return undefined;
      refusals += 1;
      return reject('overloaded', { reason: 'sunday', retryAfterSeconds: 3600 });
    },
    start: async () => void events.push('started'),
    reload: async () => void events.push('reloaded'),
    close: () => void events.push('closed'),
    health: () => healthOf(isSunday ? ['sundays: the shop is closed'] : []),
    metrics: [
      {
        name: 'shopward_sunday_refusals',
        help: 'Orders refused on Sundays.',
        kind: 'counter',
        combine: 'sum',
        value: () => refusals,
      },
    ],
  }),
};

let shop: RecordingUpstream;
let shopward: ShopwardHere;
beforeAll(async () => {
  shop = await startRecordingUpstream(() => answer('{}'));
  const filters = [...filterDefinitions, closedOnSundays];
  shopward = await startShopwardHere({ upstream: `http://127.0.0.1:${shop.port}`, filters });
});
afterAll(() => shop.close());

const headers = { 'Content-Type': 'application/json' };
const order = () => fetch(`${shopward.url}/checkout`, { method: 'POST', body: '{}', headers });
const readyz = async () => (await fetch(`${shopward.adminUrl}/readyz`)).json();

it('a filter from one file refuses requests, and appears in /readyz, the console and metrics', async () => {
  expect((await order()).status).toBe(200);
  expect(shop.requestLines).toEqual(['POST /checkout HTTP/1.1']);
  expect(JSON.stringify(await readyz())).not.toContain('sundays');

  isSunday = true;
  const refused = await order();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '3600']);
  expect(shop.requestLines).toHaveLength(1);
  expect((await fetch(`${shopward.url}/stores`)).status).toBe(200);

  expect(JSON.stringify(await readyz())).toContain('sundays: the shop is closed');
  const { parts } = (await (await fetch(`${shopward.adminUrl}/api/state`)).json()) as { parts: object[] };
  expect(parts).toContainEqual(
    expect.objectContaining({ id: 'sundays', text: 'sundays: the shop is closed', status: 'degraded' }),
  );
  expect(await (await fetch(`${shopward.adminUrl}/metrics`)).text()).toMatch(
    /^shopward_sunday_refusals_total 1$/m,
  );
});

it('explain prints the filter, given the same list of filters', () => {
  const { config } = shopward;
  const compiled = compileProtectedList(readList(listOf('GET /orders')), config.request);
  const asked = { method: 'POST', target: '/checkout', host: 'shop' };
  const explanation = explainRequest(asked, config, compiled, [...filterDefinitions, closedOnSundays]);
  expect(explanationText(explanation, []).join('\n')).toMatch(/sundays +refused on Sundays: 503 code/);
});

it('the filter is started, reloaded and closed with the app', async () => {
  await shopward.reload();
  await shopward.stop();
  expect(events).toEqual(['started', 'reloaded', 'closed']);
});
