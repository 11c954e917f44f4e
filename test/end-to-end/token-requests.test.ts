import { deflateRawSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CarelessTokenShop, startCarelessTokenShop } from '../harness/careless-token-shop.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

let shop: CarelessTokenShop;
let shopward: RunningShopward;
beforeAll(async () => {
  shop = await startCarelessTokenShop();
  shopward = await startShopwardHere({ upstream: shop.url, rows: ['GET /secret'] });
});
afterAll(async () => {
  await shopward?.stop();
  await shop?.close();
});

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly type?: string;
  readonly fields?: readonly string[];
  readonly body?: string | Buffer;
}

async function send({ method = 'POST', path = '/refresh-tokens', type, fields = [], body = '' }: Sent) {
  const octets = Buffer.isBuffer(body) ? body : Buffer.from(body);
  const head = [
    `${method} ${path} HTTP/1.1`,
    'Host: shop.example',
    ...(type === undefined ? [] : [`Content-Type: ${type}`]),
    `Content-Length: ${octets.length}`,
    ...fields,
    '',
    '',
  ].join('\r\n');
  return exchangeRaw(shopward.port, head + octets.toString('latin1'), method);
}

const json = 'application/json';
const form = 'application/x-www-form-urlencoded';
const multipart = 'multipart/form-data; boundary=b';
const longAgo = 'Sat, 01 Jan 2000 00:00:00 GMT';
const document = (token: string) => `{"data":{"attributes":{"refreshToken":"${token}"}}}`;
const part = (head: string, token: string) =>
  `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${token}\r\n--b--\r\n`;
const used = 'kH0n2Q7xVb9sYt4LmPz1RgkH0n2Q7xVb9sYt4LmPz1Q';

const inJson = (body: string | Buffer, ...fields: string[]): Sent => ({ type: json, fields, body });
const inForm = (body: string): Sent => ({ path: '/token', type: form, body });
const inPart = (head: string): Sent => ({ path: '/token', type: multipart, body: part(head, used) });

/** The used token in a form that another server may read and shopward does not. */
const disguises: ReadonlyArray<readonly [string, Sent]> = [
  ...['x', 'gzip', 'br', 'deflate', 'utf-8'].map(
    (coding) =>
      [
        `Content-Encoding: ${coding} over a plain body`,
        inJson(document(used), `Content-Encoding: ${coding}`),
      ] as const,
  ),
  [
    'a gzip body, followed by the form',
    {
      path: '/token',
      type: form,
      fields: ['Content-Encoding: gzip'],
      body: Buffer.concat([gzipSync('x'), Buffer.from(`refresh_token=${used}`)]),
    },
  ],
  ['raw deflate', inJson(deflateRawSync(document(used)), 'Content-Encoding: deflate')],
  ['an open bracket', inForm(`refresh[token=${used}`)],
  ['an open bracket in a part', inPart('name="refresh[token"')],
  [
    'an open bracket in the grant',
    inForm(`grant_type=password&grant[type=refresh_token&refresh_token=${used}`),
  ],
  ['no closing quote', inPart('name="refresh_token')],
  ['a nested name', { type: form, body: `data[attributes][refreshToken]=${used}` }],
  ['a nested name in the query', { path: `/refresh-tokens?data[attributes][refreshToken]=${used}` }],
  ['a nested name in a part', { type: multipart, body: part('name="data[attributes][refreshToken]"', used) }],
  [
    'UTF-32',
    inJson(Buffer.from(Uint32Array.from([...document(used)], (one) => one.codePointAt(0) ?? 0).buffer)),
  ],
  ['another charset', { type: `${json}; charset=ibm037`, body: document(used) }],
  ['a semicolon', inForm(`a=b;refresh_token=${used}`)],
  ['the Kelvin sign', inJson(`{"refreshTo\u212aen":"${used}"}`)],
  ['an extended name', inPart("name*=UTF-8''refresh_token")],
  // Tomcat decodes a name that is an encoded word; CGI.pm and ASP.NET decode %u.
  ['a name as an encoded word (base64)', inPart('name="=?utf-8?B?cmVmcmVzaF90b2tlbg==?="')],
  ['a name as an encoded word (quoted)', inPart('name="=?utf-8?Q?refresh=5Ftoken?="')],
  ['a name with %u', inForm(`refresh%u005ftoken=${used}`)],
  ['a query with %u', { path: `/token?refresh%u005ftoken=${used}` }],
  [
    'an encoded grant before a plain one',
    {
      path: '/token',
      type: multipart,
      body: `--b\r\nContent-Disposition: form-data; name="=?utf-8?Q?grant=5Ftype?="\r\n\r\nrefresh_token\r\n--b\r\nContent-Disposition: form-data; name="grant_type"\r\n\r\npassword\r\n${part('name="refresh_token"', used)}`,
    },
  ],
  [
    'an encoded grant before a plain one, in a form',
    inForm(`grant%u005ftype=refresh_token&grant_type=password&refresh_token=${used}`),
  ],
  ['a continued name', inPart('name*0="refresh_token"')],
  ['a comment', inJson(`/**/${document(used)}`)],
  ['an escape', inJson(document(`\\${used}`))],
  ['a duplicate', inJson(`{"refreshToken":"","refreshToken":"${used}"}`)],
  ['both query and body', { path: `/token?refresh_token=x`, type: form, body: `refresh_token=${used}` }],
  ['no type', { body: document(used) }],
  ['two types', inJson(document(used), `Content-Type: ${form}`)],
  ['a space in it', inJson(document(`${used.slice(0, 9)} ${used.slice(9)}`))],
  ['a line break in it', inJson(document(`${used.slice(0, 9)}\\n${used.slice(9)}`))],
  ...['PUT', 'PATCH', 'DELETE', 'OPTIONS'].map(
    (method) => [`${method} with the body`, { method, type: json, body: document(used) }] as const,
  ),
  ...['GET', 'PUT', 'DELETE'].map(
    (method) => [`${method} with the query`, { method, path: `/token?refresh_token=${used}` }] as const,
  ),
];

