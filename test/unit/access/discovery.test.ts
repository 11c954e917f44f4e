import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createDiscovery, metadataUrls } from '../../../src/access/discovery.ts';
import { JwksKeySource } from '../../../src/access/jwks-key-source.ts';
import { makeSigner, publicJwk } from './signing.ts';

const signer = makeSigner('ES256', 'k');
const keySet = { keys: [publicJwk(signer)] };
const oauth = '/.well-known/oauth-authorization-server/realms/shop';
const openid = '/realms/shop/.well-known/openid-configuration';

/** An issuer at a path of a real server; `answers` by path: JSON, a status, or a place to go. */
async function setUp(
  answersOf: (issuer: string, origin: string) => Record<string, unknown>,
  timeoutMs = 20_000,
) {
  const asked: string[] = [];
  const held: (() => void)[] = [];
  let answers: Record<string, unknown> = {};
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    const answer = answers[path];
    if (answer === 'hang') held.push(() => response.destroy());
    else if (typeof answer === 'number') response.writeHead(answer, { Location: '/elsewhere' }).end('{}');
    else if (typeof answer === 'string') response.end(answer);
    else if (answer === undefined) response.writeHead(404).end();
    else response.end(JSON.stringify(answer));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = `${origin}/realms/shop`;
  const set = (next: typeof answersOf) => {
    answers = { '/keys': keySet, '/elsewhere': keySet, ...next(issuer, origin) };
  };
  set(answersOf);
  const source = new JwksKeySource({
    ...{ url: createDiscovery(issuer), algorithms: ['ES256'], now: Date.now, timeoutMs },
    schedule: () => () => {},
  });
  onTestFinished(async () => {
    source.close();
    for (const end of held) end();
    server.closeAllConnections();
    server.close();
  });
  await source.start();
  return { asked, source, issuer, origin, set, errorOf: () => source.status().lastError };
}

const good = (issuer: string, origin: string) => ({ issuer, jwks_uri: `${origin}/keys` });

describe('where the metadata of an issuer are', () => {
  it.each([
    ['https://id.example', '', ''],
    ['https://id.example/', '', ''],
    ['https://id.example/realms/shop', '/realms/shop', '/realms/shop'],
    ['https://id.example/realms/shop/', '/realms/shop', '/realms/shop'],
    ['https://id.example:8443/a%2Fb', '/a%2Fb', '/a%2Fb'],
  ])('%s', (issuer, inserted, before) => {
    const { origin } = new URL(issuer);
    expect(metadataUrls(issuer)).toEqual([
      `${origin}/.well-known/oauth-authorization-server${inserted}`,
      `${origin}${before}/.well-known/openid-configuration`,
    ]);
  });
});

describe('keys of a discovered set', () => {
  it('RFC 8414 comes first', async () => {
    const { asked, source } = await setUp((issuer, origin) => ({ [oauth]: good(issuer, origin) }));
    expect(asked).toEqual([oauth, '/keys']);
    expect(source.current().map(({ kid }) => kid)).toEqual(['k']);
  });

  it('OpenID Connect is the other place', async () => {
    const { asked, source } = await setUp((issuer, origin) => ({ [openid]: good(issuer, origin) }));
    await source.refresh();
    expect(asked).toEqual([oauth, openid, '/keys', oauth, openid, '/keys']);
    expect(source.status()).toMatchObject({ keys: 1, failures: 0 });
  });

  const changed =
    (change: (issuer: string, origin: string) => object) => (issuer: string, origin: string) => ({
      [openid]: { ...good(issuer, origin), ...change(issuer, origin) },
    });
  const keysAt = (url: string) => changed(() => ({ jwks_uri: url }));
  it.each<[string, (issuer: string, origin: string) => Record<string, unknown>, string]>([
    ['another issuer', changed((issuer) => ({ issuer: `${issuer}/` })), 'other-issuer'],
    ['no issuer', changed(() => ({ issuer: undefined })), 'other-issuer'],
    ['an issuer in a list', changed((issuer) => ({ issuer: [issuer] })), 'other-issuer'],
    ['no key set', changed(() => ({ jwks_uri: undefined })), 'key-set-url'],
    ['a key set without TLS elsewhere', keysAt('http://127.0.0.1:1/keys'), 'key-set-url'],
    ['a key set in a file', keysAt('file:///etc/passwd'), 'key-set-url'],
    ['a key set in itself', keysAt('data:application/json,{}'), 'key-set-url'],
    [
      'a user in the URL',
      changed((_, origin) => ({ jwks_uri: `${origin.replace('//', '//u:p@')}/keys` })),
      'key-set-url',
    ],
    ['a relative URL', keysAt('/keys'), 'key-set-url'],
    ['a key set over TLS that does not answer', keysAt('https://127.0.0.1:1/keys'), 'unreachable'],
    ['nothing', () => ({}), 'status'],
    ['HTML', () => ({ [openid]: '<html>' }), 'malformed'],
    ['a list', () => ({ [openid]: [] }), 'malformed'],
    ['a redirect', () => ({ [openid]: 302 }), 'redirect'],
    ['metadata without end', changed(() => ({ x: 'x'.repeat(300_000) })), 'too-large'],
    [
      'a key set that redirects',
      (issuer, origin) => ({ [openid]: good(issuer, origin), '/keys': 302 }),
      'redirect',
    ],
  ])('%s: none', async (_, answersOf, error) => {
    const { source, errorOf } = await setUp(answersOf);
    expect([errorOf(), source.current()]).toEqual([error, []]);
  });

  it('both places and the key set have one time-out together', async () => {
    const { errorOf } = await setUp(() => ({ [oauth]: 'hang', [openid]: 'hang' }), 300);
    expect(errorOf()).toBe('timeout');
  });

  it('the last good ones stay while the metadata are away, or those of another', async () => {
    const { source, set, errorOf } = await setUp((issuer, origin) => ({ [openid]: good(issuer, origin) }));
    set((issuer, origin) => ({ [openid]: good(`${issuer}x`, origin) }));
    await source.refresh();
    expect([errorOf(), source.current().length]).toEqual(['other-issuer', 1]);
    set(() => ({}));
    await source.refresh();
    expect([errorOf(), source.current().length]).toEqual(['status', 1]);
  });

  it('follow the metadata to another place', async () => {
    const next = makeSigner('ES256', 'next');
    const { source, set } = await setUp((issuer, origin) => ({ [openid]: good(issuer, origin) }));
    set((issuer, origin) => ({
      [openid]: { issuer, jwks_uri: `${origin}/new-keys` },
      '/new-keys': { keys: [publicJwk(next)] },
    }));
    await source.refresh();
    expect(source.current().map(({ kid }) => kid)).toEqual(['next']);
  });
});
