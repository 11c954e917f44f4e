import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { FilterDefinition } from '../../src/app/filter-definition.ts';
import { filterDefinitions } from '../../src/app/filters.ts';
import { eventually } from '../harness/eventually.ts';
import { exchangeRaw, type RawResponse } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { provokedElsewhere } from './refusal-stage.ts';

/** A filter with a bug, for requests to `/buggy`. */
const buggy: FilterDefinition = {
  name: 'buggy',
  stage: 'forward',
  compile: () => ({
    name: 'buggy',
    match: ({ path: asked }) => (asked.includes('/buggy') ? true : undefined),
    describe: () => ({ text: 'breaks' }),
  }),
  create: (matcher) => ({
    ...matcher,
    run() {
      throw Object.assign(new Error('a bug'), { code: 'ERR_BUG' });
    },
  }),
};

const inFlight = 2;
let upstream: RecordingUpstream;
let shopward: RunningShopward;
const delayed = Promise.withResolvers<string>();

beforeAll(async () => {
  upstream = await startRecordingUpstream(
    ({ head }) => (head.startsWith('GET /slow') ? delayed.promise : answer('{}')),
    { answersWhole: true },
  );
  shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { limits: { inFlight, clientShare: 100, bodyTimeout: '1s' } },
    filters: [...filterDefinitions, buggy],
  });
});
afterAll(async () => {
  delayed.resolve(answer());
  await shopward?.stop();
  await upstream?.close();
});

const put = (start: string, length: number, sent: string) =>
  exchangeRaw(
    shopward.port,
    `PUT ${start} HTTP/1.1\r\nHost: shop.example\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n${sent}`,
  );
/** A path with an escape, a long segment, and a token as id. */
const odd = `/%c3%a4/${'x'.repeat(90)}/refresh-tokens/my-secret`;

const provocations: Readonly<Record<string, () => Promise<RawResponse>>> = {
  'request-timeout': () => put(`${odd}?query=secret`, 10, 'x'),
  async overloaded() {
    const slow = () => upstream.requestLines.filter((line) => line.startsWith('GET /slow')).length;
    // A slot of an earlier refused request may not be free yet.
    await eventually('the limit is reached', async () => {
      for (let i = slow(); i < inFlight; i++)
        void exchangeRaw(shopward.port, 'GET /slow HTTP/1.1\r\nHost: shop.example\r\n\r\n').catch(() => {});
      await sleep(100);
      return slow() >= inFlight || undefined;
    });
    const refused = await put(`${odd}?query=secret`, 1, 'x');
    delayed.resolve(answer());
    return refused;
  },
  'internal-error': () => put(`/buggy${odd}?query=secret`, 1, 'x'),
};

it('the table covers all refusals that refusal-stage.ts leaves out', () => {
  expect(Object.keys(provocations).sort()).toEqual([...provokedElsewhere].sort());
});

it.each([
  ['request-timeout', 408, 'slow-body', '/%C3%A4/…/refresh-tokens/…'],
  // Refused before the path was parsed, so only its plain start is kept.
  ['overloaded', 503, 'in-flight', '/…'],
  ['internal-error', 500, 'ERR_BUG', '/buggy/%C3%A4/…/refresh-tokens/…'],
])('%s has an id, and a record with method, cut path and reason', async (name, status, reason, cutPath) => {
  const response = await provocations[name]?.();
  expect(response?.status).toBe(status);
  const [id = '', ...more] = response?.fields('x-request-id') ?? [];
  expect([id, more]).toEqual([expect.stringMatching(/^[\w-]{36}$/), []]);
  expect(response?.body.toString()).not.toContain('bug');
  const found = await eventually('its record', async () => {
    const answer = await fetch(`${shopward.adminUrl}/api/decisions/search?id=${id}`);
    const { decisions } = (await answer.json()) as { decisions: readonly Record<string, unknown>[] };
    return decisions[0];
  });
  expect(found).toMatchObject({
    ...{ requestId: id, decision: 'refused', status, rejection: name, reason },
    ...{ method: 'PUT', path: cutPath },
  });
  expect(JSON.stringify(found)).not.toContain('secret');
  // docs/reasons.md: the log has the stack.
  const withStack = shopward.log().filter((line) => line.requestId === id && line.err !== undefined);
  expect(withStack).toHaveLength(name === 'internal-error' ? 1 : 0);
});
