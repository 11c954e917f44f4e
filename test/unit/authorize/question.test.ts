import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { corpusOctets } from '../../security/attacks/corpus-stage/token-less.ts';
import { freePort } from '../../harness/free-port.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { rowsOf } from '../../harness/text-table.ts';

const rows = [
  'GET /orders',
  'PATCH /things/{id}',
  'DELETE /things/{id}',
  { match: 'GET /reports', scopes: ['analyst'] },
  { match: 'GET /teams/{team}', require: { team: 'team' } },
  { match: 'ANY /page', tokenIn: ['header', 'cookie:sid', 'query:token'] },
  { match: 'GET /tried', observe: true },
];

let shopward: RunningShopward;
let untrusting: RunningShopward;
let upstream: RecordingUpstream;
let port: number;
let untrustedPort: number;
let token: string;

beforeAll(async () => {
  upstream = await startRecordingUpstream(() => answer('ok'));
  const common = { upstream: `http://127.0.0.1:${upstream.port}`, rows };
  [port, untrustedPort] = [await freePort(), await freePort()];
  const listen = { host: '127.0.0.1', port };
  shopward = await startShopwardHere({
    ...common,
    config: {
      trustedProxies: ['127.0.0.1'],
      authorize: { listen },
      auth: { forward: { subject: 'X-User', scopes: 'X-Scopes' } },
      // `authorize` lacks these features, so they must not decide on the public port either.
      ...{ urlResolver: false, entityTags: false, refreshTokens: false },
      rateLimits: { rows: [{ method: 'GET', path: '/limited', requests: 1, per: '1d', mode: 'enforce' }] },
    },
  });
  untrusting = await startShopwardHere({
    ...common,
    config: { authorize: { listen: { ...listen, port: untrustedPort } } },
  });
  token = shopward.issueToken({ sub: 'DE--21', scope: 'a b', team: 'red' });
});
afterAll(async () => {
  await Promise.all([shopward?.stop(), untrusting?.stop()]);
  await upstream?.close();
});

type Fields = readonly string[];
const head = (line: string, fields: Fields) =>
  [`${line} HTTP/1.1`, 'Host: front.example', ...fields, '', ''].join('\r\n');
const proto = 'X-Forwarded-Proto: https';

/** The ways in which fronts name one request. */
const ways: Readonly<Record<string, (method: string, target: string, fields: Fields) => string>> = {
  'X-Forwarded-*': (method, target, fields) =>
    head('GET /authorize', [
      `X-Forwarded-Method: ${method}`,
      `X-Forwarded-Uri: ${target}`,
      'X-Forwarded-Host: shop.example',
      proto,
      ...fields,
    ]),
  'X-Original-*': (method, target, fields) =>
    head('GET /authorize', [`X-Original-Method: ${method}`, `X-Original-URI: ${target}`, proto, ...fields]),
  'the path': (method, target, fields) => head(`${method} /authorize${target}`, [proto, ...fields]),
};

const ask = (bytes: string, to = port) => exchangeRaw(to, bytes, /^\S*/.exec(bytes)?.[0]);
/** 0: no answer, as for octets that are not a request. */
const statusOf = (bytes: string, to = port) =>
  ask(bytes, to).then(
    ({ status }) => status,
    () => 0,
  );
const codeOf = (body: Buffer) => (body.length === 0 ? '' : JSON.parse(body.toString()).errors[0].code);

const json = 'Content-Type: application/json';
const each = (words: string, row: (word: string) => string) => words.split(' ').map(row).join('\n');
const changed = '/a/../orders /a/%2e%2e/orders /a%2Forders /a\\orders /a#b /a%00 /a%2500 *';
const overrides = 'X-HTTP-Method-Override X-HTTP-Method X-Method-Override X-HTTP-Verb';

interface Case {
  readonly request: string;
  readonly fields: Fields;
  /** Status and code. */
  readonly back: string;
}

/**
 * A request and its fields; status and code of the answer. TOKEN is a good token. A front forwards the path and the fields
 * as they came, so whatever shopward would change or drop is refused.
 */
