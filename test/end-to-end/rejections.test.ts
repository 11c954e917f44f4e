import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileProtectedList } from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { explainPasted } from '../../src/cli/explain/explain-pasted.ts';
import { validateConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { type RejectionName, rejectionTable } from '../../src/http/rejection.ts';
import { eventually } from '../harness/eventually.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { freePort } from '../harness/redis-server.ts';
import { issueToken, type Shopward, startShopward } from '../harness/shopward.ts';

const names = Object.keys(rejectionTable) as RejectionName[];
/** Another status, code and detail for every rejection there is. */
const overrides = Object.fromEntries(
  names.map((name, i) => [name, { status: 460 + i, code: `own-${name}`, detail: `Own text ${i} "<>.` }]),
);

let upstream: RecordingUpstream;
let shopward: Shopward;
/** Knows no keys, and its Redis is not there. */
let cutOff: Shopward;

const bodyWith = (refreshToken: string) =>
  JSON.stringify({ data: { type: 'refresh-tokens', attributes: { refreshToken } } });
const exchangeBody = bodyWith('only-once');
const issued = () => {
  const attributes = { accessToken: issueToken(shopward.signer), refreshToken: `next-${Math.random()}` };
  return answer(
    JSON.stringify({ data: { attributes } }),
    'Content-Type: application/json\r\n',
    '201 Created',
  );
};

beforeAll(async () => {
  upstream = await startRecordingUpstream(({ head, connection }) => {
    if (head.startsWith('GET /garbage')) return 'nonsense\r\n\r\n';
    if (/^(GET|PATCH) \/silent|^PATCH \/carts\/busy|^POST \/refresh-tokens\?silent/.test(head))
      return undefined;
    if (/^GET \/broken|^POST \/refresh-tokens\?broken/.test(head)) {
      connection.socket.destroy();
      return undefined;
    }
    if (head.startsWith('POST /refresh-tokens')) return issued();
    if (head.startsWith('POST /access-tokens')) return answer('show({"refreshToken":"only-here"})');
    const found = head.startsWith('GET /url-resolver');
    const error = '{"errors":[{"status":"404","code":"2802","detail":"Url not found."}]}';
    return found
      ? answer(error, 'Content-Type: application/vnd.api+json\r\n', '404 Not Found')
      : answer('{}', 'Content-Type: application/json\r\n');
  });
  const common = {
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: ['GET /secret', 'GET /notes', 'PATCH /notes', { match: 'GET /reports', scopes: ['analyst'] }],
  };
  const config = {
    rejections: overrides,
    limits: { requestBody: '1KiB', requestHeaders: '16KiB' },
    upstream: { responseTimeout: '5s' },
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
  shopward = await startShopward({ ...common, config });
  cutOff = await startShopward({
    ...common,
    config: {
      ...config,
      auth: { keys: { jwks: `http://127.0.0.1:${await freePort()}/jwks.json` } },
      store: { url: `redis://127.0.0.1:${await freePort()}`, timeout: '200ms' },
    },
  });
});
afterAll(async () => {
  await shopward?.kill();
  await cutOff?.kill();
  await upstream?.close();
});

const line = (start: string, fields: readonly string[] = [], body = '') =>
  [`${start} HTTP/1.1`, 'Host: shop.example', ...fields, '', body].join('\r\n');
const json = (body: string) => ['Content-Type: application/json', `Content-Length: ${body.length}`];
const bearer = (claims: object = {}) => `Authorization: Bearer ${issueToken(shopward.signer, claims)}`;
const send = (bytes: string, to = shopward) => exchangeRaw(to.port, bytes, /^\S*/.exec(bytes)?.[0] ?? '');

const provoked: Partial<Record<RejectionName, () => ReturnType<typeof send>>> = {
  'bad-request': () => send('GET / HTTP/1.1\r\nHost: a\r\nno field\r\n\r\n'),
  'bad-request-target': () => send(line('GET /a/../b')),
  'bad-request-fields': () => send(line('GET /a', ['Content-Type: a/b', 'Content-Type: a/c'])),
  'bad-host': () => send('GET /a HTTP/1.1\r\n\r\n'),
  'method-override': () => send(line('POST /a', ['X-HTTP-Method-Override: DELETE', 'Content-Length: 0'])),
  'lenient-spelling': () => send(line('PATCH /carts//8', json('{}'), '{}')),
  'method-not-allowed': () => send(line('TRACE /a')),
  'payload-too-large': () => send(line('POST /a', ['Content-Length: 2000'], 'x'.repeat(2000))),
  'target-too-long': () => send(line(`GET /${'x'.repeat(15_000)}`)),
  'expectation-failed': () => send(line('GET /a', ['Expect: miracles'])),
  'fields-too-large': () => send(line('GET /a', [`X: ${'x'.repeat(20_000)}`])),
  'transfer-encoding-unsupported': () => send(line('POST /a', ['Transfer-Encoding: gzip, chunked'])),
  'http-version-unsupported': () => send('GET /a HTTP/3.0\r\nHost: a\r\n\r\n'),
  'access-token-missing': () => send(line('GET /secret')),
  'access-token-invalid': () => send(line('GET /secret', ['Authorization: Bearer x'])),
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
    await first;
    return second;
  },
  'collection-write': async () => {
    const tag = (await send(line('GET /notes', [bearer()]))).field('etag');
    return send(line('PATCH /notes', [bearer(), `If-Match: ${tag}`, ...json('{}')], '{}'));
  },
  'unexpected-body': () => send(line('GET /a', json('{}'), '{}')),
  'resource-id-missing': () => send(line('DELETE /carts/')),
  'url-missing': () => send(line('GET /url-resolver')),
  'url-not-found': () => send(line('GET /url-resolver?url=/en/x')),
  'refresh-token-invalid': async () => {
    await send(line('POST /refresh-tokens', json(exchangeBody), exchangeBody));
    return send(line('POST /refresh-tokens', json(exchangeBody), exchangeBody));
  },
  'token-request-not-plain': () =>
    send(line('POST /refresh-tokens', json(exchangeBody).with(0, 'Content-Type: text/plain'), exchangeBody)),
  'token-answer-unreadable': () => send(line('POST /access-tokens?callback=show', json('{}'), '{}')),
  'refresh-token-busy': async () => {
    const body = bodyWith('busy');
    const first = send(line('POST /refresh-tokens?silent', json(body), body));
    await eventually('the first', () => upstream.bytes().includes('"busy"') || undefined);
    const second = await send(line('POST /refresh-tokens', json(body), body));
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
/** Slow, or not to be had from outside without a fault: their own tests have them. */
const elsewhere: readonly RejectionName[] = ['request-timeout', 'overloaded', 'internal-error'];

/** Some leave a state behind, and are not to be had twice. */
const answers = new Map<string, ReturnType<typeof send>>();
function provokeOnce(name: string): ReturnType<typeof send> {
  const answer = answers.get(name) ?? provoked[name as RejectionName]?.();
  if (answer === undefined) throw new Error(`nothing provokes ${name}`);
  answers.set(name, answer);
  return answer;
}

/** Refused before it is understood. */
const unread = /^(?:bad-|fields-|target-too|expectation|http-version|transfer-encoding|method-|payload)/;
const { list } = parseProtectedList('groups:\n  A:\n    - GET /secret\ncomplete: true\n', 'list.yaml');
if (list === undefined) throw new Error('the list is broken');
const { config } = validateConfig({ auth: { keys: { jwks: 'https://shop.example/keys' } } }) as {
  config: Config;
};

it('each rejection of the table is here', () => {
  expect([...Object.keys(provoked), ...elsewhere].sort()).toEqual([...names].sort());
});

describe('what a shop team overrides is what clients get', () => {
  it.each(Object.keys(provoked))('%s', async (name) => {
    const response = await provokeOnce(name);
    const own = overrides[name];
    expect(response.status, response.body.toString()).toBe(own?.status);
    expect(JSON.parse(response.body.toString())).toEqual({ errors: [own] });
    expect(response.field('content-type')).toBe('application/vnd.api+json');
    expect(response.field('content-length')).toBe(String(response.body.length));
  });
});

describe('each refusal is found again by the id on its answer, and is explained as what it was', () => {
  it.each(Object.keys(provoked))('%s', async (name) => {
    const response = await provokeOnce(name);
    const ids = response.fields('x-request-id');
    expect(ids).toEqual([expect.stringMatching(/^[\w-]{36}$/)]);
    const of = name.endsWith('unavailable') && name !== 'refresh-token-unavailable' ? cutOff : shopward;
    const line = await of.waitForLog(({ requestId }) => requestId === ids[0]);
    expect(line).toMatchObject({ decision: 'refused', status: response.status, rejection: name });
    const { explained } = explainPasted(
      JSON.stringify(line),
      {},
      config,
      compileProtectedList(list, config.request),
    );
    expect(explained.record).toMatchObject({ requestId: ids[0], rejection: name });
    expect(explained.notes.join()).toContain('see docs/reasons.md#');
    if (line.path === '' || unread.test(name)) {
      expect([explained.verdict, explained.refusal?.rejection, explained.forward]).toEqual([
        'refused',
        name,
        null,
      ]);
    }
  });
});
