import type { IncomingMessage, ServerResponse } from 'node:http';
import { isObject } from '../lib/json.ts';

export interface AdminAnswer {
  readonly status: number;
  /** Sent as JSON. */
  readonly body: unknown;
}

/** What an endpoint may know of the request: no fields, no credentials. */
interface AdminQuestion {
  /** JSON of a POST; `{}` for an empty body, undefined for a GET. */
  readonly body: unknown;
  /** Without its `?`. */
  readonly query: string;
}

/** An endpoint of the admin port beyond the three that are always there. */
export type AdminEndpoint = JsonEndpoint | StreamEndpoint;

export interface JsonEndpoint {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Longest body of a POST; more is 413. Default: 64 KiB. */
  readonly maxBodyBytes?: number;
  run(question: AdminQuestion): AdminAnswer | Promise<AdminAnswer>;
}

/** Writes its response by itself, for as long as it likes. */
export interface StreamEndpoint {
  readonly method: 'GET';
  readonly path: string;
  stream(incoming: IncomingMessage, response: ServerResponse, query: string): void;
}

/** The keys of a JSON object in a body; empty for everything else. */
export function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  return isObject(body) ? body : {};
}

type JsonBody = { readonly value: unknown } | { readonly fault: 'too-large' | 'malformed' };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads the JSON of a request; an empty body is `{}`. Rejects when the client leaves before its end. */
export async function readJsonBody(incoming: IncomingMessage, maxBytes: number): Promise<JsonBody> {
  if (Number(incoming.headers['content-length'] ?? 0) > maxBytes) return { fault: 'too-large' };
  const chunks: Buffer[] = [];
  let length = 0;
  // The socket stays, so that a refusal can still be written to it.
  for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
    length += chunk.length;
    if (length > maxBytes) return { fault: 'too-large' };
    chunks.push(chunk);
  }
  if (length === 0) return { value: {} };
  try {
    return { value: JSON.parse(utf8.decode(Buffer.concat(chunks))) };
  } catch {
    return { fault: 'malformed' };
  }
}
