import { describe, expect, test } from 'vitest';
import { readMalformedHead } from '../../../src/server/client-error.ts';

describe('the facts of a malformed request', () => {
  const read = (text: string | undefined, bytesParsed?: number, code = 'HPE_INVALID_HEADER_TOKEN') => {
    const packet = text === undefined ? {} : { rawPacket: Buffer.from(text, 'latin1') };
    const fault = Object.assign(new Error(), {
      code,
      ...packet,
      ...(bytesParsed !== undefined && { bytesParsed }),
    });
    return readMalformedHead(fault);
  };
  const reason = 'invalid-header-token';
  const known = { reason, method: 'GET', target: '/a' };
  const first = 'GET /a HTTP/1.1\r\n';
  test.each([
    [`${first}A b\r\n\r\n`, 20, known],
    [`${first}A b\r\n\r\n`, undefined, { reason }],
    [`${first}A`, undefined, known],
    [`${first}A`, 0, known],
    // After a complete head, the octets could be a body or the next request.
    [`${first}\r\nGET /b HTTP/1.1\r\nA b`, 40, { reason }],
    ['GET /a\r\n', undefined, known],
    ['GET  /a HTTP/1.1\r\n', undefined, { reason, method: undefined, target: undefined }],
    ['G!T /a HTTP/1.1\r\n', undefined, { reason, method: undefined, target: undefined }],
    [`${'M'.repeat(20)} /a \r\n`, undefined, { reason, method: 'M'.repeat(20), target: '/a' }],
    [`${'M'.repeat(21)} /a \r\n`, undefined, { reason, method: undefined, target: undefined }],
    // The target must be complete.
    ['GET /a', undefined, { reason, method: undefined, target: undefined }],
    [`GET /${'a'.repeat(4090)} HTTP`, undefined, { reason, method: 'GET', target: `/${'a'.repeat(4090)}` }],
    [`GET /${'a'.repeat(4091)} HTTP`, undefined, { reason, method: undefined, target: undefined }],
    [undefined, undefined, { reason }],
  ])('method and target of case %#', (text, bytesParsed, told) => {
    expect(read(text, bytesParsed)).toEqual(told);
  });

  test.each(['ECONNRESET', '', 'HPE_', 'hpe_x', `HPE_${'X'.repeat(41)}`, 'HPE_A B'])(
    '%j is not a parser error: "unread"',
    (code) => {
      expect(read(undefined, undefined, code)).toEqual({ reason: 'unread' });
    },
  );
});
