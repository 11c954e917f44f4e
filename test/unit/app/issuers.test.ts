import http from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createIssuers, createShopSubject } from '../../../src/app/issuers.ts';
import { validateConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';
import { listen } from '../../harness/listen.ts';

const jwks = (host: string) => ({ jwks: `https://${host}/keys` });

function create(auth: object, limits: object = {}) {
  const { config, problems } = validateConfig({
    upstream: { url: 'http://glue.internal' },
    ...{ auth, limits },
  }) as { config: Config; problems: readonly object[] };
  expect(problems).toEqual([]);
  const said: [string, object][] = [];
  const level = (name: string) => (fields: object) => void said.push([name, fields]);
  const log = { info: level('info'), warn: level('warn'), error: level('error'), debug: level('debug') };
  return { config, said, ...createIssuers(config, log) };
}

const two = {
  issuers: [
    { issuer: 'https://a.example', name: 'customers', keys: jwks('a.example') },
    { issuer: 'https://b.example', keys: jwks('b.example'), maxTokenAge: '1h' },
  ],
};

it('all issuers share the limits of remembered tokens and of concurrent verifications', () => {
  const rulesOf = (auth: object, limits?: object) =>
    create(auth, limits).issuers.all.map(({ rules }) => [
      ...[rules.name, rules.issuer, rules.maxRememberedTokens, rules.maxVerifying],
      rules.maxTokenAgeMs,
    ]);
  const limits = { inFlight: 101 };
  expect(rulesOf({ keys: jwks('a.example'), maxTokenAge: 'none' }, limits)).toEqual([
    [undefined, undefined, 10_000, 51, undefined],
  ]);
  expect(rulesOf({ ...two, maxTokenAge: '2h' }, limits)).toEqual([
    ['customers', 'https://a.example', 5_000, 26, 7_200_000],
    ['issuer-2', 'https://b.example', 5_000, 26, 3_600_000],
  ]);
});

it('an introspection endpoint without an answer is reported once, and so is its recovery', async () => {
  let status = 500;
  const provider = http.createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ active: false }));
    });
  });
  const { url, close } = await listen(provider);
  onTestFinished(close);
  const { said, issuers, components } = create({
    introspection: { url, clientId: 'shopward', clientSecret: 's'.repeat(32) },
  });
  onTestFinished(() => void components[0]?.close?.());
  const ask = async (token: string) => void (await issuers.all[0]?.introspected?.verify(token));
  await ask('opaque-1');
  await ask('opaque-2');
  expect(said).toEqual([['error', { event: 'introspection-failed', reason: expect.any(String) }]]);
  status = 200;
  // After a fault the endpoint gets no question for a while.
  await expect
    .poll(async () => {
      await ask(`opaque-${Math.random()}`);
      return said.slice(1);
    })
    .toEqual([['info', { event: 'introspection-back' }]]);
});

describe('the subject of a token that the shop issues', () => {
  const subjectOf = (auth: object, claims: object) =>
    createShopSubject(create(auth).config.auth)(claims as never);

  it('with one issuer: the claim alone', () => {
    const auth = { keys: jwks('a.example'), issuer: 'https://a.example' };
    expect(subjectOf(auth, { iss: 'https://other.example', sub: 'DE--21' })).toBe('DE--21');
    expect(subjectOf(auth, {})).toBeUndefined();
  });

  it('with several issuers: differs between issuers, and is undefined for an unknown one', () => {
    const [a, b] = ['https://a.example', 'https://b.example'].map((iss) =>
      subjectOf(two, { iss, sub: 'DE--21' }),
    );
    expect(a).toContain('DE--21');
    expect(b).toContain('DE--21');
    expect(a).not.toBe(b);
    expect(subjectOf(two, { iss: 'https://c.example', sub: 'DE--21' })).toBeUndefined();
    expect(subjectOf(two, { iss: 'https://a.example' })).toBeUndefined();
  });
});
