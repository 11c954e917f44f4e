import { expect, it } from 'vitest';
import { expectRejection, request, useAttackStage } from '../../harness/attack-stage.ts';
import { openRawConnection } from '../../harness/raw-client.ts';

const stage = useAttackStage();

it.each(['GET *', 'OPTIONS *', 'DELETE *', 'GET **', 'GET */orders', 'GET *?x'])(
  'P17: 400 for %s',
  async (line) => {
    await stage.refuses(request(line), 400, 'bad-request-target');
  },
);

/** P17: without a listener Node closes the connection of a CONNECT without an answer. */
it.each(['/orders', 'shop.example:443', '127.0.0.1:80', '*', 'x', '[::1]:80'])(
  'P17: 405 for CONNECT %s',
  async (target) => {
    const connection = await openRawConnection(stage.port);
    await connection.write(request(`CONNECT ${target}`, ['Content-Length: 3'], 'GET'));
    expectRejection(await connection.readResponse(), 405, 'method-not-allowed');
    // Octets after a CONNECT are neither a request nor sent through a tunnel.
    await connection.write(request('GET /stores')).catch(() => {});
    expect((await connection.readAll()).toString()).toBe('');
    connection.close();
    expect(stage.upstream.bytes()).not.toContain('/stores');
  },
);
