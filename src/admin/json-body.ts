import type { IncomingMessage } from 'node:http';

export type JsonBody = { readonly value: unknown } | { readonly fault: 'too-large' | 'malformed' };

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