/** Other spellings of the used token, in a plain request. */
const spellings: ReadonlyArray<readonly [string, string]> = [
  ['padding', `${used}=`],
  ['an exclamation mark', `${used.slice(0, 9)}!${used.slice(9)}`],
  ['a hyphen', `${used.slice(0, 9)}-${used.slice(9)}`],
  ['other unused bits', used.replace(/Q$/, 'R')],
  ['another case', used.toUpperCase()],
];

describe('a used token', () => {
  beforeAll(async () => {
    expect((await send({ type: json, body: document(used) })).status).toBe(200);
  });

  it.each(disguises)('400 or 415, naming the field: %s', async (_, sent) => {
    const before = shop.asked.length;
    const response = await send(sent);
    const body = JSON.parse(response.body.toString());
    const isType = response.status === 415;
    expect(isType || response.status === 400).toBe(true);
    // A name with a `%` in the query may be that of a method override, which is refused on all paths.
    if (body.errors?.[0].code === 'method-override') expect(sent.path).toContain('?refresh%u005ftoken');
    else if (/^\/token/.test(sent.path ?? '')) {
      expect(body.error).toBe('invalid_request');
      expect(body.error_description).toContain('`refresh_token`');
    } else {
      const [{ code, detail }] = body.errors;
      expect(isType ? ['token-request-type'] : ['token-request-not-plain', 'bad-request-fields']).toContain(
        code,
      );
      if (code !== 'bad-request-fields') expect(detail).toContain('`refreshToken`');
    }
    expect(shop.asked.length).toBe(before);
  });

  it.each(spellings)('401 for another spelling: %s', async (_, token) => {
    const before = shop.asked.length;
    expect((await send({ type: json, body: document(token) })).status).toBe(401);
    expect(shop.asked.length).toBe(before);
  });
});

describe('a request by another method and without a token passes', () => {
  it.each<[string, Sent]>([
    ['GET', { method: 'GET' }],
    ['GET with a query', { method: 'GET', path: '/refresh-tokens?include=x' }],
    ['OPTIONS', { method: 'OPTIONS' }],
    [
      'PATCH with a body',
      { method: 'PATCH', path: '/refresh-tokens/x', type: json, body: '{"data":{"x":"y"}}' },
    ],
  ])('%s', async (_, sent) => {
    const before = shop.asked.length;
    expect((await send(sent)).status).toBe(200);
    expect(shop.asked.length).toBe(before + 1);
  });
});

