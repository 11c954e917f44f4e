import { expect, it } from 'vitest';
import { createRedactPath, tokenWords } from '../../src/telemetry/exchange-record.ts';

const redactPath = createRedactPath(tokenWords(['/v1/sessions/{session}', '/logout']));

it.each([
  ['/carts/1', '/carts/1'],
  ['/refresh-tokens', '/refresh-tokens'],
  ['/refresh-tokens/mine', '/refresh-tokens/mine'],
  ['/refresh-tokens/s3cret', '/refresh-tokens/…'],
  ['/refresh-tokens//s3cret', '/refresh-tokens//…'],
  ['/x/REFRESH-TOKENS%3Bx/s3cret/', '/x/REFRESH-TOKENS%3Bx/…/'],
  ['/index.phprefresh-tokens/s3cret', '/index.phprefresh-tokens/…'],
  ['/refresh-tokens%2Fs3cret', '/…'],
  ['/v1/Sessions/s3cret', '/v1/Sessions/…'],
  [`/carts/${'x'.repeat(81)}/items`, '/carts/…/items'],
  ['/', '/'],
])('%s is logged as %s', (path, logged) => {
  expect(redactPath(path.slice(1).split('/'))).toBe(logged);
});
