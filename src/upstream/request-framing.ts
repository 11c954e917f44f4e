import { hopByHopNames } from '../http/field-list.ts';
import type { UpstreamRequest } from './port.ts';

/** Fields that frame a message or belong to one connection; the client sets its own, whatever a request carries. */
const framing = new Set([...hopByHopNames, 'content-length', 'expect']);

const framingLengths = new Set([...framing].map((name) => name.length));

/** Whatever its case; the length tells most other fields apart before a letter is folded. */
function isFramingField(name: string): boolean {
  return framingLengths.has(name.length) && framing.has(name.toLowerCase());
}

/** RFC 9110 section 5.6.2: a method, or the name of a field. */
export const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** RFC 9110 section 5.5: what the value of a field, or a reason phrase, consists of; latin-1. */
export const valueText = /^[\t\x20-\x7e\x80-\xff]*$/;
const visible = /^[\x21-\x7e\x80-\xff]+$/;

/**
 * The head of a request as it goes on the wire, latin-1, framed by its body (RFC 9112 section 6).
 *
 * @throws {TypeError} where a part would not be read back as that part. Nobody may send such a thing this far; were it
 * written, it could be a second request.
 */
export function requestHead({ method, target, fields, body, isUpgrade }: UpstreamRequest): string {
  if (!token.test(method) || !visible.test(target)) throw new TypeError('request line');
  let head = `${method} ${target} HTTP/1.1\r\n`;
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] as string;
    if (isFramingField(name)) continue;
    const value = fields[i + 1] as string;
    if (!token.test(name) || !valueText.test(value)) throw new TypeError(`field ${i / 2}`);
    head += `${name}: ${value}\r\n`;
  }
  const connection = isUpgrade === true ? 'Upgrade\r\nUpgrade: websocket' : 'keep-alive';
  return `${head}${framingOf(method, body)}Connection: ${connection}\r\n\r\n`;
}

/** RFC 9110 section 8.6: methods that have a meaning for a body say that there is none. */
function framingOf(method: string, body: UpstreamRequest['body']): string {
  if (body === null) {
    return method === 'POST' || method === 'PUT' || method === 'PATCH' ? 'Content-Length: 0\r\n' : '';
  }
  return body.length === undefined ? 'Transfer-Encoding: chunked\r\n' : `Content-Length: ${body.length}\r\n`;
}
