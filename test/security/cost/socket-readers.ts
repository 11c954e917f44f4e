import type { Stage } from './stage.ts';
import { lineKinds, type Reader, targetKinds, textKinds } from './texts.ts';

const head = 60_000;
const body = 60_000;

/** Every field that the proxy reads, with a request for which it matters. */
const fields: readonly (readonly [line: string, request: string])[] = [
  ...[
    ...'Host Connection Content-Length Transfer-Encoding Expect Upgrade TE Trailer Via'.split(' '),
    ...'Cache-Control Accept Accept-Language Vary Authorization Cookie Proxy-Authorization'.split(' '),
    ...'X-Anonymous-Customer-Unique-Id X-Currency If-Match If-None-Match Range If-Range'.split(' '),
  ].map((name) => [name, 'GET /carts/1'] as const),
  ...[
    ...'X-Forwarded-For X-Forwarded-Proto X-Forwarded-Host X-Request-Id'.split(' '),
    ...'Forwarded X-Real-IP X-Forwarded-Port X-Forwarded-Prefix'.split(' '),
  ].map((name) => [name, 'GET /stores'] as const),
  ['If-Match', 'PATCH /carts/1'],
  ['If-None-Match', 'PATCH /carts/1'],
  ['If-Match', 'POST /carts/1/x'],
  ['If-Match', 'DELETE /carts/1'],
  ['If-Match', 'PATCH /carts'],
  ['If-Match', 'POST /token'],
  ['If-None-Match', 'HEAD /carts/1'],
  ['If-None-Match', 'GET /carts'],
  ['If-None-Match', 'GET /protected-resources'],
  ['Accept', 'GET /protected-resources'],
  ...['Accept-Language', 'Store', 'If-None-Match', 'Cookie', 'Accept', 'Cache-Control'].map(
    (name) => [name, 'GET /url-resolver?url=/en/x'] as const,
  ),
  ...['Content-Type', 'Content-Encoding', 'Accept', 'Cookie', 'Content-Transfer-Encoding'].map(
    (name) => [name, 'POST /token'] as const,
  ),
  ...['X-HTTP-Method-Override', 'Origin'].map((name) => [name, 'POST /stores'] as const),
  [
    'Origin: https://shop.example\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers',
    'OPTIONS /carts',
  ],
  ...['Sec-WebSocket-Protocol', 'Sec-WebSocket-Key', 'Sec-WebSocket-Extensions', 'Origin', 'Cookie'].map(
    (name) => [`Connection: upgrade\r\nUpgrade: websocket\r\n${name}`, 'GET /stores'] as const,
  ),
  ['Connection: upgrade\r\nUpgrade', 'GET /stores'],
];

const jsonAnswer = (status: string, text: string, more = '') =>
  Buffer.from(
    `HTTP/1.1 ${status}\r\nContent-Type: application/vnd.api+json\r\n${more}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
const emptyAnswer = jsonAnswer('200 OK', '{"data":{"type":"carts","id":"1"}}');

const form = 'application/x-www-form-urlencoded';
/** Bodies that the proxy parses, by content type. Each is sent to each endpoint of `bodyEndpoints`. */
const bodies: readonly (readonly [type: string, what: string, frame: (text: string) => string])[] = [
  [form, 'a form', (text) => text],
  [form, 'a token in a form', (text) => `grant_type=refresh_token&refresh_token=${text}`],
  [form, 'a name in a form', (text) => `grant_type=refresh_token&${text}=a`],
  ['application/json', 'JSON', (text) => text],
  [
    'application/json',
    'a token in JSON',
    (text) => JSON.stringify({ data: { attributes: { refreshToken: text } } }),
  ],
  ['application/json', 'a name in JSON', (text) => JSON.stringify({ [text]: 'a', refresh_token: 'b' })],
  ['text/plain', 'a text', (text) => text],
];
const bodyEndpoints = ['POST /token', 'POST /refresh-tokens', 'POST /access-tokens'];

/** Answers of the shop, each with the request that it answers. */
const answers: readonly (readonly [
  what: string,
  request: string,
  frame: (text: string) => string | Buffer,
])[] = [
  ...[
    ...'ETag Vary Content-Type Content-Encoding Connection Keep-Alive Transfer-Encoding'.split(' '),
    ...'Cache-Control Age Content-Length Trailer Access-Control-Expose-Headers Set-Cookie'.split(' '),
  ].map(
    (name) =>
      [
        `${name} of an answer`,
        'GET /carts/1',
        (text: string) => jsonAnswer('200 OK', '{"data":{"type":"carts","id":"1"}}', `${name}: ${text}\r\n`),
      ] as const,
  ),
  [
    'Location of an answer',
    'POST /carts',
    (text) => jsonAnswer('201 Created', '{}', `Location: /carts/${text}\r\n`),
  ],
  ['a reason', 'GET /stores', (text) => `HTTP/1.1 200 ${text}\r\nContent-Length: 0\r\n\r\n`],
  ['a malformed head', 'GET /stores', (text) => `${text}\r\n\r\n`],
  ['a field name', 'GET /stores', (text) => `HTTP/1.1 200 OK\r\n${text}: a\r\nContent-Length: 0\r\n\r\n`],
  ['chunks', 'GET /stores', (text) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${text}`],
];

