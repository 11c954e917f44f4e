import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { eventually } from '../harness/eventually.ts';
import { findProgram } from '../harness/programs.ts';
import { startRedis } from '../harness/redis-processes.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';

const root = path.resolve(import.meta.dirname, '../..');
const file = path.join(root, 'deploy/prometheus/shopward.rules.yaml');
const runBook = readFileSync(path.join(root, 'docs/operations.md'), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}
const rules: readonly Rule[] = parse(readFileSync(file, 'utf8')).groups.flatMap(
  ({ rules: own }: { rules: Rule[] }) => own,
);
const promtool = findProgram('promtool');

/** Name of an alert -> the cells of its row. */
const rows = new Map(
  [...runBook.matchAll(/^\|<a id="(\w+)"><\/a>`(Shopward\w+)`\|(\w+)\|([^|]+)\|([^|]+)\|$/gm)].map(
    ([, anchor, name = '', urgency, meaning, action = '']) => [name, { anchor, urgency, meaning, action }],
  ),
);

test('the run book has a row for each alert, and no other', () => {
  expect([...rows.keys()].toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
});

test.each(rules)('$alert says how urgent it is and what it means, and leads to what to do', (rule) => {
  expect(['page', 'ticket']).toContain(rule.labels.severity);
  expect(rule.annotations.summary).toMatch(/\.$/);
  const row = rows.get(rule.alert);
  expect(row).toMatchObject({ urgency: rule.labels.severity, meaning: expect.stringMatching(/\.$/) });
  expect(rule.annotations.runbook_url).toBe(`docs/operations.md#${row?.anchor}`);
  // More than a wave at a chapter; test/deploy/package.test.ts follows its links to their titles.
  expect(row?.action).toMatch(/^.{20,}\.$/);
});

test.skipIf(promtool === undefined)('Prometheus takes the rules', () => {
  const said = execFileSync(promtool ?? '', ['check', 'rules', '--lint=all', '--lint-fatal', file], {
    encoding: 'utf8',
  });
  expect(said).toContain(`SUCCESS: ${rules.length} rules found`);
});

/** What one scrape gave: each series, as an expression writes it, with its value. */
type Scrape = ReadonlyMap<string, number>;

async function scrape(shopward: Shopward): Promise<Scrape> {
  const text = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
  const samples = [...text.matchAll(/^((?:shopward|process)_\w+)(\{[^}]*\})? (\S+)$/gm)];
  return new Map(
    samples.map(([, name = '', labels = '{}', value]) => [
      `${name}${labels.replace(/\}$/, `${labels === '{}' ? '' : ','}job="shopward",instance="one"}`)}`,
      Number(value),
    ]),
  );
}

const minutesBefore = 20;
const minutesAfter = 30;