describe('the token of an answer is recorded or withheld, whatever format the client asks for', () => {
  const readable = async (response: Awaited<ReturnType<typeof send>>) => {
    const text = response.body.toString();
    const [, token = ''] = /"(fresh-[\w-]+)"/.exec(text) ?? [];
    expect(token).not.toBe('');
    const metrics = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
    expect(metrics).toContain('recorded');
    // The token is known: it can be exchanged once.
    expect((await send({ type: json, body: document(token) })).status).toBe(200);
    expect((await send({ type: json, body: document(token) })).status).toBe(401);
  };

  it('503 for the old token of an answer that is withheld', async () => {
    const token = document('withheld-kH0n2Q7xVb9sYt4LmPz1Q');
    expect((await send({ path: '/refresh-tokens?shape=xml', type: json, body: token })).status).toBe(502);
    const before = shop.asked.length;
    expect((await send({ type: json, body: token })).status).toBe(503);
    expect(shop.asked.length).toBe(before);
  });

  for (const path of ['/access-tokens', '/refresh-tokens', '/token']) {
    const ask = (query = '', fields: string[] = []) =>
      path === '/refresh-tokens'
        ? send({ path: path + query, type: json, fields, body: document(`once-${Math.random()}`) })
        : send({ path: path + query, type: form, fields, body: 'grant_type=password&username=x&password=y' });

    it.each([
      ['Accept: application/xml', ['Accept: application/xml']],
      ['Accept-Encoding: deflate', ['Accept-Encoding: deflate']],
      ['Accept-Encoding: gzip', ['Accept-Encoding: gzip, br']],
      ['Range', ['Range: bytes=20-40', 'Accept-Charset: utf-16']],
      // After a refresh, a server in front of the shop's code might answer 412 or 304 instead.
      ['a condition', ['If-Match: "x"', 'If-None-Match: *', 'If-Range: "x"', 'Range: bytes=0-']],
      ['a date', [`If-Unmodified-Since: ${longAgo}`, `If-Modified-Since: ${longAgo}`]],
    ])(`${path}: %s is not forwarded`, async (_, fields) => {
      const response = await ask('', fields);
      expect(response.status).toBe(200);
      const headers = shop.asked.at(-1)?.headers ?? {};
      expect(headers['accept-encoding']).toBe('identity');
      expect(headers.accept ?? 'json').toMatch(/json/);
      const heard = Object.keys(headers).filter((name) => /^(?:if-|range|accept-charset)/.test(name));
      expect(heard).toEqual([]);
      await readable(response);
    });

    it.each(['', '?include=261000', '?shape=other'])(`${path}%s is read`, async (query) => {
      const response = await ask(query);
      expect(response.status).toBe(200);
      await readable(response);
    });

    it.each([
      ...'?include=262144 ?shape=callback ?shape=xml ?shape=bare ?shape=events'.split(' '),
      ...'?shape=utf-16 ?coded'.split(' '),
    ])(`${path}%s is withheld`, async (query) => {
      const response = await ask(query);
      expect([response.status, JSON.parse(response.body.toString()).errors[0].code]).toEqual([
        502,
        'token-answer-unreadable',
      ]);
    });

    it.each(['?shape=none', '?shape=text', '?shape=empty'])(
      `${path}%s has no token and passes`,
      async (query) => {
        expect((await ask(query)).status).toBe(200);
      },
    );
  }
});

describe('endpoints of plain JSON (`format: json`)', () => {
  let front: RunningShopward;
  beforeAll(async () => {
    const endpoint = (kind: string, path: string) => ({ kind, method: 'POST', path, format: 'json' });
    const endpoints = [
      ...[endpoint('issue', '/login'), endpoint('exchange', '/refresh'), endpoint('revoke', '/logout')],
    ];
    front = await startShopwardHere({
      upstream: shop.url,
      rows: ['GET /secret'],
      config: { refreshTokens: { endpoints } },
    });
  });
  afterAll(() => front?.stop());

  const ask = async (path: string, type: string, body: string) => {
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}`;
    const response = await exchangeRaw(front.port, `${head}\r\n\r\n${body}`, 'POST');
    const text = String(response.body);
    return { status: response.status, json: text.startsWith('{') ? JSON.parse(text) : text };
  };
  const tokenOf = ({ json: { data } }: Awaited<ReturnType<typeof ask>>) => data.attributes.refreshToken;

  it.each([
    ['a login', '/login', json, '{"username":"a","password":"b"}', 200, undefined],
    [
      'a refresh',
      '/refresh',
      json,
      '{"grant_type":"refresh_token","refresh_token":"fresh-one-1"}',
      200,
      undefined,
    ],
    ['a logout', '/logout', json, '{"refresh_token":"fresh-one-2"}', 200, undefined],
    ['a login by form', '/login', form, 'username=a&password=b', 415, 'invalid_request'],
    ['a refresh by form', '/refresh', form, 'refresh_token=fresh-one-3', 415, 'invalid_request'],
    ['a logout by form', '/logout', form, 'refresh_token=fresh-one-3', 415, 'invalid_request'],
    ['a JSON:API name', '/refresh', json, document('fresh-one-3'), 400, 'invalid_request'],
    ['another spelling', '/refresh', json, '{"Refresh-Token":"fresh-one-3"}', 400, 'invalid_request'],
    ['a name twice', '/refresh', json, '{"refresh_token":"a","refresh_token":"b"}', 400, 'invalid_request'],
    ['a token that logged out', '/refresh', json, '{"refresh_token":"fresh-one-2"}', 400, 'invalid_grant'],
  ])('%s', async (_, path, type, body, status, error) => {
    const answer = await ask(path, type, body);
    expect([answer.status, answer.json.error]).toEqual([status, error]);
    if (status === 415) expect(answer.json.error_description).toContain('This endpoint takes JSON only.');
    if (error === 'invalid_request' && path !== '/login')
      expect(answer.json.error_description).toContain('The field of the token is `refresh_token`.');
  });

  it('each token is exchanged once', async () => {
    const token = JSON.stringify({ refresh_token: tokenOf(await ask('/login', json, '{}')) });
    expect((await ask('/refresh', json, token)).status).toBe(200);
    const again = await ask('/refresh', json, token);
    expect([again.status, again.json.error]).toEqual([400, 'invalid_grant']);
  });
});
