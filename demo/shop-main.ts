import { readArguments } from '../scripts/arguments.ts';
import { defaultCustomerReference, seedPassword } from './data/ids.ts';
import { startDemoShop } from './shop.ts';

type Numbers = Record<'port' | 'controlPort' | 'latency' | 'resolverLatency' | 'failRate', number>;

const {
  latency: latencyMs,
  resolverLatency: resolverLatencyMs,
  enforceTags = false,
  words: _,
  ...options
} = readArguments<Numbers & { readonly host: string; readonly domain: string; readonly enforceTags?: true }>({
  name: 'demo/shop-main.ts',
  about: 'A small shop to stand behind shopward. It requires no token and checks no If-Match.',
  options: [
    ['--port <number>', 'port of the shop, 0 takes a free one', 9000],
    ['--host <address>', 'address to listen on', '127.0.0.1'],
    ['--control-port <number>', 'port of the control address on loopback, 0 takes a free one', 9001],
    ['--domain <url>', "{base_url} of links; the shop's own address without it", ''],
    ['--latency <ms>', 'delay of every answer', 0],
    ['--resolver-latency <ms>', 'further delay of url-resolver', 150],
    ['--fail-rate <share>', 'share of requests that fail, 0 to 1', 0],
    ['--enforce-tags', 'the shop sends entity tags of its own and enforces If-Match on PATCH of carts'],
  ],
});

try {
  const shop = await startDemoShop({ ...options, latencyMs, resolverLatencyMs, enforceTags });
  process.stdout.write(
    `demo shop    ${shop.url}\nkey set      ${shop.jwksUrl}\ncontrol      ${shop.controlUrl}\n` +
      `customer     ${defaultCustomerReference}: sonia@shop.example / ${seedPassword}\n`,
  );
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void shop.close());
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
