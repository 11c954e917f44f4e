import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Answer, type RejectionName, reject } from '../http/rejection.ts';
import { reasonPhraseOf } from '../http/rejection-bodies.ts';
import { endLingering, renderRejection } from '../http/write-response.ts';
import type { MalformedHead } from './client-connection.ts';
import { type ExchangeContext, readMalformedRequest, toExchangeRecord } from './exchange.ts';

/** Errors of Node's parser that have a refusal of their own. */
const parserFaults: ReadonlyMap<string | undefined, RejectionName> = new Map([
  ['HPE_HEADER_OVERFLOW', 'fields-too-large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request-timeout'],
  ['HPE_INVALID_TRANSFER_ENCODING', 'bad-request-fields'],
  ['HPE_INVALID_VERSION', 'http-version-unsupported'],
  ['HPE_INVALID_METHOD', 'method-not-allowed'],
  ['HPE_INVALID_URL', 'bad-request-target'],
]);

/** `bad-request` for a code without a row. */
export function rejectionOfParserFault(code: string | undefined): RejectionName {
  return parserFaults.get(code) ?? 'bad-request';
}

type ParserFault = NodeJS.ErrnoException & { readonly rawPacket?: Buffer; readonly bytesParsed?: number };

const longestStart = 4096;

/**
 * The broken rule of llhttp, and the request line if it is certain: the octets begin with it, and no head ended before the
 * error. After a head the octets could belong to any body.
 */
export function readMalformedHead({ code = '', rawPacket, bytesParsed }: ParserFault): MalformedHead {
  const rule = /^HPE_([A-Z_]{1,40})$/.exec(code)?.[1];
  const reason = rule === undefined ? 'unread' : rule.toLowerCase().replaceAll('_', '-');
  if (rawPacket === undefined) return { reason };
  const fault = bytesParsed || rawPacket.length;
  if (rawPacket.subarray(0, fault).includes('\r\n\r\n')) return { reason };
  const start = rawPacket.toString('latin1', 0, longestStart);
  const [, method, target] = /^([A-Za-z-]{1,20}) ([^\s]+)[\s]/.exec(start) ?? [];
  return { reason, method, target };
}

function endWithAnswer(socket: Duplex, { status, fields, body }: Answer, requestId: string): void {
  const all = [...fields, 'X-Request-Id', requestId, 'Connection', 'close'];
  let head = `HTTP/1.1 ${status} ${reasonPhraseOf(status)}\r\n`;
  for (let i = 0; i < all.length; i += 2) head += `${all[i]}: ${all[i + 1]}\r\n`;
  socket.write(`${head}\r\n`, 'latin1');
  socket.end(body ?? '');
  endLingering(socket as Socket);
}

/** Refuses what is not a request (too large, malformed, too slow, CONNECT), and records the refusal like any other. */
export function createRejectMalformed({
  rejections,
  redactPath,
  record,
}: Pick<ExchangeContext, 'rejections' | 'redactPath' | 'record'>) {
  return (why: RejectionName, socket: Duplex, head: MalformedHead = { reason: 'unread' }): void => {
    const rejection = reject(why, { reason: head.reason });
    const rendered = renderRejection(rejection, rejections);
    // RFC 9110 section 9.3.2.
    const answer = head.method === 'HEAD' ? { ...rendered, body: null } : rendered;
    const malformed = readMalformedRequest(head.method, head.target);
    const startedMs = performance.now();
    endWithAnswer(socket, answer, malformed.requestId);
    // Browsers open spare connections and let them time out: without a request there is nothing to refuse.
    if ((socket as Socket).bytesRead === 0) return;
    const bytes = Buffer.byteLength(answer.body ?? '');
    const outcome = { decision: 'refused', status: answer.status, bytes, rejection } as const;
    const meta = { socket: socket as Socket, malformed, route: '*', startedMs };
    record(toExchangeRecord(meta, outcome, redactPath));
  };
}
