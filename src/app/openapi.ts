import { metadataPath } from '../access/published-documents.ts';
import type { Config } from '../config/schema.ts';
import { buildRejections, errorFormats, errorMediaTypes, rejectionNames } from '../http/rejection.ts';
import { RejectionBodies } from '../http/rejection-bodies.ts';

type Json = Readonly<Record<string, unknown>>;

const text = { type: 'string' };
const requestId = { description: 'Identifies the request in the log.', schema: text };

/**
 * OpenAPI 3.1 of the responses that shopward itself gives with this configuration: its own paths, and each refusal as a
 * reusable response. Refusals are described by rendering them, so that the document cannot differ from what clients get.
 */
export function buildOpenApi(config: Config, version: string): Json {
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
      ...describeDocuments(config),
      ...describeResolver(config),
      ...describeTokenEndpoints(config),
    ]),
    components: {
      responses: describeRefusals(config),
      securitySchemes: { accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  };
}

/** Each refusal by its name; `refusal` is any of them, `oauth` one of an endpoint that speaks OAuth. */
function describeRefusals({ rejections, errors }: Config): Json {
  const table = buildRejections(rejections);
  const bodies = new RejectionBodies(table, errors);
  const formats = errors.format === 'negotiate' ? errorFormats : [errors.format];
  const contentOf = (schemaOfFormat: (mediaType: string) => Json): Json =>
    Object.fromEntries(
      formats.map((format) => [errorMediaTypes[format], { schema: schemaOfFormat(errorMediaTypes[format]) }]),
    );
  const named = rejectionNames.map((name) => {
    const content = contentOf((mediaType) => schemaOf(JSON.parse(String(bodies.of(name, mediaType).body))));
    return [name, response(`${table[name].status}, ${name}: ${table[name].detail}`, content)];
  });
  const anyOf = (mediaType: string) =>
    rejectionNames.map((name) => ({
      $ref: `#/components/responses/${name}/content/${mediaType.replaceAll('/', '~1')}/schema`,
    }));
  const refusal = response(
    'A refusal.',
    contentOf((mediaType) => ({ anyOf: anyOf(mediaType) })),
  );
  const oauth = objectOf({ error: text, error_description: text }, ['error_description']);
  const inOAuth = { 'application/json': { schema: oauth } };
  return {
    ...Object.fromEntries(named),
    refusal,
    oauth: response('A refusal, or one as in RFC 6749 section 5.2.', { ...refusal.content, ...inOAuth }),
  };
}

function response(description: string, content: Json) {
  return {
    description,
    headers: {
      'X-Request-Id': requestId,
      'Retry-After': { description: 'Seconds after which to try again.', schema: text },
      'WWW-Authenticate': { description: 'RFC 6750 section 3.', schema: text },
      Allow: { description: 'With 405.', schema: text },
      RateLimit: { description: 'With 429.', schema: text },
      'RateLimit-Policy': { description: 'With 429.', schema: text },
    },
    content,
  };
}

/** Members with text for people, whose wording may change: the schema does not fix it. */
const prose: ReadonlySet<string> = new Set(['detail', 'title']);

/** A schema that the body of this refusal matches, and that of no other one. */
function schemaOf(value: unknown, key = ''): Json {
  if (Array.isArray(value)) return { type: 'array', prefixItems: value.map((item) => schemaOf(item)) };
  if (typeof value === 'object' && value !== null) {
    const properties = Object.entries(value).map(([name, member]) => [name, schemaOf(member, name)]);
    return objectOf(Object.fromEntries(properties));
  }
  return prose.has(key) ? { ...text, examples: [value] } : { const: value };
}

function objectOf(properties: Json, optional: readonly string[] = []): Json {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', required, properties };
}

const refused = { default: { $ref: '#/components/responses/refusal' } };

/** The responses of a path that shopward answers itself. */
function answered(description: string, mediaType: string, schema: Json): Json {
  const headers = { ETag: { description: 'Strong.', schema: text }, 'X-Request-Id': requestId };
  return {
    200: { description, headers, content: { [mediaType]: { schema } } },
    304: { description: 'The copy with the tag of If-None-Match is current.', headers },
    ...refused,
  };
}

const listOf = (items: Json): Json => ({ type: 'array', items });

function describeDocuments(config: Config): [string, unknown][] {
  const document = (summary: string, mediaType: string, schema: Json) => ({
    get: { tags: ['documents'], summary, responses: answered(summary, mediaType, schema) },
  });
  const attributes = objectOf(
    {
      group: text,
      method: text,
      path: text,
      scopes: listOf(text),
      conditions: listOf(text),
      tokenIn: listOf(text),
    },
    ['conditions', 'tokenIn'],
  );
  const row = objectOf({ type: { const: 'protected-resources' }, id: text, attributes });
  const metadata = objectOf(
    {
      resource: { type: 'string', format: 'uri' },
      authorization_servers: listOf(text),
      scopes_supported: listOf(text),
      bearer_methods_supported: listOf({ enum: ['header', 'query'] }),
    },
    ['authorization_servers', 'scopes_supported'],
  );
  const list = objectOf({ data: listOf(row) });
  return [
    [config.protectedResourcesPath, document('The protected list', errorMediaTypes.jsonapi, list)],
    [metadataPath, document('Metadata of the protected resource (RFC 9728)', 'application/json', metadata)],
  ];
}

function describeResolver({ urlResolver }: Config): [string, unknown][] {
  if (urlResolver === false) return [];
  const links = objectOf({ self: text });
  const attributes = objectOf({ entityType: { enum: urlResolver.entityTypes }, entityId: text });
  const type = { const: 'url-resolver' };
  const element = objectOf({ type, id: { type: 'null' }, attributes, links });
  const envelope = objectOf({ data: { ...listOf(element), minItems: 1, maxItems: 1 }, links });
  const operation = {
    tags: ['url-resolver'],
    summary: 'The resource of a storefront page, by its path',
    description:
      'Refused with `url-missing` without `url`, and with `url-not-found` if there is no such page.',
    parameters: [
      { name: 'url', in: 'query', required: true, schema: text, description: 'Path of the page.' },
      { name: 'Accept-Language', in: 'header', schema: text, description: 'Locale.' },
    ],
    responses: answered('What the page shows.', errorMediaTypes.jsonapi, envelope),
  };
  return [[urlResolver.path, { get: operation }]];
}

const purposes = {
  issue: 'issues tokens',
  exchange: 'refreshes tokens, each once',
  revoke: 'revokes a token',
};

function describeTokenEndpoints({ refreshTokens }: Config): [string, unknown][] {
  if (refreshTokens === false) return [];
  const byPath = Map.groupBy(refreshTokens.endpoints, ({ path }) => path);
  return [...byPath].map(([path, endpoints]) => {
    const names = path.matchAll(/\{([^{}]+)\}/g);
    const parameters = [...names].map(([, name]) => ({ name, in: 'path', required: true, schema: text }));
    const byMethod = Map.groupBy(endpoints, ({ method }) => method.toLowerCase());
    const operations = [...byMethod].map(([method, some]) => {
      const words = some.map(({ kind }) => purposes[kind]).join(', and ');
      const isOAuth = some.some(({ format }) => format !== 'json-api');
      const refusals = isOAuth ? { default: { $ref: '#/components/responses/oauth' } } : refused;
      const responses = { '2XX': { description: 'The shop’s own answer.' }, ...refusals };
      return [method, { tags: ['tokens'], summary: `The shop’s endpoint that ${words}`, responses }];
    });
    return [path, { ...(parameters.length > 0 && { parameters }), ...Object.fromEntries(operations) }];
  });
}
