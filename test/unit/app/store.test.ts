import { expect, it } from 'vitest';
import { describeMember } from '../../../src/app/store.ts';
import { validateConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';

function memberOf(more: Record<string, unknown> = {}) {
  const { config } = validateConfig({
    upstream: { url: 'http://glue.internal' },
    auth: { keys: { jwks: 'https://shop.example/keys' } },
    ...more,
  }) as { config: Config };
  return describeMember(config);
}

const resource = (path: string, methods: string[]) => ({ collection: '/carts', member: path, methods });
const tracking = (path: string, methods: string[]) =>
  memberOf({ entityTags: { lease: '20s', resources: [resource(path, methods)] } });

it('the owner of a replica is its public URL or, without one, the address of the shop', () => {
  expect(memberOf().owner).toBe('http://glue.internal');
  expect(memberOf({ publicUrl: 'https://api.shop.example' }).owner).toBe('https://api.shop.example');
});

it('the announced resources depend on names of parameters, not on the order of methods', () => {
  expect(tracking('/carts/{id}', ['PATCH', 'DELETE'])).toMatchObject({
    ...{ leaseMs: 20_000, tracked: ['DELETE,PATCH /carts/{id}'] },
  });
  const other = tracking('/carts/{uuid}', ['DELETE', 'PATCH']);
  expect(other).toMatchObject({ tracked: ['DELETE,PATCH /carts/{uuid}'] });
  // A process that does not or cannot guard the collection misses writes to the whole collection.
  const guarded = { ...resource('/carts/{id}', ['PATCH']), batch: 'guarded' };
  const { tracked } = memberOf({ entityTags: { resources: [guarded] } });
  expect(tracked).toEqual(['PATCH /carts/{id} (batch: guarded)']);
  expect(memberOf({ entityTags: false })).toMatchObject({ leaseMs: 0, tracked: [] });
});

it('two digest keys and a missing one have different fingerprints', () => {
  const digestOf = (refreshTokens: object | false) => memberOf({ refreshTokens }).digestKey;
  const digests = [{ digestKey: 'k'.repeat(32) }, { digestKey: 'l'.repeat(32) }, {}].map(digestOf);
  expect(new Set(digests).size).toBe(3);
  for (const digest of digests) expect(digest).toMatch(/^[0-9a-f]{16}$/);
  expect(digestOf(false)).toBe('');
});
