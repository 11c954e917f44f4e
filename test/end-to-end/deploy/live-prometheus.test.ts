import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { eventually } from '../../harness/eventually.ts';
import { freePort } from '../../harness/free-port.ts';
import { listen } from '../../harness/listen.ts';
import { findProgram } from '../../harness/programs.ts';
import { issueToken } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { makeSigner } from '../../unit/access/signing.ts';
import { rulesText } from './shipped-rules.ts';

/**
 * A running Prometheus scrapes proxies and evaluates the shipped rules, with windows of seconds. This shows that scrape,
 * labels and rules fit together; `provoked-alerts.test.ts` provokes every alert.
 */
const prometheus = findProgram('prometheus');
const shortRules = rulesText.replace(/\[\w+\]/g, '[10s]').replace(/ for: \w+/g, ' for: 4s');

type Open = ReturnType<typeof closingAtEnd>;
type Firing = readonly { readonly metric: Readonly<Record<string, string>> }[];

async function startShop(open: Open): Promise<string> {
  const { url } = open(await listen(createServer((_, response) => response.end('{}'))));
  return url;
}

/** Returns a function that sends a PromQL query. `targets`: namespace -> address of an admin port. */
async function startPrometheus(open: Open, targets: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-prometheus-'));
  open({ close: () => rmSync(folder, { recursive: true, force: true }) });
  const named = Object.entries(targets).map(([namespace, target]) => ({
    targets: [target],
    labels: { namespace },
  }));
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ['rules.yaml'],
    scrape_configs: [{ job_name: 'shopward', static_configs: named }],
  };
  writeFileSync(path.join(folder, 'prometheus.yaml'), JSON.stringify(config));
  writeFileSync(path.join(folder, 'rules.yaml'), shortRules);
  const address = `127.0.0.1:${await freePort()}`;
  const args = ['--config.file=prometheus.yaml', '--log.level=warn', `--web.listen-address=${address}`];
  const child = spawn(prometheus ?? '', args, { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = once(child, 'close');
  open({ close: () => child.kill('SIGKILL') && ended });
  return async (query: string): Promise<Firing> => {
    const url = `http://${address}/api/v1/query?${new URLSearchParams({ query })}`;
    const answer = await fetch(url).catch(() => undefined);
    return answer?.ok ? ((await answer.json()) as { data: { result: Firing } }).data.result : [];
  };
}

test.skipIf(prometheus === undefined)(
  'a running Prometheus fires the alerts of faulty proxies only',
  { timeout: 300_000 },
  async (context) => {
    const open = closingAtEnd(context);
    const start = async (upstream: string | undefined) => {
      const proxy = await startShopwardHere({
        rows: ['GET /secret'],
        upstream: upstream ?? (await startShop(open)),
      });
      open({ close: () => proxy.stop() });
      return proxy;
    };
    const proxies = {
      ShopwardUpstreamDown: await start(`http://127.0.0.1:${await freePort()}`),
      ShopwardUnusualRefusals: await start(undefined),
      ShopwardListNotReloaded: await start(undefined),
      none: await start(undefined),
    };
    const gone = `127.0.0.1:${await freePort()}`;
    const targets = Object.entries(proxies).map(
      ([fault, { adminPort }]) => [fault, `127.0.0.1:${adminPort}`] as const,
    );
    const ask = await startPrometheus(open, { ...Object.fromEntries(targets), ShopwardDown: gone });
    writeFileSync(proxies.ShopwardListNotReloaded.listFile, 'groups: [');
    const forged = issueToken(makeSigner('RS256'));
    const good = proxies.none.issueToken();
    const send = ([fault, { url }]: [string, { url: string }]) => {
      const tokens = fault === 'ShopwardUnusualRefusals' ? [forged, forged, good] : [good, good, good];
      return tokens.map((token) =>
        fetch(`${url}/secret`, { headers: { Authorization: `Bearer ${token}` } })
          .then((response) => response.arrayBuffer())
          .catch(() => {}),
      );
    };
    let isOver = false;
    // Each round waits for the last one, so that a busy machine is not flooded.
    const traffic = (async () => {
      for (; !isOver; await sleep(100)) await Promise.all(Object.entries(proxies).flatMap(send));
    })();
    open({
      close() {
        isOver = true;
        return traffic;
      },
    });
    await eventually(
      'the alerts',
      async () => {
        const firing = await ask('ALERTS{alertstate="firing"}');
        const fired = new Set(firing.map(({ metric }) => `${metric.namespace}: ${metric.alertname}`));
        const { none: _, ...faulty } = proxies;
        const expected = Object.keys(faulty);
        context.expect(expected.filter((fault) => fired.has(`none: ${fault}`))).toEqual([]);
        return [...expected, 'ShopwardDown'].every((fault) => fired.has(`${fault}: ${fault}`)) || undefined;
      },
      200_000,
    );
  },
);
