import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Rejection } from '../rejections/rejection.ts';
import type { RejectionName, Rejections } from '../rejections/table.ts';
import { methods } from '../request/canonical-request.ts';

/** What a fault of node's parser is to the client. */
export function rejectionOfParserFault(code: string | undefined): RejectionName {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return 'fields-too-large';
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'request-timeout';
    case 'HPE_INVALID_TRANSFER_ENCODING':
      return 'bad-request-fields';
    case 'HPE_INVALID_VERSION':
      return 'http-version-unsupported';
    case 'HPE_INVALID_METHOD':
      return 'method-not-allowed';
    case 'HPE_INVALID_URL':
      return 'bad-request-target';
    default:
      return 'bad-request';
  }
}

/** Writes a refusal on a bare socket, and ends it. */
export function endWithRejection(socket: Duplex, rejection: Rejection, rejections: Rejections): void {
  const { status, code, detail } = rejections[rejection.rejection];
  const body = JSON.stringify({ errors: [{ detail, status, code }] });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/vnd.api+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  if (rejection.challenge !== undefined) lines.push(`WWW-Authenticate: ${rejection.challenge}`);
  if (rejection.retryAfterSeconds !== undefined) lines.push(`Retry-After: ${rejection.retryAfterSeconds}`);
  if (rejection.rejection === 'method-not-allowed') lines.push(`Allow: ${methods.join(', ')}`);
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
