import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const names = [
  ...[
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-Original-URI',
    'X-Forwarded-Uri',
    'X-Forwarded-Path',
    'X-Forwarded-Prefix',
  ],
  ...[
    'X-Forwarded-Method',
    'X-Original-Method',
    'x-original-url',
    'X-ORIGINAL-URL',
    'X_Original_URL',
    'X.Rewrite.Url',
  ],
];

/** P13: an upstream may route by a field where the proxy routes by the path. Symfony CVE-2018-14773, oauth2-proxy GHSA-7x63-xv5r-3p2x. */
it.each(names)('P13: %s does not open a protected path, and is removed', async (name) => {
  await stage.demandsToken(request('GET /orders', [`${name}: /stores`]));
  const { head } = await stage.passes(request('GET /stores', [`${name}: /orders`]));
  expect(head).not.toContain('/orders');
});
