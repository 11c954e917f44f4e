import type { IncomingMessage } from 'node:http';
import { collect, type PhpParameters } from './php-query.ts';
import { PlainRefusal } from './shop-error.ts';

export type RequestBody = {
  /** Fields of a form that came with POST; PHP reads no other. */
  readonly form: PhpParameters | null;
  /** The parsed JSON, `undefined` when there was none or it was broken. */
  readonly json: unknown;
};

const formTypes = ['application/x-www-form-urlencoded', 'multipart/form-data'];

export async function readBody(request: IncomingMessage, maxBytes: number): Promise<RequestBody> {
  const bytes = await readBytes(request, maxBytes);
  const contentType = request.headers['content-type'] ?? '';
  const isForm = formTypes.some((type) => contentType.toLowerCase().startsWith(type));
  if (isForm)
    return { form: request.method === 'POST' ? await readForm(bytes, contentType) : null, json: undefined };
  return { form: null, json: parseJson(bytes) };
}

async function readBytes(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    length += chunk.length;
    if (length > maxBytes) throw new PlainRefusal(413, 'Request Entity Too Large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The platform's own reader of forms; what it cannot read holds no field. */
async function readForm(bytes: Buffer, contentType: string): Promise<PhpParameters> {
  try {
    const response = new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } });
    const form = await response.formData();
    const parts: [string, string][] = [];
    for (const [name, value] of form) if (typeof value === 'string') parts.push([name, value]);
    return collect(parts);
  } catch {
    return collect([]);
  }
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
