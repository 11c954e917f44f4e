import { gzipSync } from 'node:zlib';

/** A request and the answer of the shop, within the limits and among the most expensive. */
export interface DearExchange {
  readonly name: string;
  readonly octets: Buffer;
  readonly answer: Buffer;
}

const headOctets = 62_000;
const shortAnswer = answerOf('200 OK', Buffer.from('{"data":{"type":"carts","id":"1"}}'));

/** `authorization`: a whole field line with a good token. */
export function costliestExchanges(authorization: string): readonly DearExchange[] {
  const request = (line: string, more = '', body: string | Buffer = '', host = 'Host: shop.example\r\n') => {
    const length =
      body.length === 0 && !/^(POST|PATCH|PUT)/.test(line)
        ? ''
        : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
    return Buffer.concat([Buffer.from(`${line} HTTP/1.1\r\n${host}${more}${length}\r\n`), Buffer.from(body)]);
  };
  const fill = (unit: string, octets = headOctets) =>
    unit.repeat(Math.floor(octets / Buffer.byteLength(unit)));
  const asking = (name: string, octets: Buffer): DearExchange => ({ name, octets, answer: shortAnswer });
  const withToken = (line: string, more = '', body: string | Buffer = '') =>
    request(line, authorization + more, body);
  const get = withToken('GET /carts/1');
  const answering = (name: string, answer: Buffer, octets = get): DearExchange => ({ name, octets, answer });
  const form = 'Content-Type: application/x-www-form-urlencoded\r\n';
  const json = 'Content-Type: application/json\r\n';
  const lists = jsonLists(1_000_000);

  return [
    asking('a small GET', get),
    asking(
      'PATCH, If-Match of 60 KB of spaces',
      withToken('PATCH /carts/1', `If-Match: "a"${fill(' ', 58_000)}x\r\n`),
    ),
    asking(
      'POST below a cart without a token, the same',
      request('POST /carts/1/x', `If-Match: "a"${fill(' ')}x\r\n`),
    ),
    asking(
      'GET, If-None-Match of 15,000 tags',
      withToken('GET /carts/1', `If-None-Match: ${fill('"a",', 58_000)}"a"\r\n`),
    ),
    asking(
      'PATCH, 20,000 bare tags in If-Match',
      withToken('PATCH /carts/1', `If-Match: ${fill('a, ', 58_000)}a\r\n`),
    ),
    asking('GET /url-resolver?%ff&...', request(`GET /url-resolver?${fill('%ff&')}`)),
    asking('GET /url-resolver?%&...', request(`GET /url-resolver?${fill('%&')}`)),
    asking('GET /url-resolver?url=%ff&...', request(`GET /url-resolver?${fill('url=%ff&')}`)),
    asking('POST with 30,000 parameters', request(`POST /stores?${fill('a&')}`, json, '{}')),
    asking('POST /token, form of %ff&', request('POST /token', form, fill('%ff&', 65_000))),
    asking('POST /token, form of a&', request('POST /token', form, fill('a&', 65_000))),
    asking('POST /token, JSON of names', request('POST /token', json, jsonNames(65_000))),
    asking('POST /token, nested JSON', request('POST /token', json, '['.repeat(32_000) + ']'.repeat(32_000))),
    asking(
      'POST /token, nested JSON in attributes',
      request(
        'POST /token',
        json,
        `{"data":{"attributes":{"refreshToken":${'['.repeat(32_000)}${']'.repeat(32_000)}}}}`,
      ),
    ),
    asking(
      'POST /token, body and 62 KB of query',
      request(`POST /token?${fill('%ff&')}`, form, fill('a=b&', 65_000)),
    ),
    asking('990 lines of Connection', request('GET /stores', fill('Connection: a\r\n', 14_850))),
    asking(
      '990 lines of one field',
      request('GET /stores', fill('X-Forwarded-For: 1.2.3.4, 5.6.7.8, 9.10.11.12\r\n', 45_000)),
    ),
    asking('a path of %CC%80 in 8 KB', request(`GET /carts/${fill('%CC%96%CC%80', 8_100)}`)),
    asking('a path of 63 empty segments', request(`GET ${'/'.repeat(2)}${'a//'.repeat(30)}carts/1`)),
    asking('a path of dots in 8 KB', withToken(`PATCH /carts/${fill('.', 8_000)}x`, 'If-Match: "a"\r\n')),
    asking('a path of zeros in 8 KB', withToken(`PATCH /carts/${fill('0', 8_000)}x`, 'If-Match: "a"\r\n')),
    asking(
      'a token of 16 KB',
      request(
        'GET /carts/1',
        `Authorization: Bearer ${Buffer.from(`{"alg":"RS256","a":${'['.repeat(5000)}${']'.repeat(5000)}}`).toString('base64url')}.e30.AAAA\r\n`,
      ),
    ),
    asking('200 refusals in one packet', Buffer.from('GET /carts/1 HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(200))),
    asking(
      '1,700 refusals in one packet',
      Buffer.from('GET /carts HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1700)),
    ),
    answering('1 MB of lists in lists', answerOf('200 OK', Buffer.from(lists))),
    answering(
      'a tracked GET of 1 MB of objects',
      answerOf('200 OK', Buffer.from(`{"data":[${fill('{},', 1_000_000)}{}]}`)),
    ),
    answering(
      '8 MB of zeros in a few KB',
      answerOf('200 OK', gzipSync(`{"data":[${fill('0,', 8_000_000)}0]}`), 'Content-Encoding: gzip\r\n'),
    ),
    answering(
      'a list of 8 MB in a few KB',
      answerOf(
        '200 OK',
        gzipSync(`{"data":[{"id":"1","a":[${fill('{},', 8_000_000)}{}]}]}`),
        'Content-Encoding: gzip\r\n',
      ),
      withToken('GET /carts'),
    ),
    answering(
      '8 MB of lists in lists in a few KB',
      answerOf('200 OK', gzipSync(jsonLists(8_000_000)), 'Content-Encoding: gzip\r\n'),
      withToken('GET /carts'),
    ),
    answering(
      '8 MB of one string',
      answerOf(
        '200 OK',
        gzipSync(JSON.stringify({ data: [{ id: fill('a', 8_000_000) }] })),
        'Content-Encoding: gzip\r\n',
      ),
      withToken('GET /carts'),
    ),
    answering(
      'a created member with an id of 900 KB of dots',
      answerOf('201 Created', Buffer.from(JSON.stringify({ data: { id: `${fill('.', 900_000)}x` } }))),
      withToken('POST /carts', json, '{}'),
    ),
    answering(
      'a created member with an id of combining marks',
      answerOf(
        '201 Created',
        Buffer.from(JSON.stringify({ data: { id: `a${fill('\u0316\u0300', 16_000)}` } })),
      ),
      withToken('POST /carts', json, '{}'),
    ),
    answering(
      'a head of 60 KB',
      answerOf('200 OK', Buffer.from('{}'), `${fill('X-A: b\r\n', 7_000)}Vary: ${fill(' ,', 50_000)}x\r\n`),
    ),
    answering(
      'tokens beside 60 KB of JSON',
      answerOf('200 OK', Buffer.from(`{"refresh_token":"abcdefghijklmnop","a":${jsonLists(60_000)}}`)),
      request('POST /token', form, 'grant_type=password&username=a&password=b'),
    ),
    answering(
      'tokens beside 900 KB of JSON',
      answerOf('200 OK', Buffer.from(`{"refresh_token":"abcdefghijklmnop","a":${jsonLists(900_000)}}`)),
      request('POST /token', form, 'grant_type=password&username=a&password=b'),
    ),
    answering(
      'an answer to the resolver of 64 KB',
      answerOf('200 OK', Buffer.from(jsonLists(65_000))),
      request('GET /url-resolver?url=/en/x'),
    ),
  ];
}

function answerOf(status: string, body: Buffer, more = ''): Buffer {
  const head = `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\n${more}Content-Length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

function jsonLists(octets: number): string {
  return '['.repeat(octets / 2) + ']'.repeat(octets / 2);
}

function jsonNames(octets: number): string {
  const names = Array.from({ length: octets / 9 }, (_, i) => `"${i.toString(36)}":1`);
  return `{${names.join(',')}}`;
}
