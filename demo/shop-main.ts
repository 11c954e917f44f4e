import { readArguments } from '../scripts/arguments.ts';
import { defaultCustomerReference, seedPassword } from './data/ids.ts';
import { startDemoShop } from './shop.ts';

const { host, port } = readArguments<{ readonly host: string; readonly port: number }>({
  name: 'demo/shop-main.ts',
  about: 'Starts a small shop to put behind shopward. It requires no token and checks no If-Match.',
  options: [
    ['--port <number>', 'port of the shop, 0 takes a free one', 9000],
    ['--host <address>', 'address to listen on', '127.0.0.1'],
  ],
});

try {
  const shop = await startDemoShop({ host, port });
  process.stdout.write(
    `demo shop    ${shop.url}\nkey set      ${shop.jwksUrl}\n` +
      `customer     ${defaultCustomerReference}: sonia@shop.example / ${seedPassword}\n`,
  );
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void shop.close());
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
