import { createServer } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createDiscovery, metadataUrls } from '../../../src/access/jwks-key-source.ts';
import { JwksKeySource } from '../../../src/access/jwks-key-source.ts';
import { listen } from '../../harness/listen.ts';
import { makeSigner, publicJwk } from './signing.ts';

const signer = makeSigner('ES256', 'k');
const keySet = { keys: [publicJwk(signer)] };
const oauth = '/.well-known/oauth-authorization-server/realms/shop';
const openid = '/realms/shop/.well-known/openid-configuration';

/** An issuer at a path of a real server. `answersOf` gives an answer for each path: an object (sent as JSON), a text, a status, or `hang`. */
async function setUp(
  answersOf: (issuer: string, origin: string) => Record<string, unknown>,
  timeoutMs = 20_000,
) {
  const asked: string[] = [];
  const delayed: (() => void)[] = [];
  let answers: Record<string, unknown> = {};
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    const answer = answers[path];
    if (answer === 'hang') delayed.push(() => response.destroy());
    else if (typeof answer === 'number') response.writeHead(answer, { Location: '/elsewhere' }).end('{}');
    else if (typeof answer === 'string') response.end(answer);
    else if (answer === undefined) response.writeHead(404).end();
    else response.end(JSON.stringify(answer));
  });
  const { url: origin, close } = await listen(server);
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
    for (const end of delayed) end();
    await close();
  });
  await source.refresh();
  return { asked, source, issuer, origin, set, errorOf: () => source.status().lastError };
}

const good = (issuer: string, origin: string) => ({ issuer, jwks_uri: `${origin}/keys` });

describe('metadataUrls', () => {
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

describe('a key source with a discovered URL', () => {
  it('asks for the RFC 8414 metadata first', async () => {
    const { asked, source } = await setUp((issuer, origin) => ({ [oauth]: good(issuer, origin) }));
    expect(asked).toEqual([oauth, '/keys']);
    expect(source.current().map(({ kid }) => kid)).toEqual(['k']);
  });

  it('asks for the OpenID Connect metadata after a 404, at each fetch', async () => {
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
    ['an issuer with an extra slash', changed((issuer) => ({ issuer: `${issuer}/` })), 'other-issuer'],
    ['no issuer', changed(() => ({ issuer: undefined })), 'other-issuer'],
    ['an issuer in a list', changed((issuer) => ({ issuer: [issuer] })), 'other-issuer'],
    ['no key set', changed(() => ({ jwks_uri: undefined })), 'key-set-url'],
    ['a key set on another origin without TLS', keysAt('http://127.0.0.1:1/keys'), 'key-set-url'],
    ['a key set in a file', keysAt('file:///etc/passwd'), 'key-set-url'],
    ['a key set in a data: URL', keysAt('data:application/json,{}'), 'key-set-url'],
    [
      'a user name in the URL of the key set',
      changed((_, at) => ({ jwks_uri: at.replace('//', '//u:p@') })),
      'key-set-url',
    ],
    ['a relative URL of the key set', keysAt('/keys'), 'key-set-url'],
    [
      'a key set over TLS that does not answer',
      keysAt('https://127.0.0.1:1/keys'),
      'unreachable ECONNREFUSED',
    ],
    ['nothing', () => ({}), 'status 404'],
    ['HTML', () => ({ [openid]: '<html>' }), 'malformed'],
    ['a list', () => ({ [openid]: [] }), 'malformed'],
    ['a redirect', () => ({ [openid]: 302 }), 'redirect'],
    ['metadata of more than 300 kB', changed(() => ({ x: 'x'.repeat(300_000) })), 'too-large'],
    ['keys that redirect', (issuer, at) => ({ [openid]: good(issuer, at), '/keys': 302 }), 'redirect'],
  ])('metadata with %s: no keys, and an error', async (_, answersOf, error) => {
    const { source, errorOf } = await setUp(answersOf);
    expect([errorOf(), source.current()]).toEqual([error, []]);
  });

  it('timeout if neither URL of the metadata answers', async () => {
    const { errorOf } = await setUp(() => ({ [oauth]: 'hang', [openid]: 'hang' }), 300);
    expect(errorOf()).toBe('timeout');
  });

  it('keeps the last good keys while the metadata name another issuer or are missing', async () => {
    const { source, set, errorOf } = await setUp((issuer, origin) => ({ [openid]: good(issuer, origin) }));
    set((issuer, origin) => ({ [openid]: good(`${issuer}x`, origin) }));
    await source.refresh();
    expect([errorOf(), source.current().length]).toEqual(['other-issuer', 1]);
    set(() => ({}));
    await source.refresh();
    expect([errorOf(), source.current().length]).toEqual(['status 404', 1]);
  });

  it('fetches the keys from a new jwks_uri', async () => {
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
