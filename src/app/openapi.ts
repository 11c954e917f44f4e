import { metadataPath } from '../access/published-documents.ts';
import type { Config } from '../config/schema.ts';
import { errorMediaTypes } from '../http/rejection.ts';
import type { TokenEndpoint } from '../refresh-tokens/endpoints.ts';
import {
  describeRefusals,
  type Json,
  namesOf,
  type Refusals,
  refusalResponses,
  requestId,
  schemaKey,
} from './openapi-refusals.ts';

/**
 * OpenAPI 3.1 of the responses that shopward itself gives with this configuration: its own paths, and each refusal as a
 * reusable response. Refusals are described by rendering them, so that the document cannot differ from what clients get.
 */
export function buildOpenApi(config: Config, version: string): Json {
  const refusals = describeRefusals(config);
  const schemas: Record<string, unknown> = {};
  const responses: Record<string, unknown> = {};
  for (const [name, refusal] of refusals) {
    const content: Record<string, unknown> = {};
    for (const [mediaType, schema] of Object.entries(refusal.content)) {
      const key = schemaKey(name, mediaType);
      schemas[key] = schema;
      content[mediaType] = { schema: { $ref: `#/components/schemas/${key}` } };
    }
    responses[name] = { description: refusal.text, headers: refusal.headers, content };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'What shopward answers by itself',
      version,
      description:
        'Every other answer is the shop’s. A resource of the shop that a row protects may also be refused with the responses of ' +
        '`components` that are about access tokens, one whose entity tags are tracked with those about If-Match.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    ...(config.publicUrl !== undefined && { servers: [{ url: config.publicUrl }] }),
    tags: [{ name: 'documents' }, { name: 'url-resolver' }, { name: 'tokens' }],
    paths: Object.fromEntries([
      ...describeDocuments(config, refusals),
      ...describeResolver(config, refusals),
      ...describeTokenEndpoints(config, refusals),
    ]),
    components: {
      schemas,
      responses,
      securitySchemes: { accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  };
}

const text = { type: 'string' };
const tagged = { ETag: { description: 'Strong.', schema: text }, 'X-Request-Id': requestId };
const notModified = { description: 'The copy with the tag of If-None-Match is current.', headers: tagged };

function objectOf(properties: Json, optional: readonly string[] = []): Json {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', required, properties };
}

function describeDocuments(config: Config, refusals: Refusals): [string, unknown][] {
  const document = (summary: string, mediaType: string, schema: Json) => ({
    get: {
      tags: ['documents'],
      summary,
      responses: {
        200: { description: summary, headers: tagged, content: { [mediaType]: { schema } } },
        304: notModified,
        ...refusalResponses(namesOf('every'), refusals),
      },
    },
  });
  const attributes = objectOf(
    {
      group: text,
      method: text,
      path: text,
      scopes: { type: 'array', items: text },
      tokenIn: { type: 'array', items: text },
    },
    ['tokenIn'],
  );
  const row = objectOf({ type: { const: 'protected-resources' }, id: text, attributes });
  const names = { type: 'array', items: text };
  const metadata = objectOf(
    {
      resource: { type: 'string', format: 'uri' },
      authorization_servers: names,
      scopes_supported: names,
      bearer_methods_supported: { type: 'array', items: { enum: ['header', 'query'] } },
    },
    ['authorization_servers', 'scopes_supported'],
  );
  const list = objectOf({ data: { type: 'array', items: row } });
  return [
    [config.protectedResourcesPath, document('The protected list', errorMediaTypes.jsonapi, list)],
    [metadataPath, document('Metadata of the protected resource (RFC 9728)', 'application/json', metadata)],
  ];
}

function describeResolver({ urlResolver }: Config, refusals: Refusals): [string, unknown][] {
  if (urlResolver === false) return [];
  const isContract = urlResolver.envelope === 'jsonapi';
  const links = objectOf({ self: text });
  const mapping = objectOf({ entityType: { enum: urlResolver.entityTypes }, entityId: text });
  const element = objectOf({
    type: { const: 'url-resolver' },
    id: { type: 'null' },
    attributes: mapping,
    links,
  });
  const envelope = objectOf({ data: { type: 'array', items: element, minItems: 1, maxItems: 1 }, links });
  const schema = isContract ? envelope : { type: 'object' };
  const mediaType = isContract ? errorMediaTypes.jsonapi : 'application/json';
  const operation = {
    tags: ['url-resolver'],
    summary: 'The resource of a storefront page, by its path',
    parameters: [
      { name: 'url', in: 'query', required: true, schema: text, description: 'Path of the page.' },
      { name: 'Accept-Language', in: 'header', schema: text, description: 'Locale.' },
    ],
    responses: {
      200: { description: 'What the page shows.', headers: tagged, content: { [mediaType]: { schema } } },
      304: notModified,
      ...refusalResponses(namesOf('every', 'resolver', 'forwarded'), refusals),
    },
  };
  return [[urlResolver.path, { get: operation }]];
}

function describeTokenEndpoints({ refreshTokens }: Config, refusals: Refusals): [string, unknown][] {
  if (refreshTokens === false) return [];
  const byPath = Map.groupBy(refreshTokens.endpoints, ({ path }) => path);
  return [...byPath].map(([path, endpoints]) => {
    const parameters = [...path.matchAll(/\{([^{}]+)\}/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: text,
    }));
    const byMethod = Map.groupBy(endpoints, ({ method }) => method.toLowerCase());
    const operations = [...byMethod].map(([method, some]) => [method, describeTokens(some, refusals)]);
    return [path, { ...(parameters.length > 0 && { parameters }), ...Object.fromEntries(operations) }];
  });
}

const purposes = {
  issue: 'issues tokens',
  exchange: 'refreshes tokens, each once',
  revoke: 'revokes a token',
};

function describeTokens(endpoints: readonly TokenEndpoint[], refusals: Refusals): Json {
  const formats = new Set(endpoints.map(({ format }) => format));
  const names = namesOf('every', 'token', 'protected', 'forwarded').flatMap((name) => {
    const inOwnWords = refusals.has(`oauth.${name}`) && formats.has('form') ? [`oauth.${name}`] : [];
    return inOwnWords.length === 0 || formats.has('json-api') ? [name, ...inOwnWords] : inOwnWords;
  });
  return {
    tags: ['tokens'],
    summary: `The shop’s endpoint that ${endpoints.map(({ kind }) => purposes[kind]).join(', and ')}`,
    responses: {
      '2XX': { description: 'The shop’s own answer.' },
      ...refusalResponses(names, refusals),
    },
  };
}
