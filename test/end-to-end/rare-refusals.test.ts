import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { FilterDefinition } from '../../src/app/filter-definition.ts';
import { filterDefinitions } from '../../src/app/filters.ts';
import { secretsOf } from '../../src/app/secrets.ts';
import { type App, createApp } from '../../src/app.ts';
import { fileValidators } from '../../src/cli/file-validators.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { eventually } from '../harness/eventually.ts';
import { exchangeRaw, type RawResponse } from '../harness/raw-client.ts';
import { makeSigner, publicPem } from '../unit/access/signing.ts';
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
let shop: http.Server;
let folder: string;
let app: App;
let port: number;
let adminUrl: string;
/** Error lines of the log. */
const faults: object[] = [];
const delayed: http.ServerResponse[] = [];

beforeAll(async () => {
  shop = http.createServer((request, response) => {
    if (request.url?.startsWith('/slow')) delayed.push(response);
    else request.resume().on('end', () => response.end('{}'));
  });
  shop.listen(0, '127.0.0.1');
  await once(shop, 'listening');
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-refusals-'));
  await writeFile(path.join(folder, 'public.pem'), publicPem(makeSigner('RS256')));
  const settings = {
    listen: { host: '127.0.0.1', port: 0, drainDelay: '0s' },
    admin: { host: '127.0.0.1', port: 0 },
    limits: { inFlight, clientShare: 100, bodyTimeout: '1s' },
    upstream: { url: `http://127.0.0.1:${(shop.address() as AddressInfo).port}` },
    protectedResources: path.join(import.meta.dirname, '../../config/protected-resources.yaml'),
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
  app = await createApp({
    config: loaded.config,
    protectedList: { text: loaded.files.find(({ role }) => role === 'protected-resources')?.text ?? '' },
    secrets: secretsOf(loaded),
    log: Object.assign(createLog('silent'), { error: (line: object) => void faults.push(line) }),
    filters: [...filterDefinitions, buggy],
  });
  const addresses = await app.listen();
  port = Number(new URL(addresses.url).port);
  adminUrl = addresses.adminUrl ?? '';
});
afterAll(async () => {
  for (const response of delayed) response.end();
  await app?.close();
  shop?.close();
  await rm(folder, { recursive: true, force: true });
});

const put = (start: string, length: number, sent: string) =>
  exchangeRaw(
    port,
    `PUT ${start} HTTP/1.1\r\nHost: shop.example\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n${sent}`,
  );
/** A path with an escape, a long segment, and a token as id. */
const odd = `/%c3%a4/${'x'.repeat(90)}/refresh-tokens/my-secret`;

const provocations: Readonly<Record<string, () => Promise<RawResponse>>> = {
  'request-timeout': () => put(`${odd}?query=secret`, 10, 'x'),
  async overloaded() {
    // A slot of an earlier refused request may not be free yet.
    await eventually('the limit is reached', async () => {
      for (let i = delayed.length; i < inFlight; i++)
        void exchangeRaw(port, 'GET /slow HTTP/1.1\r\nHost: shop.example\r\n\r\n').catch(() => {});
      await sleep(100);
      return delayed.length === inFlight || undefined;
    });
    const refused = await put(`${odd}?query=secret`, 1, 'x');
    for (const response of delayed.splice(0)) response.end();
    return refused;
  },
  'internal-error': () => put(`/buggy${odd}?query=secret`, 1, 'x'),
};

it('the table covers all refusals that are not provoked elsewhere', () => {
  expect(Object.keys(provocations).sort()).toEqual([...provokedElsewhere].sort());
});

it.each([
  ['request-timeout', 408, 'slow-body', '/%C3%A4/…/refresh-tokens/…'],
  // Refused before the path was parsed, so only its plain start is kept.
  ['overloaded', 503, 'in-flight', '/…'],
  ['internal-error', 500, 'ERR_BUG', '/buggy/%C3%A4/…/refresh-tokens/…'],
])('%s has an id, and a record with method, cut path and the rule', async (name, status, reason, cutPath) => {
  const response = await provocations[name]?.();
  expect(response?.status).toBe(status);
  const [id = '', ...more] = response?.fields('x-request-id') ?? [];
  expect([id, more]).toEqual([expect.stringMatching(/^[\w-]{36}$/), []]);
  expect(response?.body.toString()).not.toContain('bug');
  const found = await eventually('its record', async () => {
    const answer = await fetch(`${adminUrl}/api/decisions/search?id=${id}`);
    const { decisions } = (await answer.json()) as { decisions: readonly Record<string, unknown>[] };
    return decisions[0];
  });
  expect(found).toMatchObject({
    ...{ requestId: id, decision: 'refused', status, rejection: name, reason },
    ...{ method: 'PUT', path: cutPath },
  });
  expect(JSON.stringify(found)).not.toContain('secret');
  // docs/reasons.md: the log has the stack.
  const stacks = faults.filter((fault) => 'requestId' in fault && fault.requestId === id);
  expect(stacks).toEqual(
    name === 'internal-error' ? [expect.objectContaining({ err: expect.any(Error) })] : [],
  );
});
