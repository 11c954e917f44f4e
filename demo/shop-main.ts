import { parseArgs } from 'node:util';
import { defaultCustomerReference, seedPassword } from './data/ids.ts';
import { startDemoShop } from './shop.ts';

const usage = `Usage: shop-main.ts [options]

A small shop to stand behind shopward. It requires no token and checks no If-Match.

  --port NUMBER               port of the shop, 0 takes a free one (default 9000)
  --host ADDRESS              address to listen on (default 127.0.0.1)
  --control-port NUMBER       port of the control address on loopback, 0 takes a free one (default 9001)
  --domain URL                {base_url} of links (default: the shop's own address)
  --latency MS                delay of every answer (default 0)
  --resolver-latency MS       further delay of url-resolver (default 150)
  --fail-rate SHARE           share of requests that fail, 0 to 1 (default 0)
  --enforce-tags              the shop sends entity tags of its own and enforces If-Match on PATCH of carts
  --help                      print this text
`;

const options = {
  port: { type: 'string', default: '9000' },
  host: { type: 'string', default: '127.0.0.1' },
  'control-port': { type: 'string', default: '9001' },
  domain: { type: 'string', default: '' },
  latency: { type: 'string', default: '0' },
  'resolver-latency': { type: 'string', default: '150' },
  'fail-rate': { type: 'string', default: '0' },
  'enforce-tags': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

async function main(): Promise<void> {
  const { values } = parseArgs({ options });
  if (values.help) {
    process.stdout.write(usage);
    return;
  }
  const shop = await startDemoShop({
    port: numberOf('port', values.port),
    host: values.host,
    controlPort: numberOf('control-port', values['control-port']),
    domain: values.domain,
    latencyMs: numberOf('latency', values.latency),
    resolverLatencyMs: numberOf('resolver-latency', values['resolver-latency']),
    failRate: numberOf('fail-rate', values['fail-rate']),
    enforceTags: values['enforce-tags'],
  });
  process.stdout.write(
    `demo shop    ${shop.url}\nkey set      ${shop.jwksUrl}\ncontrol      ${shop.controlUrl}\n` +
      `customer     ${defaultCustomerReference}: sonia@shop.example / ${seedPassword}\n`,
  );
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void shop.close());
}

function numberOf(name: string, text: string): number {
  const number = Number(text);
  if (text.trim() === '' || !Number.isFinite(number) || number < 0) {
    throw new TypeError(`--${name}: expected a number, got '${text}'`);
  }
  return number;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
});