/** Answers whose Content-Length is right, so the connection to the shop stays open. */
const framedAnswers: typeof answers = [
  [
    'an id of a created member',
    'POST /carts',
    (text) => jsonAnswer('201 Created', JSON.stringify({ data: { id: text } })),
  ],
  [
    'an id of an only member',
    'GET /carts',
    (text) => jsonAnswer('200 OK', JSON.stringify({ data: [{ id: text }] })),
  ],
  ['a tracked answer', 'GET /carts/1', (text) => jsonAnswer('200 OK', `{"data":"${text}"}`)],
  [
    'an answer with tokens',
    'POST /token',
    (text) => jsonAnswer('200 OK', JSON.stringify({ refresh_token: text })),
  ],
  ['an answer of a token endpoint', 'POST /token', (text) => jsonAnswer('200 OK', text)],
  ['an answer to the resolver', 'GET /url-resolver?url=/en/x', (text) => jsonAnswer('200 OK', text)],
];

/** Whole exchanges: they find every function that reads a text, also those missing in `pureReaders`. */
export function socketReaders(stage: Stage): readonly Reader[] {
  const request = (line: string, more: string, content = '') =>
    `${line} HTTP/1.1\r\nHost: shop.example\r\n${stage.authorization}${more}Content-Length: ${Buffer.byteLength(content)}\r\n\r\n${content}`;
  const bare = (line: string, field: string) => {
    const host = field.startsWith('Host:') ? '' : 'Host: shop.example\r\n';
    const authorization = field.startsWith('Authorization:') ? '' : stage.authorization;
    return `${line} HTTP/1.1\r\n${host}${authorization}${field}\r\n\r\n`;
  };
  const sendTo = async (octets: string, answer: string | Buffer = emptyAnswer, isKept = true) => {
    stage.answerWith(answer, isKept);
    await stage.send(octets);
  };
  // The admin port refuses other hosts before it reads anything else.
  const askAdmin = (octets: string) =>
    stage.sendToAdmin(octets.replace('Host: shop.example', 'Host: 127.0.0.1'));
  const plain = 'Content-Type: application/x-www-form-urlencoded\r\n';
  const refresh = 'grant_type=refresh_token&refresh_token=abcdefghijkl';
  return [
    ...fields.map(([name, line]) => ({
      name: `${name.split('\n').at(-1)} of ${line}`,
      limit: head,
      kinds: lineKinds,
      read: (text: string) => sendTo(bare(line, `${name}: ${text}`)),
    })),
    ...fields.map(([name, line]) => ({
      name: `${name.split('\n').at(-1)} of ${line} in many lines`,
      limit: head,
      kinds: manyLines,
      read: (text: string) => sendTo(bare(line, text.replaceAll('NAME', name.split('\n').at(-1) ?? ''))),
    })),
    ...['GET', 'POST', 'PATCH'].flatMap((method) => [
      {
        name: `the path of a ${method}`,
        limit: 8192,
        kinds: targetKinds,
        read: (text: string) => sendTo(request(`${method} /carts/${text}`, '')),
      },
      {
        name: `the query of a ${method}`,
        limit: head,
        kinds: targetKinds,
        read: (text: string) => sendTo(request(`${method} /carts/1?${text}`, '')),
      },
    ]),
    ...['GET /url-resolver', 'POST /token', 'POST /refresh-tokens', 'GET /catalog-search'].map((line) => ({
      name: `the query of ${line}`,
      limit: head,
      kinds: targetKinds,
      read: (text: string) =>
        sendTo(request(`${line}?${text}`, plain, line.startsWith('POST') ? refresh : '')),
    })),
    ...bodyEndpoints.flatMap((line) =>
      bodies.map(([type, what, frame]) => ({
        name: `${what} to ${line}`,
        limit: body,
        kinds: textKinds,
        read: (text: string) => sendTo(request(line, `Content-Type: ${type}\r\n`, frame(text))),
      })),
    ),
    ...['GET /api/decisions/search?q=', 'GET /metrics?', 'GET /api/'].map((target) => ({
      name: `what follows ${target} at the admin port`,
      limit: 15_000,
      kinds: targetKinds,
      read: (text: string) => askAdmin(bare(`${target}${text}`, 'Accept: */*')),
    })),
    ...['Host', 'Authorization', 'Origin', 'Accept', 'If-None-Match'].map((name) => ({
      name: `${name} at the admin port`,
      limit: 15_000,
      kinds: lineKinds,
      read: (text: string) => askAdmin(bare('GET /api/state', `${name}: ${text}`)),
    })),
    ...['/api/explain', '/api/purge'].flatMap((target) => [
      {
        name: `a body to ${target}`,
        limit: 16_000,
        kinds: textKinds,
        read: (text: string) =>
          askAdmin(request(`POST ${target}`, 'Content-Type: application/json\r\n', text)),
      },
      {
        name: `a text to ${target}`,
        limit: 8_000,
        kinds: textKinds,
        read: (text: string) => {
          const content = JSON.stringify({ method: 'GET', url: text, text, entityTag: text });
          return askAdmin(request(`POST ${target}`, 'Content-Type: application/json\r\n', content));
        },
      },
    ]),
    ...[...answers, ...framedAnswers].map(([what, line, frame], i) => ({
      name: `${what} to ${line}`,
      limit: head,
      kinds: textKinds,
      read: (text: string) =>
        sendTo(request(line, plain, line === 'POST /token' ? refresh : ''), frame(text), i >= answers.length),
    })),
  ];
}

/** Many lines of one field; `NAME` stands for its name. */
const manyLines = ['', 'a', '"a"', ',', 'a,b', ' '].map((value) => ({
  name: `many lines of ${JSON.stringify(value)}`,
  make: (length: number) =>
    Array.from({ length: Math.floor(length / 64) }, () => `NAME: ${value}`).join('\r\n'),
}));
