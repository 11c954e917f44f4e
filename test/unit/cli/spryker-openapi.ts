import { stringify } from 'yaml';
import { contractCalls } from '../../end-to-end/demo/contract-calls.ts';

/** Shape of an OpenAPI document as a shop's generator writes it. */
export interface OpenApiShape {
  /** Resource types besides those of the contract; each has a collection and a member. */
  readonly types: number;
  /** Properties of each attribute schema: what makes such documents large. */
  readonly properties: number;
}

/**
 * Builds a document of the size and shape that a Spryker generator gives: 300 to 400 paths, each operation with
 * parameters, JSON:API request and response schemas of its own and default errors, one tag a resource type, and
 * `security: [{ BearerAuth: [] }]` on what is protected. The contract's rows are in it, by its own parameter names.
 */
export function buildSprykerDocument({ types, properties }: OpenApiShape): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  const schemas: Record<string, unknown> = {};
  const add = (method: string, path: string, tag: string, isProtected: boolean) => {
    const name = path.replace(/[/{}-]+(.)?/g, (_, next: string = '') => next.toUpperCase());
    addSchemas(schemas, name, properties);
    paths[path] ??= {};
    paths[path][method.toLowerCase()] = operation(method, path, tag, name, isProtected);
  };
  for (const { row } of contractCalls) {
    const [method = '', path = ''] = row.split(' ');
    const camel = path.replace(/_(\w)(?=[^{]*\})/g, (_, letter: string) => letter.toUpperCase());
    add(method, sameNames(paths, camel), path.split('/')[1] ?? '', true);
  }
  for (let i = 0; i < types; i += 1) {
    const type = `catalogue-resource-${i}`;
    add('GET', `/${type}`, type, false);
    add('GET', `/${type}/{resourceId}`, type, false);
    add('POST', `/${type}/{resourceId}/notes`, type, i % 4 === 0);
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Spryker API', version: '1.0.0', contact: { name: 'Shop' }, license: { name: 'MIT' } },
    servers: [{ url: 'http://glue.de.shop.example' }],
    tags: Object.keys(paths).map((path) => ({ name: path.split('/')[1] })),
    paths,
    components: { securitySchemes: { BearerAuth: { type: 'http', scheme: 'bearer' } }, schemas },
  };
}

/** The same as YAML, in the manner of Symfony's dumper: no anchors, block style. */
export function sprykerYaml(document: object): string {
  return stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 });
}

/** OpenAPI holds a path once, whatever the names of its parameters. */
function sameNames(paths: object, path: string): string {
  const shape = (one: string) => one.replace(/\{[^}]*\}/g, '{}');
  return Object.keys(paths).find((one) => shape(one) === shape(path)) ?? path;
}

function operation(method: string, path: string, tag: string, name: string, isProtected: boolean) {
  const inPath = [...path.matchAll(/\{([^}]*)\}/g)].map(([, id]) => ({
    name: id,
    in: 'path',
    required: true,
    description: `Unique identifier of ${id}.`,
    schema: { type: 'string' },
  }));
  const error = {
    description: 'Default error response.',
    content: {
      'application/vnd.api+json': { schema: { $ref: '#/components/schemas/RestErrorMessage' } },
    },
  };
  return {
    operationId: `${method.toLowerCase()}-${name}`,
    summary: `${method} of ${tag}.`,
    parameters: [
      ...inPath,
      {
        name: 'Accept-Language',
        in: 'header',
        description: 'Locale value relevant for the store.',
        required: false,
        schema: { type: 'string' },
      },
    ],
    ...(method === 'POST' || method === 'PATCH'
      ? {
          requestBody: {
            description: 'Expected request body.',
            required: true,
            content: {
              'application/vnd.api+json': { schema: { $ref: `#/components/schemas/${name}Request` } },
            },
          },
        }
      : {}),
    responses: {
      200: {
        description: 'Expected response to a valid request.',
        content: {
          'application/vnd.api+json': { schema: { $ref: `#/components/schemas/${name}Response` } },
        },
      },
      400: error,
      403: error,
      default: error,
    },
    ...(isProtected && { security: [{ BearerAuth: [] }] }),
    tags: [tag],
  };
}

function addSchemas(schemas: Record<string, unknown>, name: string, properties: number): void {
  const attributes = Object.fromEntries(
    Array.from({ length: properties }, (_, i) => [
      `attributeNumber${i}`,
      {
        type: i % 3 === 0 ? 'integer' : 'string',
        description: `What attribute ${i} of ${name} holds, in a sentence.`,
        example: `example-${i}`,
        nullable: true,
      },
    ]),
  );
  schemas[`${name}Attributes`] = { type: 'object', properties: attributes };
  schemas[`${name}Request`] = {
    type: 'object',
    required: ['data'],
    properties: {
      data: {
        type: 'object',
        required: ['type', 'attributes'],
        properties: {
          type: { type: 'string' },
          attributes: { $ref: `#/components/schemas/${name}Attributes` },
        },
      },
    },
  };
  schemas[`${name}Response`] = {
    type: 'object',
    properties: {
      data: { type: 'array', items: { $ref: `#/components/schemas/${name}Attributes` } },
      links: { type: 'object', properties: { self: { type: 'string' } } },
    },
  };
}
