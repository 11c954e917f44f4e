import type { AdminEndpoint, JsonEndpoint } from './admin-endpoint.ts';

interface OpenApiOptions {
  readonly version: string;
  /** Describes what clients get; called only when it is asked for. */
  describePublic(): object;
  /** All of the admin port but health, metrics and these two. */
  readonly endpoints: readonly AdminEndpoint[];
}

/** `GET /openapi.json` describes what clients get, `GET /openapi-admin.json` the admin port itself. */
export function createOpenApiEndpoints({
  version,
  describePublic,
  endpoints,
}: OpenApiOptions): readonly JsonEndpoint[] {
  const ofClients: JsonEndpoint = {
    method: 'GET',
    path: '/openapi.json',
    run: () => ({ status: 200, body: describePublic() }),
  };
  const ofAdmin: JsonEndpoint = {
    method: 'GET',
    path: '/openapi-admin.json',
    run: () => ({ status: 200, body: describeAdmin(version, [...endpoints, ofClients, ofAdmin]) }),
  };
  return [ofClients, ofAdmin];
}

const json = { 'application/json': { schema: { type: 'object' } } };
const error = { $ref: '#/components/responses/error' };
const refusals = { 401: error, 421: error };

/** OpenAPI 3.1 of the admin port, from its own list of endpoints. Exported for its tests. */
export function describeAdmin(version: string, endpoints: readonly AdminEndpoint[]): object {
  const probe = (more: object) => ({
    get: { security: [], responses: { 200: { description: 'Yes.', content: json }, ...more } },
  });
  const metrics = { 200: { description: 'OpenMetrics.', content: { 'text/plain': {} } }, ...refusals };
  const paths = Object.entries(Object.groupBy(endpoints, ({ path }) => path)).map(([path, some = []]) => [
    path,
    Object.fromEntries(some.map((endpoint) => [endpoint.method.toLowerCase(), describeEndpoint(endpoint)])),
  ]);
  return {
    openapi: '3.1.1',
    info: { title: 'Admin port of shopward', version, license: { name: 'MIT', identifier: 'MIT' } },
    // `{}`: without `admin.token` none is needed.
    security: [{}, { adminToken: [] }],
    paths: {
      '/livez': probe({}),
      '/readyz': probe({ 503: { description: 'Not ready.', content: json } }),
      '/metrics': { get: { responses: metrics } },
      ...Object.fromEntries(paths),
    },
    components: {
      schemas: {
        Error: { type: 'object', required: ['error'], properties: { error: { type: 'string' } } },
      },
      responses: {
        error: {
          description: 'Why not.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
      securitySchemes: { adminToken: { type: 'http', scheme: 'bearer' } },
    },
  };
}

function describeEndpoint(endpoint: AdminEndpoint): object {
  const content = 'stream' in endpoint ? { 'text/event-stream': {} } : json;
  const responses = { 200: { description: 'Done.', content }, 400: error, ...refusals, default: error };
  const parameters = Object.entries(endpoint.parameters ?? {}).map(([name, { description, ...schema }]) => ({
    ...{ name, in: 'query', description, schema },
  }));
  return {
    ...(parameters.length > 0 && { parameters }),
    ...(endpoint.method === 'POST' && { requestBody: { content: json } }),
    responses,
  };
}
