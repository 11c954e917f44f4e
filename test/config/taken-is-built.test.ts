import { readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createApp } from '../../src/app.ts';
import { validateConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { createLog } from '../../src/telemetry/log.ts';

const listFile = path.join(import.meta.dirname, '../../config/protected-resources.yaml');
const protectedList = readFileSync(listFile, 'utf8');
const log = createLog('silent');

const odd = fc.constantFrom(
  ...['..', '.', 'a.', '*', '**', ':x', '', 'a;b', '%61', '%2F', '%5c', '%ff', '%', '%C3%A9', '%20', 'é'],
  ...['__proto__', "x'y", '<id>', '{id', 'x{id}', '{_x}', '{a-b}', 'a{2}', 'CARTS', '{id}'],
);
const segment = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('carts', 'a.b', '{id}', '{cart_id}') },
  { weight: 2, arbitrary: odd },
  { weight: 1, arbitrary: fc.string({ maxLength: 4 }) },
);
const somePath = fc
  .array(segment, { minLength: 1, maxLength: 3 })
  .map((segments) => `/${segments.join('/')}`);
const someField = fc.oneof(
  fc.constantFrom(
    'Authorization',
    'Host',
    'X-Real-IP',
    'CF-Connecting-IP',
    'If-Match',
    'te',
    'Cookie',
    'X_Y',
  ),
  fc.string({ maxLength: 8 }),
);
const someSecret = fc.oneof(
  fc.string({ minLength: 20, maxLength: 60 }),
  fc.constant(`-----BEGIN PUBLIC KEY-----${'A'.repeat(40)}`),
);
const endpoint = fc.record({
  kind: fc.constantFrom('issue', 'exchange', 'revoke'),
  method: fc.constantFrom('POST', 'DELETE'),
  path: somePath,
});

/** One setting at a time is an odd one, or most would never be taken. */
const written: fc.Arbitrary<object> = fc.oneof(
  somePath.map((one) => ({ request: { encodedSlash: [one] } })),
  somePath.map((one) => ({ request: { ignoredPrefixes: [one] } })),
  somePath.map((one) => ({ protectedResourcesPath: one })),
  somePath.map((one) => ({ urlResolver: { path: one } })),
  somePath.map((one) => ({ entityTags: { resources: [{ collection: one, member: `${one}/{of}` }] } })),
  endpoint.map((one) => ({ refreshTokens: { endpoints: [one] } })),
  someField.map((one) => ({ trustedFields: [one] })),
  someField.map((subject) => ({
    auth: { keys: { jwks: 'https://shop.example/keys' }, forward: { subject } },
  })),
  someSecret.map((secret) => ({ auth: { algorithms: ['HS256'], keys: { secret } } })),
  fc.string().map((subject) => ({ auth: { keys: { jwks: 'https://shop.example/keys' }, subject } })),
);

it('what is taken can be built: no configuration passes the check and keeps the proxy from starting', async () => {
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(written, async (given) => {
      const auth = { keys: { jwks: 'https://shop.example/keys' } };
      const { config, problems } = validateConfig({ admin: false, auth, ...given });
      if (problems.some(({ severity }) => severity !== 'warning')) return;
      taken += 1;
      const app = await createApp({
        config: { ...config, protectedResources: listFile } as Config,
        protectedList,
        secrets: { tls: undefined, issuers: [], adminToken: undefined, problems: [] },
        log,
      });
      await app.close(0);
    }),
    { numRuns: 300 },
  );
  expect(taken).toBeGreaterThan(50);
});
