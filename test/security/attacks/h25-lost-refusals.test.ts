import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { request, streamed, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage({ config: { limits: { requestBody: '1MiB' } } });

const megabytes = (count: number) => Buffer.alloc(count * 1_048_576, 'x');
const form = 'Content-Type: text/plain';

/**
 * H25: a client sends its whole request before it reads. A reset meanwhile would make its kernel discard the refusal that
 * has arrived.
 */
async function sendAllThenRead(head: string, rest: Buffer): Promise<string> {
  const socket = connect({ port: stage.port, host: '127.0.0.1', allowHalfOpen: true }).pause();
  let fault = '';
  socket.on('error', (error: NodeJS.ErrnoException) => {
    fault = ` ${error.code}`;
  });
  await once(socket, 'connect');
  socket.write(head, 'latin1');
  const sent = new Promise((resolve) => socket.write(rest, resolve));
  await Promise.race([sent, once(socket, 'close')]);
  let text = '';
  socket.on('data', (part: Buffer) => {
    text += part.toString('latin1');
  });
  if (!socket.destroyed) await once(socket.resume(), 'end').catch(() => {});
  socket.destroy();
  return `${text.slice(9, 12)}${fault}`;
}

describe('H25: a client that sends up to 30 MiB before it reads gets its refusal', () => {
  it.for<[string, string, number, number]>([
    ['a body that is too long', request('POST /stores', [form, 'Content-Length: 31457280']), 30, 413],
    ['a body without a token', request('PATCH /carts/1', [form, 'Content-Length: 1048576']), 1, 401],
    [
      'a chunked body without a token',
      request('PATCH /carts/1', [form, 'Transfer-Encoding: chunked'], '1e00000\r\n'),
      30,
      401,
    ],
    ['an unknown coding', request('POST /stores', [form, 'Transfer-Encoding: xchunked']), 30, 501],
    [
      'a length and a coding',
      request('POST /stores', [form, 'Content-Length: 4', 'Transfer-Encoding: chunked']),
      8,
      400,
    ],
    ['a broken chunk', request(`POST ${streamed}`, [form, 'Transfer-Encoding: chunked'], 'g\r\n'), 8, 400],
    ['two lengths', request('POST /stores', [form, 'Content-Length: 4', 'Content-Length: 5']), 8, 400],
    ['fields that are too long', 'POST /stores HTTP/1.1\r\nHost: s\r\nX: ', 8, 431],
    ['no HTTP', 'SSH-2.0-x\r\n', 8, 405],
    ['another version', 'POST /stores HTTP/2.0\r\nHost: s\r\n\r\n', 8, 505],
    ['a tunnel', 'CONNECT s:1 HTTP/1.1\r\nHost: s\r\n\r\n', 8, 405],
  ])('%s', async ([, head, count, status]) => {
    for (let round = 0; round < 3; round += 1)
      expect(await sendAllThenRead(head, megabytes(count))).toBe(String(status));
  });
});
