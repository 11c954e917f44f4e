import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { checkList } from '../../../src/access/list-check.ts';
import { WatchedList } from '../../../src/access/watched-list.ts';
import { adviceValidators } from '../../../src/cli/list-advice.ts';
import { validateConfig } from '../../../src/config/load.ts';
import { buildRequestRules } from '../../../src/http/canonicalise-request.ts';
import { WorkCounter } from './work.ts';

vi.mock('../../../src/http/canonicalise-request.ts', async (importOriginal) => {
  const original = await importOriginal<{ buildRequestRules: typeof buildRequestRules }>();
  return { ...original, buildRequestRules: vi.fn(original.buildRequestRules) };
});

let counter: WorkCounter;
beforeAll(async () => {
  counter = await WorkCounter.open();
});
afterAll(() => counter.close());

const listOf = (rows: number) => {
  const lines = Array.from({ length: rows }, (_, i) => `    - GET /shop-${i % 70}/items-${i}/{id}`);
  return `groups:\n  A:\n${lines.join('\n')}\ncomplete: true\n`;
};

/** The rules of a request do not depend on a row, so the advice must not build them for each row. */
it('the advice of `check` builds the rules of a request as often for 1,000 rows as for 10', () => {
  const { config } = validateConfig({ upstream: { url: 'http://shop.example' } });
  const timesFor = (rows: number) => {
    vi.mocked(buildRequestRules).mockClear();
    adviceValidators.protectedResources?.(listOf(rows), 'list.yaml', config);
    return vi.mocked(buildRequestRules).mock.calls.length;
  };
  expect(timesFor(10)).toBeGreaterThan(0);
  expect(timesFor(1000)).toBe(timesFor(10));
});

it('an edit of a list with four times the rows takes at most five times the work', async () => {
  const workOf = async (rows: number) => {
    const list = new WatchedList({
      file: 'list.yaml',
      text: listOf(1),
      paths: { ignoredPrefixes: [] },
      isWatched: false,
      check: checkList,
      log: { debug: () => {} } as never,
    });
    const work = await counter.countOf(() => list.apply({ bytes: Buffer.from(listOf(rows)) }));
    expect(list.inForce.rows).toHaveLength(rows);
    return work;
  };
  await workOf(10);
  const short = await workOf(1500);
  expect((await workOf(6000)) / short).toBeLessThanOrEqual(5);
});
