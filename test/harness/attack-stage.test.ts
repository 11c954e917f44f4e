import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectRest, type Pair, request, startPair } from './attack-stage.ts';
import { openRawConnection } from './raw-client.ts';
import { answer } from './recording-upstream.ts';

/** What one file leaves of its requests would be there in the next one: the end of a file notices each kind of it. */
let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
});
afterAll(async () => {
  await pair.upstream.close();
  await pair.shopward.stop();
});

const shortMs = 300;

test('is at rest before the first request, and once all responses are read to their end', async () => {
  await expectRest(pair);
  pair.script = () => answer();
  const connection = await openRawConnection(pair.shopward.port);
  await connection.write(request('GET /stores'));
  expect((await connection.readResponse()).status).toBe(200);
  connection.close();
  await expectRest(pair);
});

test('a connection that its client keeps is noticed', async () => {
  const connection = await openRawConnection(pair.shopward.port);
  await connection.write('GET /stores HTTP/1.1\r\nHost: shop');
  await expect(expectRest(pair, shortMs)).rejects.toThrow(/file: shopward_connections 1, sockets \d/);
  connection.close();
  await expectRest(pair);
});

test('an exchange that is under way is noticed', async () => {
  const asked = new Promise<void>((resolve) => {
    pair.script = () => {
      resolve();
      return undefined;
    };
  });
  const connection = await openRawConnection(pair.shopward.port);
  await connection.write(request('GET /stores'));
  await asked;
  // With the upstream's end in place, which the end of a file would take away.
  const left = { ...pair, upstream: { ...pair.upstream, connections: [] } };
  await expect(expectRest(left, shortMs)).rejects.toThrow(
    /http_server_active_requests 1, .*shopward_upstream_active_requests 1, .*sockets \d/,
  );
  connection.close();
  await expectRest(pair);
});

test('a socket that no gauge counts is noticed', async () => {
  const connection = await openRawConnection(pair.shopward.adminPort);
  await connection.write('GET /livez HTTP/1.1\r\n');
  await expect(expectRest(pair, shortMs)).rejects.toThrow(/file: sockets \d/);
  connection.close();
  await expectRest(pair);
});
