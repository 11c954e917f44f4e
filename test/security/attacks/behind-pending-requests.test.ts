import { describe, expect, it } from 'vitest';
import { expectRejection, request, streamed, useAttackStage } from '../../harness/attack-stage.ts';
import { answer } from '../../harness/recording-upstream.ts';

/** Sends the slow answer. */
let release: () => void = () => {};
const slow = 'slow'.repeat(10_000);
const stage = useAttackStage({
  config: { upstream: { webSocket: true } },
  script: ({ head }) =>
    head.startsWith('GET /slow')
      ? new Promise((resolve) => {
          release = () => resolve(answer(slow));
        })
      : undefined,
});
const handshake =
  'GET /socket HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';

const garbage = [
  ['\0\0\0\r\n\r\n', 405, 'method-not-allowed'],
  ['GARBAGE\r\n\r\n', 405, 'method-not-allowed'],
  ['GET /x HTTP/1.1\r\nHost : x\r\n\r\n', 400, 'bad-request'],
  ['GET /x\xff HTTP/1.1\r\n\r\n', 400, 'bad-request-target'],
] as const;

/** H14, H19: a refusal written while another response is being sent would be read as a part of it. */
describe('H19: a bad request behind a good one', () => {
  it.each<[string, number, string, boolean]>([
    ...garbage.map((row): [string, number, string, boolean] => [...row, true]),
    [handshake, 400, 'bad-request', true],
    [request('CONNECT shop.example:443'), 405, 'method-not-allowed', true],
    ['GET /stores HTTP/1.1\r\nHost: a@b\r\n\r\n', 400, 'bad-host', false],
  ])('%j behind a pending request: a whole response, then %i %s', async (bad, status, code, ends) => {
    const { length } = stage.upstream.requestLines;
    const connection = await stage.send(request('GET /slow') + bad);
    await expect.poll(() => stage.upstream.requestLines.length).toBe(length + 1);
    release();
    const first = await connection.readResponse();
    expect([first.status, first.complete, first.body.toString()]).toEqual([200, true, slow]);
    expectRejection(await connection.readResponse(), status, code);
    if (ends) expect((await connection.readAll()).toString()).toBe('');
    connection.close();
  });

  it.each(garbage)(
    '%j behind an answered request: %i %s, then the connection ends',
    async (bad, status, code) => {
      const connection = await stage.send(request('GET /stores'));
      expect((await connection.readResponse()).status).toBe(200);
      await connection.write(bad);
      const response = await connection.readResponse();
      expectRejection(response, status, code);
      expect(response.field('connection')).toBe('close');
      expect((await connection.readAll()).toString()).toBe('');
      connection.close();
    },
  );

  it.each(['zz\r\n', '5\r\nhelloX', '-1\r\n'])(
    '400 for the malformed chunk %j in a body that streams',
    async (chunk) => {
      const fields = ['Content-Type: text/plain', 'Transfer-Encoding: chunked'];
      const connection = await stage.send(request(`POST ${streamed}`, fields, chunk));
      expectRejection(await connection.readResponse(), 400, 'bad-request');
      expect((await connection.readAll()).toString()).toBe('');
      connection.close();
    },
  );
});
