import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openRawConnection } from '../harness/raw-client.ts';
import {
  answer,
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../harness/recording-upstream.ts';
import { callShop, outcomeOf, type ShopCall } from '../harness/shop-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

let upstream: RecordingUpstream;
let shopward: RunningShopward;
let script: (received: RecordedRequest) => ReturnType<typeof answer> | undefined;
let heads: string[] = [];

const json = 'Content-Type: application/vnd.api+json\r\nETag: "shop"\r\n';
const cart = (name: string, id = '1') => answer(JSON.stringify({ data: { type: 'carts', id, name } }), json);
/** The same answer for every cart; without a body for HEAD. */
const anyCart = ({ head }: RecordedRequest) => {
  const whole = cart('a');
  return head.startsWith('HEAD ') ? whole.slice(0, whole.indexOf('\r\n\r\n') + 4) : whole;
};
const aTag = /^"[0-9a-f]{32}\.[0-9a-f]{1,24}"$/;

beforeAll(async () => {
  upstream = await startRecordingUpstream((received) => {
    heads.push(received.head);
    return script(received);
  });
  shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: ['GET /carts', 'GET /carts/{cart_id}', 'PATCH /carts/{cart_id}'],
    config: {
      limits: { trackedResponse: '64KiB' },
      entityTags: {
        resources: [
          { collection: '/carts', member: '/carts/{cart_id}' },
          { collection: '/loose', member: '/loose/{id}', ifMatch: 'lenient' },
        ],
      },
    },
  });
});
afterAll(async () => {
  await shopward?.stop();
  await upstream?.close();
});

const call = (line: string, options: ShopCall = {}) => {
  heads = [];
  return callShop(shopward.port, line, { token: shopward.issueToken(), ...options });
};
const tagOf = async (path: string) => (await call(`GET ${path}`)).field('etag') ?? '';
const patch = (path: string, ifMatch: string) => call(`PATCH ${path}`, { ifMatch, body: {} });

describe('conditions of a read (RFC 9110 section 13.2.2)', () => {
  const long = answer(`"${'x'.repeat(70_000)}"`, json);
  it.each<[string, string[], string]>([
    ['If-None-Match beside a range', ['If-None-Match: TAG', 'Range: bytes=0-1'], '304'],
    ['If-None-Match with another tag', ['If-None-Match: "x"', 'Range: bytes=0-1'], '200'],
    ['If-Match with the tag', ['If-Match: TAG', 'Range: bytes=0-1'], '200'],
    ['If-Match with another tag', ['If-Match: "x"'], '412 006'],
    ['If-Match before If-None-Match', ['If-Match: "x"', 'If-None-Match: TAG'], '412 006'],
    ['both with the tag', ['If-Match: TAG', 'If-None-Match: TAG'], '304'],
    ['If-Match with the state in a list', ['If-Match: "x", STATE'], '200'],
    ['If-Match with a weak tag', ['If-Match: W/TAG'], '412 006'],
    ['If-Match that is no tag', ['If-Match: x'], '412 006'],
    ['If-Match: * and a date', ['If-Match: *', 'If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT'], '200'],
    ['If-Match: * and the tag', ['If-Match: *', 'If-None-Match: TAG'], '304'],
  ])('%s', async (_, lines, expected) => {
    script = anyCart;
    const tag = await tagOf('/carts/1');
    const fields = lines.map((line) => line.replace('TAG', tag).replace('STATE', `${tag.slice(0, 33)}"`));
    const response = await call('GET /carts/1', { fields });
    expect(response.status === 304 ? '304' : outcomeOf(response)).toBe(expected);
    expect(heads[0]).not.toMatch(/^(?:if-match|if-none-match|range):/im);
    // A HEAD has no body, so the proxy cannot compare the state.
    const head = await call('HEAD /carts/1', { fields });
    expect(head.status).toBe(expected === '304' ? 200 : Number(expected.slice(0, 3)));
    const without = await call('GET /carts/1', { fields: ['Range: bytes=0-1'] });
    expect([without.status, heads[0]]).toEqual([200, expect.stringMatching(/^range: bytes=0-1/im)]);
    if (!lines.some((line) => line.startsWith('If-Match'))) return;
    script = () => long;
    const changed = lines.includes('If-Match: *') ? '200' : '412 006';
    expect(outcomeOf(await call('GET /carts/1', { fields }))).toBe(changed);
  });

  it('a tracked answer has Cache-Control: no-cache', async () => {
    script = anyCart;
    const { field } = await call('GET /carts/1');
    expect(field('cache-control')).toBe('private, no-cache');
  });
});

