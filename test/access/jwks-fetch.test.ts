import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fetchJwks } from '../../src/access/jwks-fetch.ts';
import { type JwksServer, serveJson, startJwksServer } from './jwks-server.ts';

let server: JwksServer;
beforeAll(async () => {
  server = await startJwksServer();
});
afterAll(() => server.close());

const get = (maxBytes = 100, signal = new AbortController().signal) =>
  fetchJwks({ url: server.url, timeoutMs: 60_000, maxBytes, signal });

describe('a key set is fetched', () => {
  it.each([
    [200, { value: { keys: [] } }],
    [201, { error: 'status' }],
    [206, { error: 'status' }],
    [299, { error: 'status' }],
    [300, { error: 'redirect' }],
    [304, { error: 'redirect' }],
    [399, { error: 'redirect' }],
    [400, { error: 'status' }],
    [503, { error: 'status' }],
  ])('with the status %i: %j', async (status, fetched) => {
    server.answer((response) => response.writeHead(status).end(status === 304 ? '' : '{"keys":[]}'));
    expect(await get()).toEqual(fetched);
  });

  it('up to its last byte, and not one more', async () => {
    const text = JSON.stringify({ keys: [], x: 'x'.repeat(40) });
    server.answer(serveJson(text));
    expect(await get(text.length)).toEqual({ value: JSON.parse(text) });
    expect(await get(text.length - 1)).toEqual({ error: 'too-large' });
  });

  it('by whoever still wants it', async () => {
    const closing = new AbortController();
    closing.abort();
    expect(await get(100, closing.signal)).toEqual({ error: 'unreachable' });
  });
});
