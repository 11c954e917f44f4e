import { expect, test } from 'vitest';
import { createOwnPathTest } from '../../../src/routes/path-interpretations.ts';

/** The shop strips version segments and the configured prefix `/index.php`. */
test.each([
  ['/url-resolver', false],
  ['/v0/url-resolver', true],
  ['/v0/url-resolver/', true],
  ['/1/url-resolver', true],
  ['/index.php/url-resolver', true],
  ['/index.php/v0/url-resolver', true],
  // At most two strips: one for the prefix, one for versions.
  ['/v0/v1/url-resolver', true],
  ['/v0/v1/v2/url-resolver', false],
  ['/x/url-resolver', false],
  ['/v0/x/url-resolver', false],
  ['/v0/my-url-resolver', false],
  ['/v0/url-resolver/x', false],
  ['//url-resolver', false],
  ['/', false],
])('%s is another way to our own path: %s', (path, isOwn) => {
  const isMeant = createOwnPathTest('/url-resolver', { ignoredPrefixes: ['/index.php'] });
  expect(isMeant({ path, segments: path.slice(1).split('/') })).toBe(isOwn);
});