describe('answers', () => {
  it('HEAD has the tag that a GET recorded, instead of the shop’s own', async () => {
    script = anyCart;
    const tag = await tagOf('/carts/1');
    expect(tag).toMatch(aTag);
    const head = await call('HEAD /carts/1');
    expect([head.status, head.fields('etag'), head.body.length]).toEqual([200, [tag], 0]);
    expect(heads[0]).toMatch(/^HEAD /);
    const known = await call('HEAD /carts/1', { ifNoneMatch: tag });
    // A HEAD answer has no body to compare with the tag, so there is no 304.
    expect([known.status, known.field('etag')]).toEqual([200, tag]);
    expect(heads[0]).not.toMatch(/if-none-match/i);
  });

  const shopTag = 'ETag: "shop"\r\n';
  const tagged: readonly (readonly [string, string, string])[] = [
    ['is no JSON', '<p>cart</p>', `Content-Type: text/html\r\n${shopTag}`],
    ['is no JSON, although its type says so', '<p>cart</p>', json],
    ['is JSON with the type of text', '{"a":1}', `Content-Type: text/plain; charset=utf-8\r\n${shopTag}`],
    ['has no type', '{}', shopTag],
    ['is a scalar', '"{}"', json],
    ['begins with a byte order mark', '\xef\xbb\xbf{}', json],
    ['has only spaces', ' \n\t ', json],
    ['has no content', '', json],
    ['has an unknown content coding', '{}', `${json}Content-Encoding: rot13\r\n`],
    ['has a broken content coding', '{}', `${json}Content-Encoding: gzip\r\n`],
  ];
  it.each(tagged)(
    'an answer that %s is complete, and its tag changes with it and is good for a write',
    async (_, body, fields) => {
      const read = async (text: string) => {
        script = () => answer(text, fields);
        const response = await call('GET /carts/2');
        expect([response.complete, response.body.toString('latin1')]).toEqual([true, text]);
        expect(response.fields('etag')).toEqual([expect.stringMatching(aTag)]);
        return response.field('etag') ?? '';
      };
      const other = await read(`${body}other`);
      const tag = await read(body);
      expect([tag === other, await read(body)]).toEqual([false, tag]);
      expect((await patch('/carts/2', tag)).status).toBe(200);
    },
  );

  const untagged: readonly (readonly [string, string, string])[] = [
    ['is an error', answer('{}', json, '404 Not Found'), '{}'],
    ['is partial', answer('{}', `${json}Content-Range: bytes 0-1/9\r\n`, '206 Partial Content'), '{}'],
  ];
  it.each(untagged)('an answer that %s is complete, with the tag of the shop', async (_, bytes, body) => {
    script = () => bytes;
    const response = await call('GET /carts/2');
    expect(response.body.toString()).toBe(body);
    expect([response.complete, response.fields('etag')]).toEqual([true, ['"shop"']]);
    // Shopward does not know the shop's tag.
    expect(outcomeOf(await patch('/carts/2', '"shop"'))).toBe('412 006');
  });

  it('an answer larger than trackedResponse has a new tag for each read, and the last one is accepted by a write', async () => {
    const body = `"${'x'.repeat(70_000)}"`;
    script = () => answer(body, json);
    const read = async () => {
      const response = await call('GET /carts/4');
      expect([response.complete, response.body.toString()]).toEqual([true, body]);
      expect(response.fields('etag')).toEqual([expect.stringMatching(aTag)]);
      return response.field('etag') ?? '';
    };
    const [first, second] = [await read(), await read()];
    expect(outcomeOf(await patch('/carts/4', first))).toBe('412 006');
    expect((await patch('/carts/4', second)).status).toBe(200);
    expect(outcomeOf(await patch('/carts/4', second))).toBe('412 006');
    // The first read may return a stored tag, such as that of a write; the second returns a new one.
    await read();
    expect((await patch('/carts/4', await read())).status).toBe(200);
  });

  it('an endless answer is streamed with a tag that is not current yet', async () => {
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
    script = ({ connection }) => {
      connection.socket.write(`HTTP/1.1 200 OK\r\n${json}Transfer-Encoding: chunked\r\n\r\n${chunk}${chunk}`);
      return undefined;
    };
    const client = await openRawConnection(shopward.port);
    await client.write(
      `GET /carts/3 HTTP/1.1\r\nHost: shop.example\r\nAuthorization: Bearer ${shopward.issueToken()}\r\n\r\n`,
    );
    await expect.poll(() => client.pending().length, { timeout: 20_000 }).toBeGreaterThan(131_072);
    const [, tag = ''] = /\r\nETag: ([^\r]*)\r\n/.exec(client.pending().toString('latin1')) ?? [];
    expect(tag).toMatch(aTag);
    expect(outcomeOf(await patch('/carts/3', tag))).toBe('412 006');
    client.close();
  });

  it('an answer that the upstream cuts ends incomplete or as 502, and the next read gets a tag', async () => {
    script = ({ connection }) => {
      connection.socket.end(`HTTP/1.1 200 OK\r\n${json}Content-Length: 100\r\n\r\n{"data":`);
      return undefined;
    };
    const seen = await call('GET /carts/4').then(
      (response) => [response.status, response.complete, response.field('etag')],
      () => 'closed',
    );
    expect([[502, true, undefined], [200, false, undefined], 'closed']).toContainEqual(seen);
    script = anyCart;
    const tag = await tagOf('/carts/4');
    expect(tag).toMatch(aTag);
    expect((await patch('/carts/4', tag)).status).toBe(200);
  });
});

