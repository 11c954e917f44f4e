import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { createScopesReader } from '../../../src/access/claim-paths.ts';
import { createKindCheck } from '../../../src/access/token-kind.ts';
import { createShopSubject } from '../../../src/app/issuers.ts';
import { listIssuers } from '../../../src/config/issuers.ts';
import { validateConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';

const page = readFileSync(path.join(import.meta.dirname, '../../../docs/identity-providers.md'), 'utf8');
const sample =
  /^#+ ([^\n]*)\n(?:(?!^#)[\s\S])*?```yaml\n([^`]*)```\n\n```json\n([^`]*)```\n\nThe user is `([^`]*)`, the scopes are `([^`]*)`\./gm;
const samples = [...page.matchAll(sample)].map(
  ([, name = '', yaml = '', json = '', user = '', scopes = '']) => ({
    ...{ name, yaml, json, user, scopes },
  }),
);

it('the page has six samples, each with a token', () => {
  expect(samples.map(({ name }) => name)).toEqual([
    ...['Keycloak', 'Auth0', 'Amazon Cognito', 'Microsoft Entra', 'Several issuers', 'Opaque tokens'],
  ]);
  expect(page.match(/```yaml/g)).toHaveLength(samples.length);
});

it.each(samples)(
  '$name: the configuration is valid, and reads user and scopes from the token',
  ({ yaml, json, user, scopes }) => {
    const { config, problems } = validateConfig(parse(yaml));
    expect(problems).toEqual([]);
    const { auth } = config as Config;
    const claims = JSON.parse(json) as Record<string, unknown>;
    const issuers = listIssuers(auth);
    const issuer = issuers.find((one) => one.issuer === claims.iss);
    expect(createShopSubject(auth)(claims)).toBe(user);
    expect(createScopesReader(issuer?.scopes ?? [])(claims).join(' ')).toBe(scopes);
    const { audience } = issuer ?? {};
    if (audience !== undefined) expect([claims.aud].flat()).toContain(audience);
  },
);

it('the Cognito sample accepts the access token of the page and refuses its ID token', () => {
  const { yaml = '', json = '' } = samples.find(({ name }) => name === 'Amazon Cognito') ?? {};
  const { auth } = validateConfig(parse(yaml)).config as Config;
  const refuseKind = createKindCheck(auth.tokenType);
  const accessToken = JSON.parse(json) as Record<string, unknown>;
  const { scope, client_id, token_use, ...shared } = accessToken;
  expect(refuseKind(accessToken, true, {})).toBeUndefined();
  expect(refuseKind({ ...shared, token_use: 'id', aud: client_id }, true, {})).toBe('other-kind');
  expect(refuseKind({ ...shared, aud: client_id }, true, {})).toBe('other-kind');
});
