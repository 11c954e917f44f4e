import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { expectAlerts, type History, promtool, rulesFile, rulesText } from './shipped-rules.ts';

const runbook = readFileSync(path.join(import.meta.dirname, '../../../docs/operations.md'), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}
const all: readonly Rule[] = parse(rulesText).groups.flatMap(({ rules: own }: { rules: Rule[] }) => own);
const rules = all.filter(({ alert }) => alert !== undefined);

/** Name of an alert -> the cells of its row. */
const rows = new Map(
  [...runbook.matchAll(/^\|<a id="(\w+)"><\/a>`(Shopward\w+)`\|(\w+)\|([^|]+)\|$/gm)].map(
    ([, anchor, name = '', urgency, action = '']) => [name, { anchor, urgency, action }],
  ),
);

test('the runbook has one row for each alert, and no other row', () => {
  expect([...rows.keys()].toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
});

test.each(rules)('$alert has a severity, a summary and a row in the runbook', (rule) => {
  expect(['page', 'ticket']).toContain(rule.labels.severity);
  expect(rule.annotations.summary).toMatch(/\.$/);
  const row = rows.get(rule.alert);
  expect(row).toMatchObject({ urgency: rule.labels.severity });
  expect(rule.annotations.runbook_url).toBe(`docs/operations.md#${row?.anchor}`);
  // A sentence, not only a link; test/end-to-end/deploy/package.test.ts follows the links.
  expect(row?.action).toMatch(/^.{20,}\.$/);
});

test.skipIf(promtool === undefined)('promtool accepts the rules', () => {
  const said = execFileSync(promtool ?? '', ['check', 'rules', '--lint=all', '--lint-fatal', rulesFile], {
    encoding: 'utf8',
  });
  expect(said).toContain(`SUCCESS: ${all.length} rules found`);
});

/** These alerts count events. All others need a `for` longer than every window, so that one event cannot fire them. */
const byCount = ['ShopwardListLooser', 'ShopwardRestarts', 'ShopwardWorkersRestart'];
const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const secondsOf = (text: string) => Number.parseInt(text, 10) * (units[text.at(-1) ?? ''] ?? Number.NaN);

test.each(rules.filter(({ alert }) => !byCount.includes(alert)))(
  '$alert needs a fault that lasts',
  (rule) => {
    const recorded = [...rule.expr.matchAll(/:(?:increase|share)(\w+)/g)].map(([, window = '']) => window);
    // A window with `offset` is the usual share, to compare with.
    const own = [...rule.expr.matchAll(/\[(\w+)\](?! offset)/g)].map(([, window = '']) => window);
    for (const window of [...recorded, ...own]) {
      expect(secondsOf(rule.for ?? '0s'), window).toBeGreaterThan(secondsOf(window));
    }
    expect(secondsOf(rule.for ?? '0s') > 0 || rule.alert.startsWith('ShopwardCertificate')).toBe(true);
  },
);

const served = 'http_server_request_duration_seconds_count{job="shopward"}';
const asked = (status: number) =>
  `http_client_request_duration_seconds_count{job="shopward",http_response_status_code="${status}"}`;
const bucket = (side: string, le: string) =>
  `http_${side}_request_duration_seconds_bucket{job="shopward",http_response_status_code="200",le="${le}"}`;
const refused = (rejection: string, reason = '', enforced = 'true') =>
  `shopward_rejections_total{job="shopward",rejection="${rejection}",reason="${reason}",enforced="${enforced}"}`;
/** 600 requests each 30 s, for 45 minutes and for 26 hours. */
const busy = { [served]: '0+600x90' };
const busyDay = { [served]: '0+600x3200' };

const histories: readonly History[] = [
  {
    what: 'a burst of failed connections to the shop',
    values: { ...busy, [refused('upstream-unreachable')]: '0x20 500x60' },
    fires: [],
  },
  {
    what: 'each tenth connection fails',
    values: { ...busy, [refused('upstream-unreachable')]: '0x20 60+60x20' },
    fires: ['ShopwardUpstreamDown'],
  },
  {
    what: 'each hundredth connection fails',
    values: { ...busy, [refused('upstream-unreachable')]: '0x20 6+6x20' },
    fires: [],
  },
  {
    what: 'one 503 in five minutes, and few requests',
    values: { [served]: '0+1x60', [refused('tag-store-unavailable')]: '0x20 1x9 2x9 3x9' },
    fires: [],
  },
  { what: 'a burst of 503', values: { ...busy, [refused('overloaded')]: '0x20 500x60' }, fires: [] },
  {
    what: 'a restart of the shop: all answers are 503 for half a minute',
    values: { ...busy, [asked(200)]: '0+600x20 12000 12600+600x20', [asked(503)]: '0x20 600x60' },
    fires: [],
  },
  {
    what: 'each tenth answer of the shop is 500',
    values: { ...busy, [asked(200)]: '0+540x60', [asked(500)]: '0+60x60' },
    fires: ['ShopwardShopFails'],
  },
  {
    what: 'one answer of 600 is slow',
    values: {
      ...busy,
      [asked(200)]: '0+600x60',
      [bucket('client', '2.5')]: '0+599x60',
      [bucket('client', '0.5')]: '0+599x60',
      [bucket('server', '0.5')]: '0+599x60',
    },
    fires: [],
  },
  {
    what: 'one claim waits for Redis',
    values: { shopward_store_claims_total: '0+20x60', shopward_store_claim_seconds_total: '0x20 10x40' },
    fires: [],
  },
  {
    what: 'nine claims at once are not confirmed',
    values: { shopward_store_claims_total: '0+20x60', shopward_store_unconfirmed_claims_total: '0x20 9x40' },
    fires: [],
  },
  {
    what: 'one start, as by a new version',
    values: { shopward_start_time_seconds: '1x20 700x40' },
    fires: [],
  },
  { what: 'one worker ends', values: { shopward_worker_restarts_total: '0x20 1x40' }, fires: [] },
  {
    what: 'a thousand log lines are lost at once',
    values: { shopward_log_dropped_lines_total: '0x20 1000x40' },
    fires: [],
  },
  {
    what: 'a burst of connections',
    values: { shopward_connections_refused_total: '0x20 1000x40' },
    fires: [],
  },
];

/** Histories of more than a day. */
const longHistories: readonly History[] = [
  {
    what: 'a quarter of the requests have an expired token, today as on the day before',
    values: { ...busyDay, [refused('access-token-invalid', 'expired')]: '0+150x3200' },
    fires: [],
  },
  {
    what: 'six times as many tokens have expired as on the day before',
    values: { ...busyDay, [refused('access-token-invalid', 'expired')]: '0+40x3000 120240+240x200' },
    fires: ['ShopwardUnusualRefusals expired'],
  },
  {
    what: 'a day in observe mode',
    values: { ...busyDay, [refused('access-token-missing', '', 'false')]: '0+6x3200' },
    fires: ['ShopwardObserves'],
  },
  {
    what: 'an hour in observe mode',
    values: { ...busyDay, [refused('access-token-missing', '', 'false')]: '0+6x120 720x2000' },
    fires: [],
  },
];

test.skipIf(promtool === undefined).each([
  { of: 'minutes', told: histories, up: '1x90', clock: { evaluation: '30s', endsAt: '40m', firingIn: '1h' } },
  {
    of: 'a day',
    told: longHistories,
    up: '1x3200',
    clock: { evaluation: '10m', endsAt: '1520m', firingIn: '20m' },
  },
])('an alert fires for a lasting fault, not for a short one: $of', async ({ told, up, clock }) => {
  const withUp = told.map((each) => ({ ...each, values: { 'up{job="shopward"}': up, ...each.values } }));
  await expectAlerts(withUp, clock);
});
