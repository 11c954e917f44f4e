import { describe, expect, it } from 'vitest';
import { expectRejection, request, useAttackStage } from '../../harness/attack-stage.ts';
import { openRawConnection } from '../../harness/raw-client.ts';

const stage = useAttackStage();
const expects = 'Expect: 100-continue';
const json = 'Content-Type: application/json';

/** H2: Node answers 100 before a token is checked, unless it is told not to. */
describe('H2: Expect: 100-continue', () => {
  it.each([
    ['POST /returns', 401, '002', []],
    ['POST /returns', 401, '001', ['Authorization: Bearer x']],
    ['POST /stores/../returns', 400, 'bad-request-target', []],
    ['POST /carts?_method=DELETE', 400, 'method-override', []],
    ['POST /stores', 400, 'bad-request-fields', ['Connection: host']],
    ['TRACE /stores', 405, 'method-not-allowed', []],
  ] as const)('%s: %i %s without a 100 before', async (line, status, code, fields) => {
    const smuggled = request('GET /smuggled');
    const connection = await stage.send(
      request(line, [json, expects, `Content-Length: ${smuggled.length}`, ...fields]),
    );
    const response = await connection.readResponse();
    expectRejection(response, status, code);
    // A body that the client sends nevertheless must not be read as a request.
    expect(response.field('connection')).toBe('close');
    await connection.write(smuggled).catch(() => {});
    await connection.readAll();
    connection.close();
    expect(stage.upstream.bytes()).not.toContain('/smuggled');
  });

  it('100 for a request that passes all checks; the field is not forwarded', async () => {
    const connection = await openRawConnection(stage.port);
    const token = `Authorization: Bearer ${stage.shopward.issueToken()}`;
    const spoofed = ['X-Original-URL: /admin', 'X-Forwarded-For: 1.2.3.4', 'X_User: admin'];
    await connection.write(request('POST /returns', [json, expects, token, 'Content-Length: 2', ...spoofed]));
    expect((await connection.readResponse()).status).toBe(100);
    await connection.write('{}');
    expect((await connection.readResponse()).status).toBe(200);
    connection.close();
    const head = stage.upstream.bytes().slice(stage.upstream.bytes().lastIndexOf('POST /returns'));
    expect(head).not.toMatch(/expect|admin|1\.2\.3\.4/i);
    expect(head).toMatch(/\r\n\r\n\{\}$/);
  });

  it.each(['100-continue, x', '101-switch', 'x', '200-ok', ''])('417 for Expect: %s', async (value) => {
    await stage.refuses(
      request('POST /stores', [json, `Expect: ${value}`, 'Content-Length: 2'], '{}'),
      417,
      'expectation-failed',
    );
    await stage.refuses(request('GET /stores', [`Expect: ${value}`]), 417, 'expectation-failed');
  });

  it('400 for two Expect fields', async () => {
    await stage.refuses(
      request('POST /stores', [expects, expects, 'Content-Length: 2'], '{}'),
      400,
      'bad-request-fields',
    );
  });
});
