import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runRollout } from '../../../src/cli/rollout.ts';
import { finish } from '../../../src/lib/slices.ts';
import type { Counting, MetRow } from '../../../src/rollout/counts.ts';
import { makeReport, type RolloutReport } from '../../../src/rollout/report.ts';
import { dayMs } from '../../../src/telemetry/decision-counts.ts';
import { eventually } from '../../harness/eventually.ts';
import { listen } from '../../harness/listen.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { type RedisProcess, startRedisProcess } from '../../harness/redis-server.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';
import { runCommand } from '../cli/command-run.ts';
import { makeFolder } from '../config/config-folder.ts';

let upstream: RecordingUpstream;
let redis: RedisProcess;
const running: Shopward[] = [];

beforeAll(async () => {
  redis = await startRedisProcess();
  upstream = await startRecordingUpstream(() => answer('{}'));
});
afterAll(async () => {
  for (const one of running) await one.kill();
  await upstream?.close();
  await redis?.close();
});

async function start(config: object = {}): Promise<Shopward> {
  const one = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: [{ match: 'GET /carts/{id}', observe: true }, 'GET /secret'],
    config: { store: { url: `redis://127.0.0.1:${redis.port}` }, ...config },
  });
  running.push(one);
  return one;
}

const send = (one: Shopward, target: string, fields: readonly string[] = []) =>
  exchangeRaw(
    one.port,
    [`GET ${target} HTTP/1.1`, 'Host: shop.example', 'Connection: close', ...fields, '', ''].join('\r\n'),
  );
const ask = async (one: Shopward) =>
  (await (await fetch(`${one.adminUrl}/api/rollout`)).json()) as RolloutReport;

it('the counts of a stopped replica and of one with workers are added up; the verb prints them', async () => {
  const owner = { publicUrl: 'https://shop.example' };
  const [one, other] = [await start(owner), await start({ ...owner, workers: 2 })];
  await send(one, '/carts/1', ['User-Agent: app/1']);
  await send(one, '/carts/1', ['User-Agent: app/1']);
  await send(one, '/secret');
  await one.stop();
  for (let i = 0; i < 4; i++) await send(other, '/carts/2', ['User-Agent: browser/2']);
  const report = await eventually('all of them', async () => {
    const told = await ask(other);
    return told.rows[0]?.wouldBeRefused === 6 && told.rows.length === 2 ? told : undefined;
  });
  expect(report.rows[0]).toMatchObject({ row: 'GET /carts/{id}', verdict: 'refuses', refused: 0 });
  expect(report.rows[0]?.reasons[0]?.clients.named.map(({ userAgent }) => userAgent).sort()).toEqual([
    'app/1',
    'browser/2',
  ]);
  expect(report.rows[1]).toMatchObject({ row: 'GET /secret', verdict: 'enforced', refused: 1 });

  const config = path.join(makeFolder({ 'public.pem': '' }), 'other.yaml');
  writeFileSync(
    config,
    `auth: { algorithms: [HS256], keys: { secret: "${'s'.repeat(40)}" } }\nadmin: { port: ${other.adminPort} }\nprotectedResources: ${other.listFile}\n`,
  );
  const { code, out } = await runCommand((io) => runRollout({ config }, io));
  expect(code).toBe(1);
  expect(out[0]).toBe('NOT SAFE: of the observed rows: 1 would refuse requests');
  expect(out.join('\n')).toContain('next (either): Sign in.');
});

it('/api/rollout is 404 with rollout: false', async () => {
  const one = await start({ rollout: false, store: { url: 'memory', prefix: 'odd' } });
  expect((await fetch(`${one.adminUrl}/api/rollout`)).status).toBe(404);
});

it('docs/rollout.md shows what the verb prints', async () => {
  const at = (text: string) => Date.parse(`2026-03-${text}Z`);
  const day = (text: string) => String(Math.floor(at(text) / dayMs));
  const nowMs = at('09T08:00');
  const row = (method: 'GET' | 'PATCH', template: string) => ({ method, template, observe: true });
  const rows = [
    row('PATCH', '/carts/{cart_id}'),
    row('GET', '/orders/{order_id}'),
    row('GET', '/ssp-assets/{id}'),
    row('GET', '/customers/{id}'),
  ];
  const met = (since: string, requests: number): MetRow => ({
    ...{ rule: '', sinceMs: at(since), lastSeenMs: nowMs, requests },
  });
  const counting: Counting = {
    entries: [
      {
        ...{
          kind: 'observed',
          rejection: 'if-match-missing',
          reason: undefined,
          method: 'PATCH',
          route: '/carts/{cart_id}',
        },
        ...{ requests: 41, sinceMs: at('01T08:12'), lastSeenMs: at('09T07:58'), beyond: 0 },
        days: Object.fromEntries([6, 5, 4, 7, 3, 2, 1].map((count, i) => [day(`0${i + 3}T00:00`), count])),
        clients: { 'mobile-app\nShopApp/3.1': 40, '\ncurl/8.5.0': 1 },
      },
    ],
    rows: {
      'PATCH /carts/{cart_id}': met('01T08:05', 97),
      'GET /orders/{order_id}': met('05T16:20', 5),
      'GET /customers/{id}': met('01T08:01', 12_304),
    },
    wholeSinceMs: at('01T08:00'),
    why: 'counting began then',
    problems: [],
  };
  const report = finish(makeReport(counting, rows, false, nowMs));
  const admin = http.createServer((_incoming, response) => response.end(JSON.stringify(report)));
  const { port, close } = await listen(admin);
  const config = path.join(
    makeFolder({ 'list.yaml': 'groups: { A: [GET /a] }\ncomplete: true\n' }),
    'shopward.yaml',
  );
  writeFileSync(
    config,
    `auth: { algorithms: [HS256], keys: { secret: "${'s'.repeat(40)}" } }\nadmin: { port: ${port} }\nprotectedResources: list.yaml\n`,
  );
  const { out, err } = await runCommand((io) => runRollout({ config }, io));
  expect(err).toEqual([]);
  await close();
  const page = readFileSync(path.join(import.meta.dirname, '../../../docs/rollout.md'), 'utf8');
  const shown = /\$ shopward rollout\n((?: {4}.*\n|\n)+)/.exec(page)?.[1] ?? '';
  expect(out).toEqual(shown.trimEnd().replaceAll(/^ {4}/gm, '').split('\n'));
});

it('says to set admin.port if there is no admin port', async () => {
  const cwd = makeFolder({
    'config/shopward.yaml': `auth: { algorithms: [HS256], keys: { secret: "${'s'.repeat(40)}" } }\nadmin: false\n`,
    'config/protected-resources.yaml': 'groups: { A: [GET /a] }\ncomplete: true\n',
  });
  const { code, err } = await runCommand((io) => runRollout({}, io), { cwd });
  expect([code, err[0]]).toEqual([2, expect.stringMatching(/^admin is false .* set admin.port/)]);
});
