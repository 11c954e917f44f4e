import { describe, expect, it } from 'vitest';
import { runVerify } from '../../../src/cli/verify.ts';
import { runCommand } from './command-run.ts';
import { failures, find, openVerifyStage } from './verify-stage.ts';

const stage = openVerifyStage();

describe('verify of a correct deployment', () => {
  it('passes every check, and sends the shop no change', async () => {
    const start = stage.shop.received.requests.length;
    const env = { SHOPWARD_TOKEN: stage.shopward.issueToken() };
    const report = await stage.verify(stage.shopward.url, {}, env);
    expect(failures(report)).toEqual([]);
    expect([report.code, report.ok]).toEqual([0, true]);
    const row = { area: 'rows', name: 'GET /carts/{cart_id}', outcome: 'ok' };
    expect(find(report, row.name)).toEqual({ ...row, expected: '401 002', got: '401 002' });
    expect(report.checks.filter(({ area }) => area === 'rows')).toHaveLength(23);
    expect(find(report, 'GET /protected-resources')?.got).toBe('56 rows, 0 differ');
    expect(find(report, 'Date')).toMatchObject({ area: 'clock', outcome: 'ok' });
    expect(find(report, `answers of ${stage.shop.url}`)).toMatchObject({ outcome: 'ok', got: 'taken' });
    expect(report.checks.filter(({ area, outcome }) => area === 'tags' && outcome === 'ok')).toHaveLength(4);
    expect(report.checks.filter(({ outcome }) => outcome === 'skipped')).toEqual([]);
    expect(stage.unsafeSince(start)).toEqual([]);
  });

  it('prints a table with the counts', async () => {
    const { code, out } = await runCommand((io) =>
      runVerify(stage.shopward.url, { config: stage.shopward.configFile }, io),
    );
    expect(code).toBe(0);
    expect(out[0]).toMatch(/^ok {7}clock {5}Date +as here$/);
    expect(out[1]).toMatch(/^ok {7}rows {6}GET \/customers\/\{customer_reference\} +401 002$/);
    expect(out.at(-1)).toBe(`${stage.shopward.url}: 38 ok, 0 failed, 1 skipped`);
  });
});

it('verify of a shop without a proxy fails, and sends no unsafe request', async () => {
  const start = stage.shop.received.requests.length;
  const report = await stage.verify(stage.shop.url, { token: stage.shopward.issueToken() });
  expect(report.code).toBe(1);
  expect(report.checks.filter(({ area, outcome }) => area === 'rows' && outcome === 'ok')).toEqual([]);
  expect(find(report, 'GET /protected-resources')?.outcome).toBe('failed');
  expect(find(report, 'other spellings')?.outcome).toBe('skipped');
  expect(stage.unsafeSince(start)).toEqual([]);
});
