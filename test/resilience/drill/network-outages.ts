import { execFile } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { eventually } from '../../harness/eventually.ts';
import { startFaultProxy } from '../../harness/fault-proxy.ts';
import { sleepAwake } from '../../harness/sleep-awake.ts';
import { ask } from '../faults/ask.ts';
import type { OutageGroup, Length, Stage } from './outage.ts';
import { frontOf, nothing, stageOf, startReplica } from './replicas.ts';
import { startOutageShop } from '../faults/shop.ts';

const addresses = ['127.0.0.1', '127.0.0.2'] as const;

type NameStage = Awaited<ReturnType<typeof withNameOfItsOwn>>;

/** One process with few descriptors. It finds the shop by a name in its own hosts file. */
async function withNameOfItsOwn() {
  const shop = await startOutageShop({ addresses });
  const folder = mkdtempSync(join(tmpdir(), 'shopward-outage-'));
  const hosts = join(folder, 'hosts');
  const pointTo = (address: string) => writeFileSync(hosts, `${address} shop.test\n`);
  pointTo(addresses[0]);
  const script = `mount --bind '${hosts}' /etc/hosts && ulimit -n 256 && exec "$@"`;
  const shopward = await startReplica(
    shop,
    { log: { level: 'info' }, upstream: { url: `http://shop.test:${shop.port}`, connectionLifetime: '2s' } },
    { launcher: ['unshare', '-m', 'sh', '-c', script, 'sh'] },
  );
  return { ...stageOf(shop, shopward, () => rmSync(folder, { recursive: true })), shopward, pointTo };
}

/** Opens more idle connections than the process has descriptors, from another address. */
async function useUpDescriptors({ shopward }: NameStage, length: Length): Promise<void> {
  const idle = Array.from({ length: 400 }, () =>
    connect({ port: shopward.port, host: '127.0.0.1', localAddress: '127.0.0.2' }).on('error', () => {}),
  );
  await sleep(length === 'full' ? 6_000 : 1_500);
  for (const socket of idle) socket.destroy();
}

/** Throws unless connections to the old address end: then fifty requests in a row reach the new one. */
async function moveName({ shop, pointTo }: NameStage): Promise<void> {
  const [before, afterwards] = addresses;
  pointTo(afterwards);
  const count = (address: string) => shop.arrivals.get(address) ?? 0;
  await eventually('end of the requests at the old address', async () => {
    const [old, enough] = [count(before), count(afterwards) + 50];
    await eventually('request at the new address', () => count(afterwards) >= enough || undefined);
    return count(before) === old || undefined;
  });
}

const nameOutages: OutageGroup<NameStage> = {
  stage: withNameOfItsOwn,
  outages: [
    {
      name: 'few descriptors (`ulimit -n 256`), an anonymous client opens 400 connections',
      disturb: useUpDescriptors,
      maySee: nothing,
      told: [/open files/],
      linesAtMost: 0,
    },
    {
      name: "the shop's name moves to another address (`upstream.connectionLifetime: 2s`)",
      disturb: moveName,
      maySee: nothing,
      told: [],
      linesAtMost: 0,
    },
  ],
};

const shopIdleMs = 1_000;
const posters = 64;

async function withSleepyShop(): Promise<Stage> {
  const shop = await startOutageShop({ idleMs: shopIdleMs });
  // Delays the close, so that a request can cross it on the way.
  const link = await startFaultProxy(shop.port);
  await link.set({ toClient: { delayMs: 10 } });
  const shopward = await startReplica({ port: link.port }, { log: { level: 'info' } });
  return stageOf(shop, shopward, () => link.close());
}

const sleepyShopOutages: OutageGroup = {
  stage: withSleepyShop,
  outages: [
    {
      name: 'the shop ends connections after 1 s without a word, POSTs at the worst rhythm',
      // Bursts of POSTs, each sent just as the shop ends the connections of the burst before.
      disturb: async ({ fronts }, length, tally) => {
        const [front] = fronts();
        const agent = new Agent({ keepAlive: true });
        for (let round = 0; round < (length === 'full' ? 30 : 3); round += 1) {
          const burst = Array.from({ length: posters }, async (_, i) => {
            // From 20 ms before that moment to 20 ms after.
            await sleepAwake(shopIdleMs - 20 + (40 * i) / posters);
            const order = { method: 'POST', path: '/orders', body: { order: i } };
            tally.note('write', (await ask(front?.port ?? 0, order, agent)).words);
          });
          await Promise.all(burst);
        }
        agent.destroy();
      },
      maySee: { ...nothing, write: ['201'] },
      told: [],
      linesAtMost: 0,
    },
  ],
};

/** Writes a key, and a certificate for `days`. Asynchronous, because all outages run in this process. */
async function writePair(folder: string, days: number): Promise<void> {
  const [cert, key] = [join(folder, 'cert.pem.new'), join(folder, 'key.pem.new')];
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const files = ['-days', `${days}`, '-keyout', key, '-out', cert];
  await promisify(execFile)('openssl', ['req', '-x509', ...ec, '-subj', '/CN=localhost', ...files]);
  renameSync(key, join(folder, 'key.pem'));
  renameSync(cert, join(folder, 'cert.pem'));
}

async function withCertificate() {
  const folder = mkdtempSync(join(tmpdir(), 'shopward-outage-'));
  await writePair(folder, 10);
  const shop = await startOutageShop();
  const shopward = await startReplica(shop, {
    log: { level: 'info' },
    listen: { tls: { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') } },
  });
  const closing = () => rmSync(folder, { recursive: true });
  return { ...stageOf(shop, shopward, closing, frontOf(shopward, true)), shopward, folder };
}

const certificateOutages: OutageGroup<Awaited<ReturnType<typeof withCertificate>>> = {
  stage: withCertificate,
  outages: [
    {
      name: 'a certificate that ends in 10 days, and is renewed',
      disturb: async ({ shopward, folder }) => {
        await sleep(500);
        await writePair(folder, 365);
        await eventually('/readyz without the certificate', async () => {
          const { reasons } = (await (await fetch(`${shopward.adminUrl}/readyz`)).json()) as {
            reasons: string[];
          };
          return reasons.some((reason) => reason.includes('certificate')) ? undefined : true;
        });
      },
      maySee: nothing,
      told: [/the certificate expires in (9|10) days/, /^secrets-reloaded: /],
      linesAtMost: 3,
    },
  ],
};

export const networkOutages: readonly OutageGroup[] = [nameOutages, sleepyShopOutages, certificateOutages];
