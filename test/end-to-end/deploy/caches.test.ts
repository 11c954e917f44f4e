import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { caches, type Front } from './front.ts';

/** The last four let every shared cache store the answer to a request with a token (RFC 9111 section 3.5). */
const cacheControls = [
  ...['', 'max-age=60', 'private', 'no-cache'],
  ...['public, max-age=60', 'public, no-cache', 's-maxage=60', 'max-age=60, must-revalidate'],
];
/** Fields that some caches obey instead of `Cache-Control`. */
const targeted = 'X-Accel-Expires: 60\r\nSurrogate-Control: max-age=60\r\n';

let shop: RecordingUpstream;
let shopward: RunningShopward;
let front: Front;

beforeAll(async () => {
  shop = await startRecordingUpstream(({ head }) => {
    const [, index = '0'] = /\?(\d)/.exec(head) ?? [];
    const control = cacheControls[Number(index)] ?? '';
    const fields = `${targeted}Vary: Accept-Language\r\n${control && `Cache-Control: ${control}\r\n`}`;
    return answer(head.startsWith('GET /orders') ? 'orders of Anna' : 'for everybody', fields);
  });
  shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${shop.port}`,
    rows: ['GET /orders'],
    config: { cors: { origins: ['https://shop.example'] } },
  });
});
afterAll(async () => {
  await shopward?.stop();
  await shop?.close();
});

const found = Object.entries(caches).flatMap(([name, start]) => (start === undefined ? [] : { name, start }));

describe.each(found)('$name in front', ({ start }) => {
  beforeAll(async () => {
    front = await start(shopward);
  });
  afterAll(() => front?.close());

  const ask = (target: string, fields: readonly string[] = []) =>
    exchangeRaw(front.port, [`GET ${target} HTTP/1.1`, 'Host: shop.example', ...fields, '', ''].join('\r\n'));
  const token = () => `Authorization: Bearer ${shopward.issueToken()}`;

  it.each([...cacheControls.entries()])(
    'an answer to a request with a token is not served without one: %i %j',
    async (index) => {
      const target = `/orders?${index}&owner-first`;
      const own = await ask(target, [token()]);
      expect([own.status, own.body.toString()]).toEqual([200, 'orders of Anna']);
      const other = await ask(target);
      expect([other.status, other.body.toString().includes('Anna')]).toEqual([401, false]);
    },
  );

  it.each([...cacheControls.entries()])(
    'a stored refusal is not served to a request with a token: %i %j',
    async (index) => {
      const target = `/orders?${index}&other-first`;
      expect((await ask(target)).status).toBe(401);
      const own = await ask(target, [token()]);
      expect([own.status, own.body.toString()]).toEqual([200, 'orders of Anna']);
    },
  );

  it('an answer of an open path is cached and has one Vary field', async () => {
    const first = await ask('/stores?4');
    const second = await ask('/stores?4');
    expect([first.field('x-cache'), second.field('x-cache')]).toEqual(['MISS', 'HIT']);
    expect(second.fields('vary')).toEqual(['Accept-Language, Origin']);
  });
});
