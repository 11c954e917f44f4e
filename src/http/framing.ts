import type { CanonicalRequest, Method } from './canonical-request.ts';
import { type Rejection, reject } from './rejection.ts';
import type { FieldFacts } from './request-fields.ts';

/** What follows the head of a request. */
export type Framing = Pick<CanonicalRequest, 'body' | 'expectsContinue'>;

/**
 * Checks the framing fields (RFC 9112 section 6) and Expect (RFC 9110 section 10.1.1). Node's parser has refused most of
 * what is refused here; it did so under flags that are not ours to trust.
 *
 * A body of GET or HEAD is refused: it has no meaning (RFC 9110 section 9.3.1), and an upstream that does not expect one
 * would read it as its next request, which nobody here has checked. Dropped in silence, the request would mean something
 * else than its client said.
 */
export function readFraming(
  facts: Pick<FieldFacts, 'contentLength' | 'transferEncoding' | 'expect'>,
  method: Method,
  isHttp10: boolean,
  maxBodyBytes: number,
): Framing | Rejection {
  const { contentLength, transferEncoding, expect } = facts;
  let body: Framing['body'] = 'none';
  if (transferEncoding !== undefined) {
    if (isHttp10) return reject('bad-request-fields', { reason: 'transfer-encoding-in-http-1.0' });
    if (contentLength !== undefined) return reject('bad-request-fields', { reason: 'two-framings' });
    if (transferEncoding.toLowerCase() !== 'chunked') return reject('transfer-encoding-unsupported');
    body = 'chunked';
  } else if (contentLength !== undefined) {
    const length = readLength(contentLength);
    if (length === undefined) return reject('bad-request-fields', { reason: 'content-length' });
    if (length > maxBodyBytes) return reject('payload-too-large');
    body = { length };
  }
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') return reject('expectation-failed');
  if (body === 'none') return noBody;
  if (method === 'GET' || method === 'HEAD') {
    return body !== 'chunked' && body.length === 0 ? noBody : reject('unexpected-body');
  }
  return { body, expectsContinue: expect !== undefined && !isHttp10 };
}

const noBody: Framing = { body: 'none', expectsContinue: false };

/** 1*DIGIT; beyond what a number holds exactly nothing is too large to refuse. */
function readLength(sent: string): number | undefined {
  return /^\d+$/.test(sent) ? Number(sent) : undefined;
}
