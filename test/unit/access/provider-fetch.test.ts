import { expect, it } from 'vitest';
import { FetchBudget } from '../../../src/access/provider-fetch.ts';

it('the budget of fetches is closed for so long after a failure, and opens where the clock is set back', () => {
  const budget = new FetchBudget(2, 250);
  budget.close(1_000, 500);
  expect([budget.restMs(1_000), budget.isClosed(1_499)]).toEqual([500, true]);
  expect([budget.restMs(1_500), budget.isClosed(1_500)]).toEqual([0, false]);
  budget.close(2_000, 500);
  expect(budget.isClosed(1_999)).toBe(false);
});
