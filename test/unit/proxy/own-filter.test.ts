import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import type { FilterDefinition } from '../../../src/app/filter-definition.ts';
import { filterDefinitions } from '../../../src/app/filters.ts';
import { secretsOf } from '../../../src/app/secrets.ts';
import { type App, createApp } from '../../../src/app.ts';
import { explainRequest } from '../../../src/cli/explain/explain-request.ts';
import { explanationText } from '../../../src/cli/explain/explanation-text.ts';
import { fileValidators } from '../../../src/cli/file-validators.ts';
import { loadConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';
import { reject } from '../../../src/http/rejection.ts';
import { healthOf } from '../../../src/lib/component.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { makeSigner, publicPem } from '../access/signing.ts';

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

const signer = makeSigner('RS256');
const seen: string[] = [];
let shop: http.Server;
let folder: string;
let app: App;
let config: Config;
let listText: string;
let url: string;
let adminUrl: string;

beforeAll(async () => {
  shop = http.createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    request.resume().on('end', () => response.end('{}'));
  });
  shop.listen(0, '127.0.0.1');
  await once(shop, 'listening');
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-filter-'));
  await writeFile(path.join(folder, 'public.pem'), publicPem(signer));
  const settings = {
    listen: { host: '127.0.0.1', port: 0, drainDelay: '0s' },
    admin: { host: '127.0.0.1', port: 0 },
    upstream: { url: `http://127.0.0.1:${(shop.address() as AddressInfo).port}` },
    protectedResources: path.join(import.meta.dirname, '../../../config/protected-resources.yaml'),
    auth: { keys: { files: ['public.pem'] } },
  };
  await writeFile(path.join(folder, 'shopward.yaml'), stringify(settings));
  const loaded = await loadConfig({
    file: 'shopward.yaml',
    env: {},
    cwd: folder,
    validators: fileValidators,
  });
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems));
  config = loaded.config;
  listText = loaded.files.find(({ role }) => role === 'protected-resources')?.text ?? '';
  app = await createApp({
    config,
    protectedList: { text: listText },
    secrets: secretsOf(loaded),
    log: createLog('silent'),
    filters: [...filterDefinitions, closedOnSundays],
  });
  const addresses = await app.listen();
  url = addresses.url;
  adminUrl = addresses.adminUrl ?? '';
});
afterAll(async () => {
  shop.close();
  await rm(folder, { recursive: true, force: true });
});

const order = () =>
  fetch(`${url}/checkout`, { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } });
const readyz = async () => (await fetch(`${adminUrl}/readyz`)).json();

it('a filter from one file appears in requests, /readyz, the console and metrics', async () => {
  expect((await order()).status).toBe(200);
  expect(seen).toEqual(['POST /checkout']);
  expect(JSON.stringify(await readyz())).not.toContain('sundays');

  isSunday = true;
  const refused = await order();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '3600']);
  expect(seen).toHaveLength(1);
  expect((await fetch(`${url}/stores`)).status).toBe(200);

  expect(JSON.stringify(await readyz())).toContain('sundays: the shop is closed');
  const { parts } = (await (await fetch(`${adminUrl}/api/state`)).json()) as { parts: object[] };
  expect(parts).toContainEqual(
    expect.objectContaining({ id: 'sundays', text: 'sundays: the shop is closed', status: 'degraded' }),
  );
  expect(await (await fetch(`${adminUrl}/metrics`)).text()).toMatch(/^shopward_sunday_refusals_total 1$/m);
});

it('explain prints it, given the same list of filters', () => {
  const { list } = parseProtectedList(listText, 'list');
  if (list === undefined) throw new Error('the list is broken');
  const compiled = compileProtectedList(list, config.request);
  const asked = { method: 'POST', target: '/checkout', host: 'shop' };
  const explanation = explainRequest(asked, config, compiled, [...filterDefinitions, closedOnSundays]);
  expect(explanationText(explanation, []).join('\n')).toMatch(/sundays +refused on Sundays: 503 code/);
});

it('it is started, reloaded and closed with the app', async () => {
  await app.reload();
  await app.close(0);
  expect(events).toEqual(['started', 'reloaded', 'closed']);
});
