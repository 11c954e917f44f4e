import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { brotliCompressSync, deflateSync, gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { serveJson } from './jwks-server.ts';
import { first, passed, second, setUpJwks } from './jwks-setup.ts';
import { makeSigner, publicJwk } from './signing.ts';

describe('a key server that', () => {
  const redirect = (status: number) => (response: ServerResponse) =>
    response.writeHead(status, { Location: '/jwks.json' }).end();
  const weak = { ...publicJwk(makeSigner('RS256')), e: 'AQ' };
  const twins = { keys: [publicJwk(first), publicJwk(second, { kid: 'first' })] };
  const tooLarge = { keys: [publicJwk(second)], x: 'x'.repeat(262_144) };
  const bomb = gzipSync(JSON.stringify({ keys: [], x: 'x'.repeat(10_000_000) }));
  const brotliBomb = brotliCompressSync(gunzipSync(bomb));

  const coded = (coding: string, bytes: string | Buffer) => (response: ServerResponse) =>
    response.writeHead(200, { 'Content-Encoding': coding }).end(bytes);
  const status = (code: number) => (response: ServerResponse) => response.writeHead(code).end('{"keys":[]}');
  const breakOff = (response: ServerResponse) =>
    response.writeHead(200, { 'Content-Length': 99 }).write('{', () => response.destroy());
  const oddMembers = '{"keys":[{"kty":"EC","alg":{"toString":1},"kid":{"a":[]}}]}';

  it.each<[string, (response: ServerResponse) => unknown, string]>([
    ['closes the connection', (response) => response.destroy(), 'unreachable ECONNRESET'],
    ['breaks off', breakOff, 'unreachable ECONNRESET'],
    ['answers 500', status(500), 'status 500'],
    ['answers 404', status(404), 'status 404'],
    ['answers 204', status(204), 'status 204'],
    ['answers 308', redirect(308), 'redirect'],
    ['sends too much', serveJson(tooLarge), 'too-large'],
    ['sends a gzip bomb', coded('gzip', bomb), 'too-large'],
    ['sends a brotli bomb', coded('br', brotliBomb), 'too-large'],
    ['sends plain JSON as gzip', coded('gzip', '{"keys":[]}'), 'malformed'],
    ['sends nothing', serveJson(''), 'malformed'],
    ['sends another document', serveJson({ issuer: 'x' }), 'malformed'],
    ['sends null', serveJson('null'), 'malformed'],
    ['sends private keys', serveJson({ keys: [second.privateKey.export({ format: 'jwk' })] }), 'empty'],
    ['sends two keys of one kid', serveJson(twins), 'ambiguous'],
    ['sends members of wrong types', serveJson(oddMembers), 'empty'],
  ])('%s: the old keys stay', async (_, respond, word) => {
    const { server, clock, source, timer, verify } = await setUpJwks([first], {
      algorithms: ['ES256', 'RS256'],
    });
    await source.refresh();
    server.answer((response) => void respond(response));
    clock.nowMs += 300_000;
    timer.run();
    await source.refresh();
    expect(source.status()).toMatchObject({ keys: 1, failures: 1, lastError: word });
    expect([server.hits, timer.delayMs]).toEqual([2, 1_000]);
    expect(await verify(first)).toEqual(passed);
    server.serve(second);
    timer.run();
    await source.refresh();
    expect(source.status()).toMatchObject({ keys: 1, failures: 1, lastError: undefined });
    expect([await verify(second), timer.delayMs]).toEqual([passed, 300_000]);
  });

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['deflate', deflateSync],
    // File stores send these names, although they encode nothing.
    ['utf-8', Buffer.from],
    ['aws-chunked', Buffer.from],
  ])('sends the set with Content-Encoding: %s: the keys are used', async (coding, encode) => {
    const { server, source, verify } = await setUpJwks([first]);
    const bytes = encode(Buffer.from(JSON.stringify({ keys: [publicJwk(first)] })));
    server.answer(coded(coding, bytes));
    await source.refresh();
    expect(await verify(first)).toEqual(passed);
  });

  it('answers 101: no keys, and an error', async () => {
    const { server, source } = await setUpJwks([first], { timeoutMs: 50 });
    server.answer((response) => {
      response.socket?.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n');
    });
    await source.refresh();
    const { keys, lastError } = source.status();
    expect([keys, lastError]).toEqual([0, expect.stringMatching(/timeout|unreachable/)]);
  });

  it('sends one good key and three unusable ones: the good one is used, the others are counted', async () => {
    const { server, source, verify } = await setUpJwks([first]);
    const others = [weak, publicJwk(second, { use: 'enc', kid: 'first' }), { kty: 'oct' }];
    server.answer(serveJson({ keys: [...others, publicJwk(first)] }));
    await source.refresh();
    expect(source.status()).toMatchObject({ keys: 1, unusableKeys: 3, lastError: undefined });
    expect(await verify(first)).toEqual(passed);
  });
});

it('close ends a hanging fetch and the timer; no fetch follows', async () => {
  const { server, source, timer, verify } = await setUpJwks([first]);
  const hit = server.nextHit();
  let wasLetGo: Promise<unknown> = Promise.resolve();
  server.answer((response) => {
    wasLetGo = once(response, 'close');
  });
  const starting = source.refresh();
  await hit;
  source.close();
  await Promise.all([starting, wasLetGo]);
  expect(timer.delayMs).toBe(0);
  expect(await verify(first)).toHaveProperty('rejection', 'keys-unavailable');
  await source.refresh();
  expect(server.hits).toBe(1);
});