const cases: readonly Case[] = rowsOf(`
GET /stores => 200
GET /stores?a=%c3&b => 200
HEAD /stores => 200
OPTIONS /orders => 200
GET /authorize => 200
GET /orders => 401 002
HEAD /orders => 401
GET /Orders/ => 401 002
GET /v1/orders => 401 002
GET /orders | Authorization: Bearer x.y.z => 401 001
GET /orders | Authorization: Bearer TOKEN => 200
GET /reports | Authorization: Bearer TOKEN => 403 insufficient-scope
GET /teams/blue | Authorization: Bearer TOKEN => 403 not-permitted
GET /teams/red | Authorization: Bearer TOKEN => 200
GET /tried => 200
POST /things/1 | Content-Type: application/x-www-form-urlencoded => 401 002
POST /things/1 => 401 002
POST /things/1 | ${json} => 401 002
POST /orders | ${json} => 200
POST /orders => 401 002
POST /orders?_method=GET | ${json} => 400 method-override
${each(overrides, (name) => `POST /stores | ${json} | ${name}: GET => 400 method-override`)}
${each(overrides, (name) => `GET /stores | ${json} | ${name}: GET => 400 method-override`)}
${each('//stores /%73tores /stores/%c3%a4 http://shop.example/stores ///x', (path) => `GET ${path} => 400 bad-request-target`)}
${each(changed, (path) => `GET ${path} => 400 bad-request-target`)}
${each('TRACE get CONNECT GET,POST', (method) => `${method} /stores => 405 method-not-allowed`)}
GET /stores | X-Original-URL: /orders => 400 bad-request-fields
GET /stores | X-Rewrite-URL: /orders => 400 bad-request-fields
GET /stores | X-Forwarded-Prefix: /orders => 400 bad-request-fields
GET /stores | X_Original_URL: /orders => 400 bad-request-fields
GET /stores | X.Rewrite.URL: /orders => 400 bad-request-fields
GET /stores | X-User: admin => 400 bad-request-fields
GET /stores | X-SCOPES: all => 400 bad-request-fields
GET /stores | X_User: admin => 400 bad-request-fields
GET /stores | Remote-User: admin => 400 bad-request-fields
GET /stores | X-Auth-Request-User: admin => 400 bad-request-fields
GET /stores | Client-Cert: x => 400 bad-request-fields
GET /stores | Forwarded: for=1.2.3.4 => 400 bad-request-fields
GET /stores | Proxy-Authorization: Basic eA== => 400 bad-request-fields
GET /stores | Trailer: X-User => 400 bad-request-fields
GET /stores | X-Forwarded-Host: evil => 200
GET /stores | X-Forwarded-For: 1.2.3.4 => 200
GET /stores | X-Real-IP: 1.2.3.4 => 200
GET /stores | TE: trailers => 200
GET /stores | Connection: close, Authorization => 400 bad-request-fields
GET /stores | Connection: close => 200
GET /orders | Authorization: Bearer TOKEN | authorization: Bearer TOKEN => 400 bad-request-fields
GET /stores | Upgrade: websocket => 400 bad-request
GET /stores | Upgrade: h2c => 400 bad-request
POST /stores | ${json} | Content-Length: 2 => 400 unexpected-body
POST /stores | ${json} | Transfer-Encoding: chunked => 400 unexpected-body
POST /stores | ${json} | Content-Length: 0 => 200
GET /page | Cookie: sid=TOKEN => 200
POST /page | Cookie: sid=TOKEN | ${json} | Origin: https://evil.example => 403 cross-site-request
GET /page?token=TOKEN => 400 bad-request-target
`).map(([input, [back = '']]) => {
  const [request = '', ...fields] = input.split(' | ');
  return { request, fields, back };
});

