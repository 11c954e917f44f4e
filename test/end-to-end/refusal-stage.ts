import { setTimeout as sleep } from 'node:timers/promises';
import { compileProtectedList } from '../../src/access/packed-list.ts';
import { explainPasted } from '../../src/cli/explain/explain-pasted.ts';
import { type RejectionName, rejectionTable } from '../../src/http/rejection.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { exchangeRaw, type RawResponse } from '../harness/raw-client.ts';
import {
  answer,
  type RecordingUpstream,
  type Script,
  startRecordingUpstream,
} from '../harness/recording-upstream.ts';
import { issueToken, type RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { listOf, readList } from '../unit/access/list-text.ts';
import { keys, loadGood } from '../unit/config/config-folder.ts';

export const rejectionNames = Object.keys(rejectionTable) as RejectionName[];
/** These are slow, or need a fault inside the proxy; rare-refusals.test.ts covers them. */
export const provokedElsewhere: readonly RejectionName[] = [
  'request-timeout',
  'overloaded',
  'internal-error',
];

export type RefusalStage = Awaited<ReturnType<typeof startRefusalStage>>;

const bodyWith = (refreshToken: string) =>
  JSON.stringify({ data: { type: 'refresh-tokens', attributes: { refreshToken } } });
const exchangeBody = bodyWith('only-once');
const issued = ({ signer }: RunningShopward) => {
  const attributes = { accessToken: issueToken(signer), refreshToken: `next-${Math.random()}` };
  return answer(
    JSON.stringify({ data: { attributes } }),
    'Content-Type: application/json\r\n',
    '201 Created',
  );
};

/** What the shop says of the page that a request of `url-resolver` asks for. */
function mappingFor(head: string): string {
  const links = { self: `http://shop.example${/^GET (\S+)/.exec(head)?.[1]}` };
  const attributes = { entityType: 'cms-pages', entityId: 'a1' };
  const document = { data: [{ type: 'url-resolver', id: null, attributes, links }], links };
  return answer(JSON.stringify(document), 'Content-Type: application/vnd.api+json\r\n');
}

const noMapping = answer(
  '{"errors":[{"status":"404","code":"2802","detail":"Url not found."}]}',
  'Content-Type: application/vnd.api+json\r\n',
  '404 Not Found',
);

/** A whole request of a client. */
export const requestText = (start: string, fields: readonly string[] = [], body = '') =>
  [`${start} HTTP/1.1`, 'Host: shop.example', ...fields, '', body].join('\r\n');

/** The fields of a body that is JSON. */
export const json = (body: string) => ['Content-Type: application/json', `Content-Length: ${body.length}`];

/** What `explain` says of a text, for a list with one row. */
export async function explain(text: string) {
  const { config } = await loadGood(keys);
  const list = compileProtectedList(readList(listOf('GET /secret')), config.request);
  return explainPasted(text, {}, config, list).explained;
}

/**
 * Provokes every other refusal of the table over raw sockets. Starts a shop, a proxy in front of it, and a proxy that is
 * cut off from shop, keys and Redis; `config` is merged into the configuration of both.
 */
export async function startRefusalStage(options: { readonly config?: object } = {}) {
  let shopward: RunningShopward;
  let isMended = false;
  let delayed = Promise.withResolvers<void>();
  const script: Script = async ({ head, connection }) => {
    // The first of two requests waits until the second has its answer.
    const isFirst = /^PATCH \/carts\/busy|^POST \/refresh-tokens\?silent/.test(head);
    if (head.startsWith('GET /delayed') || (isFirst && !isMended)) await delayed.promise;
    if (!isMended) {
      if (head.startsWith('GET /garbage')) return 'nonsense\r\n\r\n';
      if (head.startsWith('GET /silent')) return undefined;
      if (/^GET \/broken|^POST \/refresh-tokens\?broken/.test(head)) {
        connection.socket.destroy();
        return undefined;
      }
      if (head.startsWith('POST /access-tokens')) return answer('show({"refreshToken":"only-here"})');
      if (/^GET \/url-resolver(?!\?url=\S+found )/.test(head)) return noMapping;
    }
    if (/^POST \/(?:refresh|access)-tokens/.test(head)) return issued(shopward);
    if (head.startsWith('GET /url-resolver')) return mappingFor(head);
    // Longer than the time-out of its route.
    if (head.startsWith('GET /slow')) await sleep(2000);
    return answer('{}', 'Content-Type: application/json\r\n');
  };
  /** The shop of the usual proxy. Its answers are wrong until `mendShop`. */
  const upstream: RecordingUpstream = await startRecordingUpstream(script);
  const askPort = await freePort();
  const common = {
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: [
      ...['GET /secret', 'GET /notes', 'PATCH /notes'],
      { match: 'GET /reports', scopes: ['analyst'] },
      { match: 'GET /teams/{team}', require: { team: 'team' } },
      { match: 'GET /bound', proof: 'required' },
      { match: 'ANY /basket', tokenIn: ['header', 'cookie:sid'] },
    ],
  };
  const config = {
    ...options.config,
    limits: {
      requestBody: '1KiB',
      requestHeaders: '16KiB',
      // For these routes only, so that a busy machine causes no other time-out.
      routes: ['/silent', '/slow'].map((path) => ({ path, responseTimeout: '1s' })),
    },
    // Also how long a refresh with an unknown outcome blocks its token.
    upstream: { responseTimeout: '3s' },
    // Longer than any test runs.
    urlResolver: { notFoundTtl: '1h' },
    auth: { proof: 'dpop' },
    rateLimits: { rows: [{ method: 'GET', path: '/limited', requests: 1, per: '1d', mode: 'enforce' }] },
    entityTags: {
      lease: '30s',
      sendBy: '10s',
      wait: '0s',
      resources: [
        { collection: '/carts', member: '/carts/{id}', openWrites: 'lease' },
        { collection: '/notes', member: '/notes/{id}' },
      ],
    },
  };
  shopward = await startShopwardHere({
    ...common,
    config: { ...config, authorize: { listen: { port: askPort } } },
  });
  /** The closed ports that the cut-off proxy uses. */
  const missing = { keys: await freePort(), redis: await freePort(), shop: await freePort() };
  const cutOff = await startShopwardHere({
    ...common,
    upstream: `http://127.0.0.1:${missing.shop}`,
    config: {
      ...config,
      auth: { keys: { jwks: `http://127.0.0.1:${missing.keys}/jwks.json` } },
      store: { url: `redis://127.0.0.1:${missing.redis}`, timeout: '200ms' },
      // A store that comes back is trusted after a lease.
      entityTags: { ...config.entityTags, lease: '5s', sendBy: '1s' },
    },
  });
  /** Lets the shop answer the requests that it delays, such as `GET /delayed`. */
  const release = () => {
    delayed.resolve();
    delayed = Promise.withResolvers();
  };
  const provoked = provocations(shopward, askPort, cutOff, upstream, release);
  const answers = new Map<string, Promise<RawResponse>>();
  return {
    provoked: Object.keys(provoked),
    /** Its public key verifies tokens at the usual proxy. */
    signer: shopward.signer,
    upstream,
    mendShop() {
      isMended = true;
    },
    release,
    missing,
    /** Settings of the usual proxy, for a test that starts another one with a cure applied. */
    settings: { ...common, config },
    /** The proxy that gives this refusal: the usual one, or one that reaches neither keys nor Redis nor shop. */
    shopwardOf: (name: string) =>
      name.endsWith('unavailable') && name !== 'refresh-token-unavailable' ? cutOff : shopward,
    /** The refusal. It is provoked once and kept, because some change state. */
    provoke(name: string) {
      const known = answers.get(name) ?? provoked[name as RejectionName]?.();
      if (known === undefined) throw new Error(`nothing provokes ${name}`);
      answers.set(name, known);
      return known;
    },
    async close() {
      await shopward.stop();
      await cutOff.stop();
      await upstream.close();
    },
  };
}

/** `askPort`: of `authorize`, which trusts no peer. */
function provocations(
  shopward: RunningShopward,
  askPort: number,
  cutOff: RunningShopward,
  upstream: RecordingUpstream,
  release: () => void,
): Partial<Record<RejectionName, () => Promise<RawResponse>>> {
  const line = requestText;
  const bearer = (claims: object = {}) => `Authorization: Bearer ${issueToken(shopward.signer, claims)}`;
  const send = (bytes: string, to = shopward) => exchangeRaw(to.port, bytes, /^\S*/.exec(bytes)?.[0] ?? '');
  return {
    'bad-request': () => send(`GET / HTTP/1.1\r\nHost: a\r\nno field\r\n\r\n`),
    'bad-request-target': () => send(line('GET /a/../b')),
    'bad-request-fields': () => send(line('GET /a', ['Content-Type: a/b', 'Content-Type: a/c'])),
    'bad-host': () => send(`GET /a HTTP/1.1\r\n\r\n`),
    'method-override': () => send(line('POST /a', ['X-HTTP-Method-Override: DELETE', 'Content-Length: 0'])),
    'lenient-spelling': () => send(line('PATCH /carts//8', json('{}'), '{}')),
    'peer-not-trusted': () =>
      exchangeRaw(askPort, line('GET /authorize', ['X-Original-Method: GET', 'X-Original-URI: /a'])),
    'method-not-allowed': () => send(line('TRACE /a')),
    'payload-too-large': () => send(line('POST /a', ['Content-Length: 2000'], 'x'.repeat(2000))),
    'target-too-long': () => send(line(`GET /${'x'.repeat(15_000)}`)),
    'expectation-failed': () => send(line('GET /a', ['Expect: miracles'])),
    'fields-too-large': () => send(line('GET /a', [`X: ${'x'.repeat(20_000)}`])),
    'transfer-encoding-unsupported': () => send(line('POST /a', ['Transfer-Encoding: gzip, chunked'])),
    'http-version-unsupported': () => send(`GET /a HTTP/3.0\r\nHost: a\r\n\r\n`),
    'access-token-missing': () => send(line('GET /secret')),
    'access-token-invalid': () => send(line('GET /secret', ['Authorization: Bearer x'])),
    'access-token-repeated': () => send(line('GET /basket', [bearer(), 'Cookie: sid=x'])),
    'cross-site-request': () => send(line('POST /basket', ['Cookie: sid=x', ...json('{}')], '{}')),
    'rate-limited': async () => {
      await send(line('GET /limited'));
      return send(line('GET /limited'));
    },
    'proof-invalid': () => send(line('GET /bound', [bearer()])),
    'not-permitted': () => send(line('GET /teams/7', [bearer()])),
    'insufficient-scope': () => send(line('GET /reports', [bearer()])),
    'keys-unavailable': () => send(line('GET /secret', [bearer()]), cutOff),
    'if-match-missing': () => send(line('PATCH /carts/1', json('{}'), '{}')),
    'if-match-invalid': () => send(line('PATCH /carts/1', ['If-Match: *', ...json('{}')], '{}')),
    'tag-store-unavailable': () => send(line('POST /carts/1/items', json('{}'), '{}'), cutOff),
    'resource-busy': async () => {
      const tag = (await send(line('GET /carts/busy'))).field('etag');
      const change = () => send(line('PATCH /carts/busy', [`If-Match: ${tag}`, ...json('{}')], '{}'));
      const first = change();
      await eventually('the first', () => upstream.bytes().includes('PATCH /carts/busy') || undefined);
      const second = await change();
      release();
      await first;
      return second;
    },
    'collection-write': async () => {
      const tag = (await send(line('GET /notes', [bearer()]))).field('etag');
      return send(line('PATCH /notes', [bearer(), `If-Match: ${tag}`, ...json('{}')], '{}'));
    },
    'unexpected-body': () => send(line('GET /a', json('{}'), '{}')),

    'url-missing': () => send(line('GET /url-resolver')),
    'url-not-found': () => send(line('GET /url-resolver?url=/en/x')),
    'refresh-token-invalid': async () => {
      await send(line('POST /refresh-tokens', json(exchangeBody), exchangeBody));
      return send(line('POST /refresh-tokens', json(exchangeBody), exchangeBody));
    },
    'token-request-not-plain': () => {
      const twice = '{"refreshToken":"a","refreshToken":"b"}';
      return send(line('POST /refresh-tokens', json(twice), twice));
    },
    'token-request-type': () =>
      send(
        line('POST /refresh-tokens', json(exchangeBody).with(0, 'Content-Type: text/plain'), exchangeBody),
      ),
    'token-answer-unreadable': () => send(line('POST /access-tokens?callback=show', json('{}'), '{}')),
    'refresh-token-busy': async () => {
      const body = bodyWith('busy');
      const first = send(line('POST /refresh-tokens?silent', json(body), body));
      await eventually('the first', () => upstream.bytes().includes('"busy"') || undefined);
      const second = await send(line('POST /refresh-tokens', json(body), body));
      release();
      await first;
      return second;
    },
    'refresh-token-unavailable': async () => {
      const body = bodyWith('cut');
      await send(line('POST /refresh-tokens?broken', json(body), body));
      return send(line('POST /refresh-tokens', json(body), body));
    },
    'token-store-unavailable': () =>
      send(line('POST /refresh-tokens', json(exchangeBody), exchangeBody), cutOff),
    'upstream-unreachable': () => send(line('GET /broken')),
    'upstream-invalid': () => send(line('GET /garbage')),
    'upstream-timeout': () => send(line('GET /silent')),
  };
}
