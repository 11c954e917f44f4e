import { describe, expect, it } from 'vitest';
import { buildChallenge } from '../../src/access/authenticate.ts';

const realm = 'Access to shop API';

describe('buildChallenge', () => {
  it.each([
    ['no credentials', { realm }, 'Bearer realm="Access to shop API"'],
    [
      'a bad token',
      { realm, error: 'invalid_token' as const },
      'Bearer realm="Access to shop API", error="invalid_token"',
    ],
    [
      'too few scopes',
      { realm, error: 'insufficient_scope' as const, scopes: ['analyst', 'admin'] },
      'Bearer realm="Access to shop API", error="insufficient_scope", scope="analyst admin"',
    ],
    ['no scopes', { realm, scopes: [] }, 'Bearer realm="Access to shop API"'],
    [
      'metadata',
      { realm, resourceMetadataUrl: 'https://api.shop.example/.well-known/oauth-protected-resource' },
      'Bearer realm="Access to shop API", resource_metadata="https://api.shop.example/.well-known/oauth-protected-resource"',
    ],
    ['quotes and backslashes', { realm: 'a"b\\c' }, 'Bearer realm="a\\"b\\\\c"'],
    ['what cannot stand in a field', { realm: 'a\r\nX: y\u00fc' }, 'Bearer realm="a??X: y?"'],
  ])('%s', (_, challenge, expected) => {
    expect(buildChallenge(challenge)).toBe(expected);
  });
});
