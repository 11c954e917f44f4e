import { hash } from 'node:crypto';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { isNoneMatchMet } from '../http/if-none-match.ts';
import type { Answer } from '../http/rejection.ts';

/** A small document that shopward answers itself, ready to be sent. */
export interface RenderedDocument {
  readonly contentType: string;
  readonly body: Buffer;
  /** Strong: it changes with every byte. */
  readonly tag: string;
}

export function renderDocument(contentType: string, document: object): RenderedDocument {
  const body = Buffer.from(JSON.stringify(document));
  return { contentType, body, tag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` };
}

/** Whether the request is one for a document at this path. */
export function asksFor(path: string, { method, path: asked }: CanonicalRequest): boolean {
  return asked === path && (method === 'GET' || method === 'HEAD');
}

/**
 * 200, or 304 where the client has it already; HEAD has the fields of GET and no body. `no-cache`: kept copies are asked
 * about each time, so that an edit of the list is seen at once.
 */
export function answerDocument(request: CanonicalRequest, document: RenderedDocument): Answer {
  const { contentType, body, tag } = document;
  const fields = ['ETag', tag, 'Cache-Control', 'no-cache'];
  if (isNoneMatchMet(request.fields, tag)) return { status: 304, fields, body: null };
  fields.push('Content-Type', contentType, 'Content-Length', String(body.length));
  fields.push('X-Content-Type-Options', 'nosniff');
  return { status: 200, fields, body: request.method === 'HEAD' ? null : body };
}
