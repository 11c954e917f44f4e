import type { Duplex } from 'node:stream';
import type { FieldList } from '../http/field-list.ts';
import type { Answer, RejectionName } from '../http/rejection.ts';
import { reasonPhraseOf } from '../http/write-response.ts';

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

/** Writes an answer, or a refusal as it is said, on a bare socket, and ends it. */
export function endWithAnswer(socket: Duplex, { status, fields, body }: Answer, more: FieldList = []): void {
  const lines = [`HTTP/1.1 ${status} ${reasonPhraseOf(status)}`];
  const all = [...fields, ...more, 'Connection', 'close'];
  for (let i = 0; i < all.length; i += 2) lines.push(`${all[i]}: ${all[i + 1]}`);
  socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  socket.end(body ?? '', () => socket.destroy());
}
