import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { buildRejections, type Rejection, reject } from '../../../src/http/rejection.ts';
import { RejectionBodies, type RejectionBodyOptions } from '../../../src/http/rejection-bodies.ts';
import { writeRejection } from '../../../src/http/write-response.ts';
import { exchangeRaw, openRawConnection } from '../../harness/raw-client.ts';

let close: () => void = () => {};
afterEach(() => close());

async function serve(
  rejection: Rejection,
  overrides = {},
  options: RejectionBodyOptions = {},
): Promise<number> {
  const rejections = new RejectionBodies(buildRejections(overrides), options);
  const server = createServer((incoming, response) => {
    writeRejection(incoming, response, rejection, rejections, ['X-Request-Id', 'r1']);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  close = () => {
    server.close();
    server.closeAllConnections();
  };
  return (server.address() as AddressInfo).port;
}

const get = 'GET / HTTP/1.1\r\nHost: s\r\n\r\n';

it.each([
  ['a short body on its way', 'Content-Length: 5\r\n\r\n', 'hello', 'keep-alive'],
  ['a long body on its way', 'Content-Length: 100000\r\n\r\n', 'a'.repeat(100_000), 'close'],
  ['chunks on their way', 'Transfer-Encoding: chunked\r\n\r\n', '5\r\nhello\r\n0\r\n\r\n', 'close'],
  ['a body that waits for 100', 'Expect: 100-continue\r\nContent-Length: 5\r\n\r\n', '', 'close'],
])('with %s: no byte of the body is read as a request', async (_what, framing, body, connection) => {
  const port = await serve(reject('access-token-missing'));
  const client = await openRawConnection(port);
  await client.write(`POST / HTTP/1.1\r\nHost: s\r\n${framing}`);
  let response = await client.readResponse();
  if (response.status === 100) response = await client.readResponse();
  expect([response.status, response.field('connection'), response.complete]).toEqual([401, connection, true]);
  await client.write(body).catch(() => {});
  if (connection === 'close') {
    expect(await client.readAll()).toHaveLength(0);
  } else {
    await client.write(get);
    expect((await client.readResponse()).status).toBe(401);
    client.close();
  }
});

const { status, code, detail } = buildRejections()['if-match-invalid'];
const type = 'urn:shopward:reason:if-match-invalid';
const asJsonApi = ['application/vnd.api+json', { errors: [{ detail, status, code }] }] as const;
const asProblem = [
  'application/problem+json',
  { type, title: 'Precondition Failed', status, detail, code },
] as const;
const asJson = ['application/json', { status, code, detail, type }] as const;

it.each([
  ['jsonapi', asJsonApi],
  ['problem', asProblem],
  ['json', asJson],
] as const)('has the form of errors.format %s, whatever the client accepts', async (format, expected) => {
  const port = await serve(reject('if-match-invalid'), {}, { format });
  const response = await exchangeRaw(port, 'GET / HTTP/1.1\r\nHost: s\r\nAccept: text/plain\r\n\r\n');
  const body = JSON.parse(response.body.toString());
  expect([response.field('content-type'), body, response.field('vary')]).toEqual([...expected, undefined]);
});

it('the detail of if-match-invalid says what to do, and calls no tag invalid', () => {
  expect(detail).toMatch(/fetch it again.*send the new tag/);
  expect(detail).not.toMatch(/invalid/i);
});