describe('ids', () => {
  /** Each is another cart. Some contain characters that have a meaning in keys or slots of Redis. */
  const ids = [
    ...'7 {7} %7B7%7D 7:tag :7 7%20x 7%25 7%3A *'.split(' '),
    "'7'",
    '7%22',
    '7%C3%BC',
    'x'.repeat(4096),
    `${'x'.repeat(4095)}y`,
  ];
  // `%7B` and `{` may be one cart.
  it.each(ids.filter((id) => !/^%7B/.test(id)))(
    'the tag of cart %.20s is refused for every other cart',
    async (id) => {
      script = anyCart;
      const tag = await tagOf(`/carts/${id}`);
      expect(tag).toMatch(aTag);
      for (const other of ids.filter((each) => decodeURIComponent(each) !== decodeURIComponent(id))) {
        expect(outcomeOf(await patch(`/carts/${other}`, tag)), other).toBe('412 006');
      }
      expect((await patch(`/carts/${id}`, tag)).status).toBe(200);
    },
  );

  it.each(['/carts/8/', '/carts//8', '/CARTS/8', '/carts/8;v=1', '/index.php/carts/8', '/carts/x/carts/8'])(
    'PATCH %s without a tag is refused',
    async (path) => {
      script = anyCart;
      const response = await call(`PATCH ${path}`, { body: {} });
      expect(['400 lenient-spelling', '428 005']).toContain(outcomeOf(response));
      expect(heads).toEqual([]);
    },
  );

  it.each(['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
    'a form POST (%s) without a tag is refused, because the shop may read any method in it',
    async (type) => {
      script = anyCart;
      const fields = [`Content-Type: ${type}`];
      expect(outcomeOf(await call('POST /carts/8', { fields, body: '_method=DELETE' }))).toBe('428 005');
      expect(heads).toEqual([]);
    },
  );
});

describe('ifMatch: lenient', () => {
  it.each(['W/TAG', 'BARE', '"BARE-gzip"', '"BARE--gzip"', 'W/"BARE-br"'])('accepts %s', async (value) => {
    script = anyCart;
    const tag = await tagOf('/loose/1');
    const spelt = value.replace('TAG', tag).replace('BARE', tag.slice(1, -1));
    expect((await patch('/loose/1', spelt)).status).toBe(200);
    expect(outcomeOf(await patch('/loose/1', spelt))).toBe('412 006');
  });
  it.each(['*', '', '"x"', 'x'])('412 for %s', async (value) => {
    expect(outcomeOf(await patch('/loose/1', value))).toBe('412 006');
  });
});

it('the log has no fault and no crash', () => {
  expect(shopward.log().filter(({ event }) => event === 'crash' || event === 'fault')).toEqual([]);
});
