/** npm run demo: the demo shop, shopward in front of it, and commands to paste into another terminal. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { readArguments } from '../scripts/arguments.ts';

readArguments({
  name: 'npm run demo',
  about: 'Starts the demo shop with shopward in front of it, and prints a short tour.',
});

// Imported after the arguments are read, because `--help` does not need it.
const { runServe } = await import('../src/cli/serve.ts');
const { startDemoShop } = await import('./shop.ts');
const { tour } = await import('./tour.ts');

const [port, adminPort] = [await freePort(8080), await freePort(8081)];
const url = `http://127.0.0.1:${port}`;
const shop = await startDemoShop({ port: await freePort(9000), domain: url });
const { url: shopUrl, jwksUrl } = shop;
process.stdout.write(tour({ url, adminUrl: `http://127.0.0.1:${adminPort}`, shopUrl }));
const ports = { PORT: String(port), ADMIN_PORT: String(adminPort) };
const code = await runServe(
  { config: path.join(import.meta.dirname, 'shopward.yaml') },
  {
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
    cwd: process.cwd(),
    env: { ...process.env, ...ports, PUBLIC_URL: url, UPSTREAM_URL: shopUrl, JWKS_URL: jwksUrl },
  },
);
await shop.close();
process.exit(code);

/** The usual port if it is free, else any free port. */
async function freePort(usual: number): Promise<number> {
  const probe = createServer();
  try {
    await once(probe.listen(usual, '127.0.0.1'), 'listening');
  } catch (error) {
    if (usual === 0) throw error;
    return freePort(0);
  }
  const { port } = probe.address() as AddressInfo;
  await once(probe.close(), 'close');
  return port;
}
