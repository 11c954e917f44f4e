import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, it } from 'vitest';
import { describeAdmin } from '../../src/admin/openapi-endpoints.ts';
import { buildOpenApi } from '../../src/app/openapi.ts';
import { describeRefusals } from '../../src/app/openapi-refusals.ts';
import { validateConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { rejectionTable } from '../../src/http/rejection.ts';

const configOf = (more: object) =>
  (
    validateConfig({
      upstream: { url: 'http://glue.internal' },
      auth: { keys: { jwks: 'https://shop.example/keys' } },
      ...more,
    }) as { config: Config }
  ).config;

const form = [{ kind: 'exchange', method: 'POST', path: '/token', format: 'form' }];
const configs: readonly (readonly [string, object])[] = [
  ['as it comes', {}],
  ['negotiated, with links', { errors: { format: 'negotiate', typeBase: 'https://docs.shop.example/#' } }],
  ['as problems', { errors: { format: 'problem' }, publicUrl: 'https://api.shop.example' }],
  ['plain', { errors: { format: 'json' }, urlResolver: false, refreshTokens: false }],
  ['OAuth', { refreshTokens: { endpoints: form } }],
  ['another resolver', { urlResolver: { envelope: { entityType: '/type', entityId: '/id' } } }],
  ['every refusal of one status', { rejections: { 'url-missing': { status: 404 } }, urlResolver: {} }],
];

describe('the OpenAPI document', () => {
  it.each(configs)('is valid %s, and has each refusal', async (_what, more) => {
    const document = buildOpenApi(configOf(more), '1.2.3');
    const { valid, errors } = await new Validator().validate(structuredClone(document));
    expect([valid, errors]).toEqual([true, undefined]);
    const { responses } = document.components as { responses: object };
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(Object.keys(rejectionTable)));
  });

  it('says of a token endpoint what clients of OAuth are answered', () => {
    const { paths } = buildOpenApi(configOf({ refreshTokens: { endpoints: form } }), '1.2.3');
    const operation = JSON.stringify((paths as Record<string, unknown>)['/token']);
    expect(operation).toContain('oauth.refresh-token-invalid');
    expect(operation).not.toContain('/refresh-token-invalid');
  });

  it('describes refusals by what is written', () => {
    const refusal = describeRefusals(configOf({})).get('if-match-invalid');
    expect(refusal?.content).toEqual({
      'application/vnd.api+json': expect.objectContaining({ required: ['errors'] }),
    });
    expect(JSON.stringify(refusal?.content)).toContain('{"type":"string","const":"006"}');
  });
});

it('the document of the admin port has every endpoint that it is given', async () => {
  const run = () => ({ status: 200, body: {} });
  const document = describeAdmin('1.2.3', [
    { method: 'GET', path: '/api/list', run },
    { method: 'POST', path: '/api/list', run },
    { method: 'GET', path: '/api/decisions', stream: () => {} },
  ]) as { paths: Record<string, object> };
  expect((await new Validator().validate(structuredClone(document))).valid).toBe(true);
  expect(Object.keys(document.paths['/api/list'] ?? {})).toEqual(['get', 'post']);
});
