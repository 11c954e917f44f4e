import { expect, it } from 'vitest';
import { createMetadata } from '../../../src/app/filters.ts';
import { validateConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

it('the metadata name issuers that are reached over TLS', () => {
  const keys = { jwks: 'https://shop.example/keys' };
  const authorizationServers = (auth: object) => {
    const upstream = { url: 'http://glue.internal:8080' };
    const { config } = validateConfig({ upstream, auth, publicUrl: 'https://api.shop.example' }) as {
      config: Config;
    };
    const metadata = createMetadata(config, { inForce: { terms: [], tokenParameters: [] } } as never);
    const answer = metadata.answer(accepted(sampleHead({ url: '/.well-known/oauth-protected-resource' })));
    return JSON.parse(String((answer as { body: string | Buffer }).body)).authorization_servers;
  };
  expect(authorizationServers({ keys, issuer: 'https://login.example' })).toEqual(['https://login.example']);
  expect(authorizationServers({ keys, issuer: 'http://login.example' })).toBeUndefined();
  expect(authorizationServers({ keys })).toBeUndefined();
});
