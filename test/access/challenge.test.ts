import { describe, expect, it } from 'vitest';
import { buildChallenge } from '../../src/access/authenticate.ts';

describe('buildChallenge', () => {
  it.each([
    ['no credentials', {}, 'Bearer realm="Access to shop API"'],
    [
      'a bad token',
      { error: 'invalid_token' as const },
      'Bearer realm="Access to shop API", error="invalid_token"',
    ],
    [
      'too few scopes',
      { error: 'insufficient_scope' as const, scopes: ['analyst', 'admin'] },
      'Bearer realm="Access to shop API", error="insufficient_scope", scope="analyst admin"',
    ],
    ['no scopes', { scopes: [] }, 'Bearer realm="Access to shop API"'],
    [
      'metadata',
      { resourceMetadataUrl: 'https://api.shop.example/.well-known/oauth-protected-resource' },
      'Bearer realm="Access to shop API", resource_metadata="https://api.shop.example/.well-known/oauth-protected-resource"',
    ],
    [
      'quotes and backslashes',
      { scopes: ['a"b\\c'] },
      'Bearer realm="Access to shop API", scope="a\\"b\\\\c"',
    ],
    [
      'what cannot stand in a field',
      { scopes: ['a\r\nX: y\u00fc'] },
      'Bearer realm="Access to shop API", scope="a??X: y?"',
    ],
  ])('%s', (_, challenge, expected) => {
    expect(buildChallenge(challenge)).toBe(expected);
  });
});
