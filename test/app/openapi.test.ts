import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, it } from 'vitest';
import { describeAdmin } from '../../src/admin/openapi-endpoints.ts';
import { buildOpenApi } from '../../src/app/openapi.ts';
import { validateConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { rejectionTable } from '../../src/http/rejection.ts';

function configOf(more: object): Config {
  const { config, problems } = validateConfig({
    upstream: { url: 'http://glue.internal' },
    auth: { keys: { jwks: 'https://shop.example/keys' } },
    ...more,
  });
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  return config as Config;
}

interface ResolverOperation {
  readonly parameters: readonly object[];
  readonly responses: Readonly<Record<string, { readonly content?: object }>>;
}

const form = [{ kind: 'exchange', method: 'POST', path: '/token', format: 'form' }];
const configs: readonly (readonly [string, object])[] = [
  ['as it comes', {}],
  ['negotiated', { errors: { format: 'negotiate' } }],
  ['as problems', { errors: { format: 'problem' }, publicUrl: 'https://api.shop.example' }],
  ['plain', { errors: { format: 'json' }, urlResolver: false, refreshTokens: false }],
  ['OAuth', { refreshTokens: { endpoints: form } }],
  ['every refusal of one status', { rejections: { 'url-missing': { status: 404 } }, urlResolver: {} }],
];

/** One for all documents: it compiles the schema of OpenAPI once. */
const validator = new Validator();

describe('the OpenAPI document', () => {
  it.each(configs)('is valid %s, and has each refusal', async (_what, more) => {
    const document = buildOpenApi(configOf(more), '1.2.3');
    const { valid, errors } = await validator.validate(structuredClone(document));
    expect([valid, errors]).toEqual([true, undefined]);
    const { responses } = document.components as { responses: object };
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(Object.keys(rejectionTable)));
  });

  it('says of paths what stands in them, and of which endpoints they are', () => {
    const endpoints = [
      { kind: 'revoke', method: 'DELETE', path: '/refresh-tokens/{id}' },
      { kind: 'exchange', method: 'POST', path: '/token', format: 'form' },
      { kind: 'issue', method: 'POST', path: '/token', format: 'form' },
    ];
    const { paths } = buildOpenApi(configOf({ refreshTokens: { endpoints } }), '1') as {
      paths: Record<string, Record<string, { summary?: string; responses?: object }>>;
    };
    expect(paths['/refresh-tokens/{id}']).toMatchObject({
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
      delete: {},
    });
    expect(paths['/token']).not.toHaveProperty('parameters');
    expect(paths['/token']?.post?.summary).toBe(
      'The shop’s endpoint that refreshes tokens, each once, and issues tokens',
    );
    expect(Object.keys(paths['/token']?.post?.responses ?? {})).toEqual(['2XX', 'default']);
    expect(JSON.stringify(paths['/token'])).toContain('responses/oauth');
    expect(JSON.stringify(paths['/refresh-tokens/{id}'])).toContain('responses/refusal');
  });

  it('says of the resolver what is asked and what is answered, in the shop’s envelope', () => {
    const resolverOf = (urlResolver: object) => {
      const { paths, servers } = buildOpenApi(configOf({ urlResolver }), '1') as Record<string, never>;
      expect(servers).toBeUndefined();
      const operations = paths as unknown as Record<string, { readonly get: ResolverOperation }>;
      const operation = operations['/url-resolver']?.get;
      if (operation === undefined) throw new Error('no resolver');
      const { parameters, responses } = operation;
      return { parameters, responses, content: responses['200']?.content };
    };
    const { parameters, responses, content } = resolverOf({});
    expect(parameters).toMatchObject([
      { name: 'url', in: 'query', required: true },
      { name: 'Accept-Language', in: 'header' },
    ]);
    expect(parameters[1]).not.toHaveProperty('required');
    expect(Object.keys(responses)).toEqual(['200', '304', 'default']);
    const mapping = {
      required: ['entityType', 'entityId'],
      properties: {
        entityType: { enum: ['abstract-products', 'category-nodes', 'cms-pages', 'merchants'] },
      },
    };
    expect(content).toMatchObject({
      'application/vnd.api+json': {
        schema: {
          required: ['data', 'links'],
          properties: {
            data: {
              ...{ minItems: 1, maxItems: 1 },
              items: { required: ['type', 'id', 'attributes', 'links'], properties: { attributes: mapping } },
            },
          },
        },
      },
    });
  });

  it('says of the shop’s own documents which members may be missing', () => {
    const { paths } = buildOpenApi(configOf({ publicUrl: 'https://api.shop.example' }), '1');
    const text = JSON.stringify(paths);
    expect(text).toContain('"required":["group","method","path","scopes"]');
    expect(text).toContain('"required":["resource","bearer_methods_supported"]');
    expect(text).toContain('{"enum":["header","query"]}');
  });

  it('describes refusals by what is written', () => {
    const { components } = buildOpenApi(configOf({}), '1') as { components: { responses: object } };
    const { responses } = components as { responses: Record<string, { content: object }> };
    const { content } = responses['if-match-invalid'] ?? {};
    expect(content).toMatchObject({ 'application/vnd.api+json': { schema: { required: ['errors'] } } });
    expect(JSON.stringify(content)).toContain('"code":{"const":"006"}');
  });
});

it('the document of the admin port has every endpoint that it is given', async () => {
  const run = () => ({ status: 200, body: {} });
  const document = describeAdmin('1.2.3', [
    {
      ...{ method: 'GET', path: '/api/list', run },
      parameters: { kind: { type: 'string', enum: ['all', 'met'], description: 'Which.' } },
    },
    { method: 'POST', path: '/api/list', run },
    { method: 'GET', path: '/api/decisions', stream: () => {} },
  ]) as { paths: Record<string, object> };
  expect((await validator.validate(structuredClone(document))).valid).toBe(true);
  expect(Object.keys(document.paths['/api/list'] ?? {})).toEqual(['get', 'post']);
  expect(document.paths['/api/list']).toMatchObject({
    get: {
      parameters: [
        {
          name: 'kind',
          in: 'query',
          description: 'Which.',
          schema: { type: 'string', enum: ['all', 'met'] },
        },
      ],
    },
  });
  expect(JSON.stringify(document.paths['/api/list'])).toContain('"400"');
});