/** A front that writes X-Forwarded-Host itself sends no second one. */
const isOf = (way: string, { request, fields }: Case) =>
  !(way === 'X-Forwarded-*' && fields.some((field) => field.startsWith('X-Forwarded-Host'))) &&
  // The path form cannot express these request lines.
  !(way === 'the path' && /^CONNECT|^get |,POST|\*$|http:|\\|#| \/\/+/.test(request));

describe.each(Object.entries(ways))('a request in %s', (way, write) => {
  const filled = (text: string) => text.replaceAll('TOKEN', token);
  it('gets the answer of the table, and nothing of it reaches the shop', async () => {
    const asked = cases.filter((each) => isOf(way, each));
    const answers = await Promise.all(
      asked.map(async ({ request, fields }) => {
        const [method = '', target = ''] = filled(request).split(/ (.*)/s);
        const { status, body } = await ask(write(method, target, fields.map(filled)));
        return { request, fields, back: `${status} ${codeOf(body)}`.trim() };
      }),
    );
    // Only the path form asks with HEAD itself, whose answer has no body.
    const code = (back: string) => (back === '401' && way !== 'the path' ? '401 002' : back);
    expect(answers).toEqual(asked.map((one) => ({ ...one, back: code(one.back) })));
    expect(upstream.requestLines).toEqual([]);
  });

  it('answers with the fields that shopward would send to the shop, and with no-store', async () => {
    const fields = [`Authorization: bearer   ${token}`];
    const response = await ask(write('GET', '/orders', fields));
    expect(response.fields('authorization')).toEqual([`Bearer ${token}`]);
    expect([response.field('x-user'), response.field('x-scopes')]).toEqual(['DE--21', 'a b']);
    expect(response.field('cache-control')).toMatch(/no-store/);
    const open = await ask(write('GET', '/stores', fields));
    expect([open.fields('x-user'), open.fields('authorization')]).toEqual([[''], [fields[0]?.slice(15)]]);
  });

  it('names the original host in a challenge', async () => {
    const { status, rawFields } = await ask(write('GET', '/orders', []));
    const host = way === 'X-Forwarded-*' ? 'shop.example' : 'front.example';
    expect([status, rawFields[rawFields.indexOf('WWW-Authenticate') + 1]]).toEqual([
      401,
      expect.stringContaining(`https://${host}/`),
    ]);
  });
});

const named = ['X-Forwarded-Method: GET', 'X-Forwarded-Uri: /stores', 'X-Forwarded-Host: s', proto];
const original = ['X-Original-Method: GET', 'X-Original-URI: /stores', proto];
const without = (fields: Fields, at: number) => fields.filter((_, i) => i !== at);

it('400 to questions that name no request, or two', async () => {
  const questions: readonly (readonly [line: string, fields: Fields])[] = [
    ['GET /authorize', []],
    ['GET /authorize', [proto]],
    ['GET /authorize', [...named, ...original.slice(0, 2)]],
    ['GET /authorize', [...named, 'X-Original-URI: /stores']],
    ['GET /authorize', [...named, 'X-Original-Method: GET']],
    ['GET /authorize', [...original, 'X-Forwarded-Uri: /stores']],
    ...named.flatMap((field, at) => [
      ['GET /authorize', without(named, at)] as const,
      ['GET /authorize', [...named, field]] as const,
    ]),
    ...original.flatMap((field, at) => [
      ['GET /authorize', without(original, at)] as const,
      ['GET /authorize', [...original, field.toLowerCase()]] as const,
    ]),
    ['GET /authorize/stores', []],
    ['GET /authorize/stores', named],
    ['GET /authorize/stores', original],
    ['POST /authorize', named],
    ['HEAD /authorize', named],
    ['GET //authorize', named],
    ['GET /Authorize', named],
    ['GET /authoriz%65', named],
    ['GET /authorizes', named],
    ['GET /', named],
    ['GET http://front.example/authorize', named],
    ['GET /authorize', [...without(named, 3), 'X-Forwarded-Proto: wss']],
    ['GET /authorize', [...without(named, 3), 'X-Forwarded-Proto: https, http']],
    ['GET /authorize', [...without(named, 2), 'X-Forwarded-Host: a, b']],
    ...named
      .slice(1)
      .map(
        (field) =>
          ['GET /authorize', [...named.filter((one) => one !== field), `${field.split(':')[0]}:`]] as const,
      ),
  ];
  const answers = await Promise.all(
    questions.map(async ([line, fields]) => [line, fields, (await ask(head(line, fields))).status]),
  );
  expect(answers).toEqual(questions.map((question) => [...question, 400]));
  for (const question of ['/authorize', '/authorize?a=/orders'])
    expect((await ask(head(`GET ${question}`, named))).status).toBe(200);
});

it('403 to a peer that is not one of trustedProxies, whatever it asks', async () => {
  const good = [...named, `Authorization: Bearer ${token}`];
  for (const question of [
    head('GET /authorize', good),
    head('GET /authorize/stores', [proto]),
    head('GET /', []),
  ]) {
    const { status, body } = await ask(question, untrustedPort);
    expect([status, codeOf(body)]).toEqual([403, 'peer-not-trusted']);
  }
});

it('forwards /authorize on the public port like any other path', async () => {
  const { status, body } = await ask(head('GET /authorize', named), shopward.port);
  expect([status, body.toString()]).toEqual([200, 'ok']);
  expect(upstream.requestLines.splice(0)).toEqual(['GET /authorize HTTP/1.1']);
});

it('takes one token of a rate limit for each question, and refuses the next', async () => {
  const from = (address: string) => [
    ...without(named, 1),
    'X-Forwarded-Uri: /limited',
    `X-Forwarded-For: ${address}`,
  ];
  const status = async (address: string) => (await ask(head('GET /authorize', from(address)))).status;
  expect([await status('9.9.9.1'), await status('9.9.9.1'), await status('9.9.9.2')]).toEqual([
    200, 429, 200,
  ]);
});

it('logs a question as the request that it asks about', async () => {
  const fields = [
    'X-Original-Method: DELETE',
    'X-Original-URI: /things/7',
    proto,
    'X-Forwarded-For: 9.9.9.3',
  ];
  await ask(head('GET /authorize', fields));
  const line = await shopward.waitForLog(({ method, path }) => method === 'DELETE' && path === '/things/7');
  expect(line).toMatchObject({ status: 401, clientAddress: '9.9.9.3', decision: 'refused' });
});

it('allows no request of the attack corpus that the public port refuses or changes', async () => {
  const withoutBody = /^([A-Z]+) (\/\S*) HTTP\/1\.1\r\n(.*?\r\n)\r\n$/s;
  const known = corpusOctets().flatMap((octets) => {
    const [, method = '', target = '', lines = ''] = withoutBody.exec(octets) ?? [];
    const isFramed = /^(?:content-length|transfer-encoding|expect):/im.test(lines);
    const fields = lines.split('\r\n').filter((line) => line !== '' && !/^host:/i.test(line));
    // The question names this host, so only requests with it are comparable.
    const hosts = lines.match(/^host:.*$/gim) ?? [];
    return method === '' || isFramed || hosts.length !== 1 || hosts[0] !== 'Host: shop.example'
      ? []
      : [{ method, target, fields, octets }];
  });
  let allowed = 0;
  for (const { method, target, fields, octets } of known) {
    const question = ways['X-Original-*']?.(method, target, fields) ?? '';
    if ((await statusOf(question)) !== 200) continue;
    allowed += 1;
    upstream.requestLines.length = 0;
    await statusOf(octets, shopward.port);
    expect(upstream.requestLines, octets).toEqual([`${method} ${target} HTTP/1.1`]);
  }
  expect([known.length > 300, allowed > 20]).toEqual([true, true]);
});

it('counts a question about a token endpoint as a request with a body', async () => {
  const own = await freePort();
  const limited = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows,
    config: {
      trustedProxies: ['127.0.0.1'],
      authorize: { listen: { port: own } },
      rateLimits: { tokenEndpoints: { requests: 1, per: '1d', mode: 'enforce' } },
    },
  });
  const put = ways['X-Original-*']?.('PUT', '/access-tokens', [json]) ?? '';
  const get = ways['X-Original-*']?.('GET', '/access-tokens', []) ?? '';
  const statuses = [await statusOf(get, own), await statusOf(put, own), await statusOf(put, own)];
  await limited.stop();
  expect(statuses).toEqual([200, 200, 429]);
});
