/**
 * npm run bench: CPU time of the proxy process per request, all contestants in turn in one run on this machine.
 * Absolute times mean little on a busy machine; the ratios, computed from medians of interleaved rounds, do.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { SignJWT } from 'jose';
import * as contestants from './contestants.ts';
import type { LoadRequest } from './load.ts';
import { measure, type Row } from './measure.ts';
import { stopAll } from './programs.ts';
import { toMarkdown } from './report.ts';

const help = `npm run bench -- [options]

  --rounds N        counted rounds of every contestant (default 5)
  --seconds N       length of one run (default 3)
  --connections N   kept-alive connections (default 64)
  --case WORD       only cases whose name holds WORD
  --json FILE       write the figures as JSON too
  --help            this text`;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '64' },
    case: { type: 'string', default: '' },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (options.help) {
  console.log(help);
  process.exit(0);
}

const get = (path: string, fields: Record<string, string> = {}): LoadRequest => ({
  method: 'GET',
  path,
  fields: { Accept: 'application/vnd.api+json', ...fields },
  status: 200,
});

function token(): Promise<string> {
  return new SignJWT({ scopes: ['customer'] })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setSubject('DE--21')
    .setJti(crypto.randomUUID())
    .setIssuedAt()
    .setExpirationTime('8h')
    .sign(contestants.keys.privateKey);
}

const bearers = (count: number) =>
  Promise.all(Array.from({ length: count }, async () => `Bearer ${await token()}`));

try {
  const upstream = await contestants.startUpstream();
  const shopward = await contestants.startShopward('shopward', upstream.url);
  const onHttpProxy3 = await contestants.startShopward(
    'shopward on http-proxy-3',
    upstream.url,
    '',
    ['GET /orders/{id}'],
    'http-proxy-3',
  );
  const haproxy = await contestants.startHaproxy(upstream.url);
  const everybody = [
    shopward,
    onHttpProxy3,
    await contestants.startBareHttpProxy3(upstream.url),
    await contestants.startNodeRelay(upstream.url),
    await contestants.startNginxProxy(upstream.url),
    haproxy,
  ].filter((one) => one !== undefined);

  const cases = [
    { name: 'pass-through GET 0.4 KB', request: get('/small'), who: everybody },
    { name: 'pass-through GET 100 KB', request: get('/large'), who: everybody },
    {
      name: 'POST 2 KB',
      request: {
        ...get('/small', { 'Content-Type': 'application/json' }),
        method: 'POST',
        body: JSON.stringify({ filler: 'x'.repeat(2000) }),
      },
      who: everybody,
    },
    {
      name: 'protected GET, 1 token',
      request: { ...get('/orders/1'), authorizations: await bearers(1) },
      // Those that cannot verify tokens are shown for scale.
      who: everybody,
    },
    {
      name: 'protected GET, 1,000 tokens',
      request: { ...get('/orders/1'), authorizations: await bearers(1000) },
      who: [shopward, onHttpProxy3, haproxy].filter((one) => one !== undefined),
    },
  ];

  const figures: Record<string, Row[]> = {};
  for (const { name, request, who } of cases.filter((one) => one.name.includes(options.case))) {
    const entries = who.map((contestant) => ({ contestant, request }));
    const rows = await measure(
      entries,
      Number(options.rounds),
      Number(options.seconds),
      Number(options.connections),
    );
    figures[name] = rows;
    console.log(toMarkdown(name, rows, shopward.name));
  }
  if (options.json) writeFileSync(options.json, `${JSON.stringify(figures, null, 2)}\n`);
} finally {
  await stopAll();
}
