import { it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** P9: file systems and some routers ignore case, and dots and spaces at the end. Caddy CVE-2026-27587, Shiro CVE-2020-17523. */
it.each([
  ...['/ORDERS', '/Orders', '/oRDERS/1', '/%4frders', '/%4FRDERS', '/CARTS/1/UP-SELLING-PRODUCTS'],
  ...[
    '/orders.',
    '/orders..',
    '/orders...',
    '/orders.%20',
    '/orders%20',
    '/orders%20%20',
    '/orders%2E',
    '/orders./1',
  ],
  ...['/orders%c2%a0', '/Orders%20;x', '/orders.;x', '/orders;x.', '/customers%20/1/Addresses.'],
  // Unicode's rules for case: the long s is an s, the Kelvin sign a k, the dotless i an i.
  ...['/order%c5%bf', '/ORDER%C5%BF/1', '/w%c4%b1shlists', '/W%C4%B0SHLISTS', '/wi%c5%bfhli%c5%bft%c5%bf;x'],
  ...['/customers/1/addre%c5%bf%c5%bfes', '/index.php/order%c5%bf', '/%c4%b1ndex.phporders'],
])('P9: %s needs a token', async (target) => {
  await stage.demandsToken(request(`GET ${target}`));
});

/** Other names, since this shop has no suffixes. */
it.each(['/orders.json', '/%20orders', '/.orders', '/orders-history', '/xorders'])(
  'P9: %s passes without a token',
  async (target) => {
    await stage.passes(request(`GET ${target}`));
  },
);

it.each(['/orders%09', '/orders%00', '/orders%0a'])('P9: 400 for %s', async (target) => {
  await stage.refuses(request(`GET ${target}`), 400, 'bad-request-target');
});
