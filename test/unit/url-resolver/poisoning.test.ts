import { afterAll, beforeAll, expect, it } from 'vitest';
import type { UrlResolver } from '../../../src/url-resolver/filter.ts';
import { createResolver, entityOf, resolve, targetOf } from './resolver-request.ts';
import { type Shop, sendMapping, startShop } from './shop.ts';

let shop: Shop;
let resolver: UrlResolver;
const benign = new Set(['host', 'connection', 'accept', 'accept-encoding', 'accept-language']);

/** A shop whose answer changes with any field or parameter that is not in the key. */
beforeAll(async () => {
  shop = await startShop((request, response) => {
    const noise = Object.entries(request.headers).filter(([name]) => !benign.has(name));
    const query = request.url?.replace(/^.*?url=[^&]*/, '') ?? '';
    sendMapping(response, 'abstract-products', noise.length + query.length === 0 ? '134' : 'poisoned');
  });
  resolver = createResolver({ publicUrl: 'https://api.shop.example', upstream: { ask: shop.ask } });
});
afterAll(async () => {
  await resolver.close();
  await shop.close();
});

const names = `
  Accept Accept-Charset Accept-Datetime Accept-Encoding Access-Control-Request-Headers
  Access-Control-Request-Method Api-Version Authorization Base-Url Cache-Control Cdn-Loop Cf-Connecting-Ip
  Cf-Ipcountry Cf-Visitor Client-Ip Cluster-Client-Ip Content-Encoding Content-Language Content-Location
  Content-Type Cookie Cookie2 Currency Date Debug Destination Dnt Expect Fastly-Client-Ip Fastly-Ssl
  Forwarded Forwarded-Proto From Front-End-Https Host-Name If-Match If-Modified-Since If-Range
  If-Unmodified-Since Incap-Client-Ip Locale Location Max-Forwards Merchant-Reference Method Origin
  Path-Info Pragma Profile Proxy Proxy-Authorization Proxy-Host Purpose Range Real-Ip Redirect Referer
  Referrer Request-Uri Sec-Fetch-Mode Sec-Fetch-Site Service-Worker Site Soapaction Surrogate-Capability
  Surrogate-Control Te Test Ticket Timeout Title Tk Traceparent Tracestate Translate True-Client-Ip
  Upgrade-Insecure-Requests Uri User-Agent Version Via Want-Digest Warning X-Agent-Authorization
  X-Anonymous-Customer-Unique-Id X-Client-Ip X-Currency X-Debug X-Device-Id X-Forwarded-For X-Forwarded-Host
  X-Forwarded-Port X-Forwarded-Proto X-Forwarded-Scheme X-Forwarded-Server X-Host X-Http-Method-Override
  X-Language X-Locale X-Mfa-Code X-Original-Host X-Original-Url X-Price-Mode X-Real-Ip X-Request-Id
  X-Rewrite-Url X-Store X-Wap-Profile`
  .trim()
  .split(/\s+/);

it(`none of ${names.length} fields outside the key changes the answer for the next client`, async () => {
  const clean = { fields: ['Host', 'api.shop.example', 'Accept-Language', 'en'] };
  const same = (answer: { status: number; body: string; field(name: string): string | undefined }) => [
    answer.status,
    answer.field('ETag'),
    answer.body.replaceAll(/url=[^"]*/g, ''),
  ];
  const baseline = same(await resolve(resolver, targetOf('/baseline'), clean));
  for (const name of names) {
    const target = targetOf(`/${name}`);
    await resolve(resolver, target, { fields: [...clean.fields, name, 'evil.example'] });
    const answer = await resolve(resolver, target, clean);
    expect([name, ...same(answer)]).toEqual([name, ...baseline]);
    expect(answer.field('Cache-Status')).toMatch(/hit/);
  }
});

const noises =
  '&include=x &_method=DELETE &currency=XXX &cb=1 &fields[url-resolver]=entityType &utm_content=x ' +
  ';url=/evil &URL=/evil';
it.each(noises.split(' '))(
  '%s in the query does not change the answer for the next client',
  async (noise) => {
    const url = `/query${noise.replaceAll(/\W/g, '-')}`;
    const target = targetOf(url);
    await resolve(resolver, noise.startsWith('&') ? target + noise : `${targetOf('/x')}${noise}`);
    expect(entityOf((await resolve(resolver, target)).body)[1]).toBe('134');
  },
);

it('500 requests with other fields and parameters: no entry and no look-up', async () => {
  await resolve(resolver, targetOf('/one'));
  const { entries, lookups } = resolver.stats();
  for (let i = 0; i < 500; i += 1) {
    const fields = ['Accept-Language', `x${i}`, 'Cookie', `a=${i}`, 'User-Agent', `u${i}`];
    await resolve(resolver, `${targetOf('/one')}&cb=${i}`, { fields });
  }
  expect(resolver.stats()).toMatchObject({ entries, lookups });
});
