import type { IncomingMessage } from 'node:http';
import { isObject, parseJson } from '../lib/json.ts';
import { type Query, type QueryParameters, readQuery } from './query.ts';

interface AdminAnswer {
  readonly status: number;
  /** Sent in the response as JSON. */
  readonly body: unknown;
}

/** What an endpoint gets to know of the request: no fields, no credentials. */
interface AdminQuestion {
  /** JSON of a POST; `{}` for an empty body, undefined for a GET. */
  readonly body: unknown;
  readonly query: Query;
}

/** An endpoint of the admin port, besides `/livez`, `/readyz` and `/metrics`, which are always there. */
export interface AdminEndpoint {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Parameters that the query may have; any other one is 400. Default: none. */
  readonly parameters?: QueryParameters;
  run(question: AdminQuestion): AdminAnswer | Promise<AdminAnswer>;
}

/** The only way to a JSON endpoint: a query with unknown parameters never reaches one. `query`: without its `?`. */
export function askEndpoint(
  endpoint: AdminEndpoint,
  query: string,
  body?: unknown,
): AdminAnswer | Promise<AdminAnswer> {
  const read = readQuery(query, endpoint.parameters ?? {});
  return typeof read === 'string'
    ? { status: 400, body: { error: read } }
    : endpoint.run({ body, query: read });
}

/** The members of a JSON object; empty if the body is anything else. */
export function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  return isObject(body) ? body : {};
}

type JsonBody = { readonly value: unknown } | { readonly fault: 'too-large' | 'malformed' };

/** Reads a request body as JSON; an empty one is `{}`. Rejects when the client disconnects before the end of the body. */
export async function readJsonBody(incoming: IncomingMessage, maxBytes: number): Promise<JsonBody> {
  if (Number(incoming.headers['content-length'] ?? 0) > maxBytes) return { fault: 'too-large' };
  const chunks: Buffer[] = [];
  let length = 0;
  // Leaving the loop early must not destroy the socket: the refusal is written to it later.
  for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
    length += chunk.length;
    if (length > maxBytes) return { fault: 'too-large' };
    chunks.push(chunk);
  }
  const value = length === 0 ? {} : parseJson(Buffer.concat(chunks));
  return value === undefined ? { fault: 'malformed' } : { value };
}
