import { createServer, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { listen } from '../harness/listen.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';

/** An introspection endpoint that never answers for some tokens, as if a firewall dropped them. */
const delayed: ServerResponse[] = [];
const issuer = createServer(async (request, response) => {
  if ((await text(request)).includes('tarpit')) return void delayed.push(response);
  const active = { active: true, token_type: 'Bearer', sub: 'DE--21', scope: 'customer' };
  response.setHeader('Content-Type', 'application/json').end(JSON.stringify(active));
});
const shop = createServer((_, response) => response.end('{}'));
const closings: (() => Promise<void>)[] = [];
const start = async (server: typeof shop) => {
  const { url, close } = await listen(server);
  closings.push(close);
  return url;
};

let shopward: Shopward;
beforeAll(async () => {
  const introspection = {
    ...{ url: `${await start(issuer)}/introspect`, clientId: 'a', clientSecret: 'b' },
    ...{ timeout: '30s', connections: 2 },
  };
  shopward = await startShopward({
    upstream: await start(shop),
    config: { auth: { keys: undefined, introspection }, trustedProxies: ['127.0.0.1'] },
    rows: ['GET /secret'],
  });
});
afterAll(async () => {
  await shopward.kill();
  for (const close of closings) await close();
});

async function ask(token: string, address: string): Promise<number> {
  const lines = ['GET /secret HTTP/1.1', 'Host: a', 'Connection: close', `X-Forwarded-For: ${address}`];
  const answer = await exchangeRaw(
    shopward.port,
    [...lines, `Authorization: Bearer ${token}`, '', ''].join('\r\n'),
  );
  return answer.status;
}

it('hanging questions for tokens of one network do not delay those of another', async () => {
  let answered = 0;
  const count = () => {
    answered += 1;
  };
  const hanging = Array.from({ length: 12 }, (_, i) =>
    ask(`tarpit-${i}`, `2001:db8::${i + 1}`).then(count, () => {}),
  );
  await eventually('a question that hangs', () => delayed.length === 1 || undefined);
  for (let i = 0; i < 5; i++) expect(await ask(`good-${i}`, '2001:db8:0:1::1')).toBe(200);
  // No hanging question had timed out, and only one had reached the endpoint.
  expect([answered, delayed.length]).toEqual([0, 1]);
  await shopward.kill();
  await Promise.all(hanging);
});