/** Alerts that fire where the first scrape was so for twenty minutes, and the second for thirty more. */
function alertsOf(before: Scrape, after: Scrape): string[] {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-alerts-'));
  const series = [...new Set([...before.keys(), ...after.keys()])].map((name) => {
    const [first, last] = [before.get(name), after.get(name) ?? Number.NaN];
    // Counters go on as they went: what happened once in our seconds happens each minute.
    const step = name.includes('_total{') ? last - (first ?? 0) : 0;
    return { series: name, values: `${first ?? 0}x${minutesBefore} ${last}+${step}x${minutesAfter}` };
  });
  const firing = (alert: string) =>
    `count(ALERTS{alertname="${alert}",alertstate="firing"}) > bool 0 or vector(0)`;
  const tests = stringify({
    rule_files: [file],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: series,
        // None of them is so: promtool names those that are.
        promql_expr_test: rules.map(({ alert }) => ({
          expr: firing(alert),
          eval_time: `${minutesBefore + minutesAfter}m`,
          exp_samples: [{ labels: '{}', value: 0 }],
        })),
      },
    ],
  });
  writeFileSync(path.join(folder, 'test.yaml'), tests);
  let said = '';
  try {
    execFileSync(promtool ?? '', ['test', 'rules', path.join(folder, 'test.yaml')], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
  } catch (fault) {
    said = (fault as { stderr: string; stdout: string }).stderr + (fault as { stdout: string }).stdout;
  }
  rmSync(folder, { recursive: true });
  const found = [...said.matchAll(/alertname=\\?"(\w+)/g)].map(([, alert = '']) => alert);
  if (said !== '' && found.length === 0) throw new Error(said);
  return [...new Set(found)].toSorted();
}

test.skipIf(promtool === undefined)(
  'alerts fire when what they are about is broken, and are silent before',
  {
    timeout: 240_000,
  },
  async () => {
    const redis = await startRedis({});
    const shop = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end('{}');
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => shop.once('listening', resolve));
    const url = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`;
    const shopward: Shopward = await startShopward({
      upstream: url,
      config: {
        store: { url: redis.url, timeout: '500ms' },
        entityTags: { lease: '3s', sendBy: '1s', wait: '500ms' },
        upstream: { responseTimeout: '1500ms' },
      },
    });
    const ask = (target: string, method = 'GET') =>
      fetch(`${shopward.url}${target}`, {
        method,
        headers: {
          Authorization: `Bearer ${shopward.issueToken()}`,
          'Content-Type': 'application/json',
        },
        ...(method === 'GET' ? {} : { body: '{}' }),
      }).then((response) => response.status);
    await eventually('no hold', async () => {
      const value = (await scrape(shopward)).get(
        'shopward_entity_tags_hold_seconds{job="shopward",instance="one"}',
      );
      return value === 0 ? true : undefined;
    });
    expect(await ask('/orders')).toBe(200);
    const calm = await scrape(shopward);
    expect(alertsOf(calm, calm)).toEqual([]);

    // Redis goes, the shop goes, an edit of the list is broken.
    await redis.process?.kill();
    shop.close();
    shop.closeAllConnections();
    writeFileSync(shopward.listFile, 'groups: [');
    shopward.signal('SIGHUP');
    await eventually('all of it is known', async () => {
      await ask('/orders');
      await ask('/carts/1/items', 'POST');
      const text = [...(await scrape(shopward))].map((one) => one.join(' ')).join('\n');
      const isKnown =
        /^shopward_store_up\{.*\} 0$/m.test(text) &&
        /last_reload_success\{.*\} 0$/m.test(text) &&
        /rejections_total\{.*tag-store-unavailable/.test(text);
      return isKnown ? true : undefined;
    });
    const broken = await scrape(shopward);
    expect(alertsOf(calm, broken)).toEqual(
      ['ShopwardListNotReloaded', 'ShopwardRefuses', 'ShopwardStoreAway', 'ShopwardUpstreamDown'].toSorted(),
    );
    // What cannot be broken in a few seconds: the same scrape with another value, which the metric is known to take.
    const changed = (changes: Readonly<Record<string, number>>) => {
      const scraped = new Map(calm);
      for (const [name, value] of Object.entries(changes)) {
        const key = [...calm.keys()].find((one) => one.startsWith(`${name}{`));
        scraped.set(key ?? `${name}{job="shopward",instance="one"}`, value);
      }
      return alertsOf(calm, scraped);
    };
    expect(changed({ shopward_keys: 0, shopward_keys_last_load_success: 0 })).toEqual([
      'ShopwardKeysNotLoaded',
      'ShopwardNoKeys',
    ]);
    expect(changed({ shopward_store_memory_used_bytes: 96, shopward_store_memory_max_bytes: 100 })).toEqual([
      'ShopwardStoreFillsUp',
      'ShopwardStoreNearlyFull',
    ]);
    expect(changed({ shopward_store_unconfirmed_claims_total: 3 })).toEqual(['ShopwardStoreReplicaMissing']);
    expect(changed({ shopward_list_looser_rows_total: 2 })).toEqual(['ShopwardListLooser']);
    expect(changed({ shopward_list_edits_total: 2, shopward_list_stricter_rows_total: 2 })).toEqual([]);
    expect(changed({ shopward_log_dropped_lines_total: 9, shopward_connections_refused_total: 9 })).toEqual([
      'ShopwardConnectionsFull',
      'ShopwardLogLinesLost',
    ]);
    await shopward.kill();
    await redis.close();
  },
);
