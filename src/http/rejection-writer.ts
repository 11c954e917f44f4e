import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import { methods } from './canonical-request.ts';
import type { FieldList } from './field-list.ts';
import type { Rejection, SpokenAnswer } from './rejection.ts';
import type { RejectionName, RejectionRow, Rejections } from './rejection-table.ts';
import { endResponse, mustClose } from './unread-body.ts';

/** Refusals behind which the connection is not used again. */
const closing: ReadonlySet<RejectionName> = new Set([
  'transfer-encoding-unsupported',
  'http-version-unsupported',
  'request-timeout',
]);

/** RFC 9110 renamed these. */
const reasonPhrases: Readonly<Record<number, string>> = {
  413: 'Content Too Large',
  422: 'Unprocessable Content',
};

/**
 * Writes a refusal: the one error body (`application/vnd.api+json`, integer status), `Retry-After`, `WWW-Authenticate`
 * and `Allow` where they belong, and `more` fields (CORS, request id). What is still to come of the request's body is
 * read away if it is short, else the connection closes behind the answer. A response that has begun is cut instead.
 *
 * Returns the status that was sent, 0 for none.
 */
export function writeRejection(
  incoming: IncomingMessage,
  response: ServerResponse,
  rejection: Rejection,
  rejections: Rejections,
  more: FieldList = [],
): number {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return 0;
  }
  const { status, fields: spoken, body } = speakRejection(rejection, rejections);
  const fields = [...spoken, ...more];
  if (closing.has(rejection.rejection) || mustClose(incoming)) response.shouldKeepAlive = false;
  response.writeHead(status, reasonPhraseOf(status), fields);
  const chunk = typeof body === 'string' ? Buffer.from(body, 'latin1') : body;
  endResponse(incoming, response, incoming.method === 'HEAD' ? undefined : (chunk ?? undefined));
  return status;
}

/** The whole refusal as it is said, whoever writes it. */
export function speakRejection(rejection: Rejection, rejections: Rejections): SpokenAnswer {
  const { status, fields, body } = rejection.answer ?? answerOf(rejections[rejection.rejection]);
  return { status, fields: [...fields, ...fieldsOf(rejection)], body };
}

export function reasonPhraseOf(status: number): string {
  return reasonPhrases[status] ?? STATUS_CODES[status] ?? '';
}

function answerOf({ status, code, detail }: RejectionRow): SpokenAnswer {
  const body = Buffer.from(JSON.stringify({ errors: [{ detail, status, code }] }));
  return {
    status,
    fields: ['Content-Type', 'application/vnd.api+json', 'Content-Length', String(body.length)],
    body,
  };
}

function fieldsOf(rejection: Rejection): string[] {
  const fields: string[] = [...(rejection.fields ?? [])];
  if (rejection.challenge !== undefined) fields.push('WWW-Authenticate', rejection.challenge);
  if (rejection.retryAfterSeconds !== undefined)
    fields.push('Retry-After', String(rejection.retryAfterSeconds));
  // RFC 9110 section 15.5.6.
  if (rejection.rejection === 'method-not-allowed') fields.push('Allow', methods.join(', '));
  return fields;
}
