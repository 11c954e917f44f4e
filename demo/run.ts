/** npm run demo: the demo shop, shopward in front of it, and a short tour to paste into another terminal. */
import { createServer } from 'node:net';
import path from 'node:path';
import { readArguments } from '../scripts/arguments.ts';
import { runServe } from '../src/cli/serve.ts';
import { defaultCustomerReference, seedPassword } from './data/ids.ts';
import { startDemoShop } from './shop.ts';
import { tour } from './tour.ts';

readArguments({ name: 'npm run demo', about: 'The demo shop, shopward in front of it, and a short tour.' });

const port = await freePort(8080);
const adminPort = await freePort(8081);
const url = `http://127.0.0.1:${port}`;

const shop = await startDemoShop({ port: await freePort(9000), domain: url });
process.stdout.write(
  tour({
    url,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    shopUrl: shop.url,
    controlUrl: shop.controlUrl ?? '',
    email: 'sonia@shop.example',
    password: seedPassword,
    customer: defaultCustomerReference,
  }),
);
const code = await runServe(
  { config: path.join(import.meta.dirname, 'shopward.yaml') },
  {
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
    cwd: process.cwd(),
    env: {
      ...process.env,
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      PUBLIC_URL: url,
      UPSTREAM_URL: shop.url,
      JWKS_URL: shop.jwksUrl,
    },
  },
);
await shop.close();
process.exit(code);

/** The usual port when it is free, else any. */
function freePort(usual: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (fault: NodeJS.ErrnoException) => {
      if (usual !== 0 && fault.code === 'EADDRINUSE') freePort(0).then(resolve, reject);
      else reject(fault);
    });
    probe.listen(usual, '127.0.0.1', () => {
      const address = probe.address() as { port: number };
      probe.close(() => resolve(address.port));
    });
  });
}
