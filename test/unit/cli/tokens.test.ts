import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runTokens } from '../../../src/cli/tokens.ts';
import type { Redis } from '../../../src/redis/redis.ts';
import { newFamily } from '../../../src/refresh-tokens/issue.ts';
import { RedisTokenStore } from '../../../src/refresh-tokens/redis-store.ts';
import { createDigests } from '../../../src/refresh-tokens/token-digest.ts';
import { freePort } from '../../harness/free-port.ts';
import { type SingleRedis, startRedis } from '../../harness/redis-processes.ts';
import { nextCertificate, testCertificate, testKey } from '../../harness/tls-fixture.ts';
import { connect } from '../refresh-tokens/stores.ts';

const directory = mkdtempSync(join(tmpdir(), 'shopward-tokens-'));
const digestKey = 'a key of this deployment';
const digests = createDigests(digestKey);
let server: SingleRedis;
let redis: Redis;
let store: RedisTokenStore;

beforeAll(async () => {
  server = await startRedis({ settings: {} });
  redis = await connect(server.url);
  store = new RedisTokenStore({ redis, lifetimeMs: 3_600_000, retentionMs: 'keep' });
});
afterAll(async () => {
  await redis.close();
  await server.close();
  rmSync(directory, { recursive: true });
});

async function run(
  action: string,
  options: object = {},
  more = `store: { url: "${server.url}", timeout: 10s }`,
) {
  const folder = mkdtempSync(join(directory, 'run-'));
  writeFileSync(join(folder, 'protected-resources.yaml'), 'groups: { A: [GET /a] }\ncomplete: true\n');
  const config = join(folder, 'shopward.yaml');
  const keys = `auth: { algorithms: [HS256], keys: { secret: "${'s'.repeat(40)}" } }`;
  const tokens = more.includes('refreshTokens') ? '' : `refreshTokens: { digestKey: "${digestKey}" }`;
  writeFileSync(config, [keys, tokens, more, ''].join('\n'));
  const lines: { out: string[]; err: string[] } = { out: [], err: [] };
  const code = await runTokens(
    action,
    { config, ...options },
    { out: (text) => lines.out.push(text), err: (text) => lines.err.push(text), env: {}, cwd: folder },
  );
  return { code, ...lines };
}

async function issue(name: string, subject: string, lifetimeMs = 3_600_000) {
  const [token, owner] = [digests.ofToken(name), digests.ofSubject(subject)];
  const { generation } = await store.generationFor(owner, lifetimeMs);
  await store.record(token, { subject: owner, generation, family: newFamily(), lifetimeMs });
  return token;
}

// Concurrent with the others: the command waits five seconds for Redis.
test.concurrent('a Redis that is away: exit code 1 and the cause', async () => {
  const result = await run('list', {}, `store: { url: "redis://127.0.0.1:${await freePort()}" }`);
  const text = /^store: Redis cannot be used \(ECONNREFUSED 127\.0\.0\.1:\d+\): look at store\.url/;
  expect(result).toEqual({ code: 1, out: [], err: [expect.stringMatching(text)] });
});

test.concurrent('lists, revokes and purges tokens, and prints no token or subject', async ({ expect }) => {
  const own = [await issue('def50201', 'DE--1'), await issue('def50202', 'DE--1')];
  await issue('def50203', 'DE--2');
  const listed = await run('list', { subject: 'DE--1' });
  expect([listed.code, listed.out.length, listed.out.at(-1)]).toEqual([0, 3, '2 refresh tokens']);
  expect(listed.out.join('\n')).not.toMatch(/def5020|DE--/);
  for (const token of own) expect(listed.out.join('\n')).toContain(`${token}  valid`);
  expect((await run('list')).out.at(-1)).toBe('3 refresh tokens');

  expect(await run('revoke', { subject: 'DE--1' })).toMatchObject({ code: 0, err: [] });
  const states = async (subject: string) =>
    (await run('list', { subject, json: true })).out.map((line) => JSON.parse(line).state);
  expect([await states('DE--1'), await states('DE--2')]).toEqual([['revoked', 'revoked'], ['valid']]);
  expect((await store.generationOf(digests.ofSubject('DE--1'))) > 0).toBe(true);

  await issue('def50204', 'DE--2', 1);
  await expect.poll(() => states('DE--2')).toContain('expired');
  expect((await run('purge-expired', { subject: 'DE--1' })).out).toEqual([
    'deleted 0 expired refresh tokens',
  ]);
  expect((await run('purge-expired')).out).toEqual(['deleted 1 expired refresh token']);
  expect(await states('DE--2')).toEqual(['valid']);
});

test.concurrent('a Redis with a private CA: trusted by store.tls.ca, refused with another one', async ({
  expect,
}) => {
  const [ca, other] = [join(directory, 'ca.pem'), join(directory, 'other.pem')];
  const keyFile = join(directory, 'key.pem');
  for (const [i, file] of [ca, other, keyFile].entries())
    writeFileSync(file, [testCertificate, nextCertificate, testKey][i] ?? '');
  const files = { 'tls-cert-file': ca, 'tls-key-file': keyFile, 'tls-ca-cert-file': ca };
  const settings = { ...files, 'tls-auth-clients': 'no' };
  const secure = await startRedis({ tls: true, settings });
  const listed = (file: string) =>
    run('list', {}, `store: { url: "${secure.url}", timeout: 10s, tls: { ca: "${file}" } }`);
  expect(await listed(ca)).toEqual({ code: 0, out: ['0 refresh tokens'], err: [] });
  const text = /\(certificate: [A-Z_]+\): look at store\.url, store\.tls/;
  expect(await listed(other)).toEqual({ code: 1, out: [], err: [expect.stringMatching(text)] });
  await secure.close();
});

test.concurrent.for([
  ['an unknown action', 'drop', {}, undefined, 2, /no such action/],
  ['revoke without a subject', 'revoke', {}, undefined, 2, /--subject/],
  ['the memory store', 'list', {}, 'store: { url: memory }', 1, /only the running process/],
  ['the feature off', 'list', {}, 'refreshTokens: false', 1, /refreshTokens is false/],
  ['a broken configuration', 'list', {}, 'nonsense: 1', 78, /nonsense/],
] as const)('refuses %s', async ([, action, options, more, code, text]) => {
  const result = await run(action, options, more);
  expect([result.code, result.out]).toEqual([code, []]);
  expect(result.err.join('\n')).toMatch(text);
});
