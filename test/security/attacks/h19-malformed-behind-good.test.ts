import { describe, expect, it } from 'vitest';
import { expectRejection, request, streamed, useAttackStage } from '../../harness/attack-stage.ts';
import { answer } from '../../harness/recording-upstream.ts';

/** Sends the slow answer. */
let release: () => void = () => {};
const stage = useAttackStage({
  script: ({ head }) =>
    /^\w+ \/slow/.test(head)
      ? new Promise((resolve) => {
          release = () => resolve(answer('slow'.repeat(10_000)));
        })
      : undefined,
});

const garbage = [
  ['\0\0\0\r\n\r\n', 405, 'method-not-allowed'],
  ['GARBAGE\r\n\r\n', 405, 'method-not-allowed'],
  ['GET /x HTTP/1.1\r\nHost : x\r\n\r\n', 400, 'bad-request'],
  ['GET /x\xff HTTP/1.1\r\n\r\n', 400, 'bad-request-target'],
] as const;

/** H19: a refusal written while another response is being sent would be read as a part of it. */
describe('H19: a malformed request after a good one', () => {
  it.each(garbage)(
    '%j behind a pending request: a whole response, the refusal, then the connection ends',
    async (bad, status, code) => {
      const { length } = stage.upstream.requestLines;
      const connection = await stage.send(request('GET /slow') + bad);
      await expect.poll(() => stage.upstream.requestLines.length).toBe(length + 1);
      release();
      const first = await connection.readResponse();
      expect(first.status).toBe(200);
      expect(first.complete).toBe(true);
      expect(first.body.toString()).toBe('slow'.repeat(10_000));
      expectRejection(await connection.readResponse(), status, code);
      expect((await connection.readAll()).toString()).toBe('');
      connection.close();
    },
  );

  it.each(garbage)(
    '%j behind an answered request: the refusal, then the connection ends',
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

  it('400 for a bad Host comes after the response to the request before it', async () => {
    const { length } = stage.upstream.requestLines;
    const bad = 'GET /stores HTTP/1.1\r\nHost: a@b\r\n\r\n';
    const connection = await stage.send(request('GET /slow') + bad);
    await expect.poll(() => stage.upstream.requestLines.length).toBe(length + 1);
    release();
    expect((await connection.readResponse()).body).toHaveLength(40_000);
    expectRejection(await connection.readResponse(), 400, 'bad-host');
    connection.close();
  });
});
