import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask } from '../faults/ask.ts';
import { eventually } from '../harness/eventually.ts';
import { startFaultProxy } from '../harness/fault-proxy.ts';
import type { Drill, Stage } from './drill.ts';
import { frontOf, nothing, startReplica } from './replicas.ts';
import { startDrillShop } from './shop.ts';
import type { Tally } from './tally.ts';

/** A name of the shop that only the process under test knows, in a hosts file that only it sees. */
async function movedName(): Promise<Stage> {
  const [before, afterwards] = ['127.0.0.1', '127.0.0.2'] as const;
  const shop = await startDrillShop({ addresses: [before, afterwards] });
  const folder = mkdtempSync(join(tmpdir(), 'shopward-drill-'));
  const hosts = join(folder, 'hosts');
  const pointTo = (address: string) => writeFileSync(hosts, `${address} shop.test\n`);
  pointTo(before);
  const shopward = await startReplica(
    shop,
    {
      log: { level: 'info' },
      upstream: { url: `http://shop.test:${shop.port}`, connectionLifetime: '2s' },
    },
    { launcher: ['unshare', '-m', 'sh', '-c', `mount --bind '${hosts}' /etc/hosts && exec "$@"`, 'sh'] },
  );
  const front = frontOf(shopward);
  return {
    shop,
    processes: [shopward],
    fronts: () => [front],
    disturb: async () => {
      pointTo(afterwards);
      const count = () => shop.arrivals.get(before) ?? 0;
      await sleep(3_000);
      const then = count();
      await sleep(1_000);
      const isThere = (shop.arrivals.get(afterwards) ?? 0) > 0;
      return [
        ...(isThere ? [] : ['nothing reached the new address']),
        ...(count() === then ? [] : [`${count() - then} requests at the old address after its time`]),
      ];
    },
    close: async () => {
      shop.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const shopIdleMs = 1_000;
const posters = 64;

/** Bursts of POSTs, each when the connections of the one before are about to be ended by the shop. */
async function worstRhythm(rounds: number): Promise<Stage> {
  const shop = await startDrillShop({ idleMs: shopIdleMs });
  // The way is long enough for a request to meet the end of its connection.
  const link = await startFaultProxy(shop.port);
  await link.set({ toClient: { delayMs: 10 } });
  const shopward = await startReplica({ port: link.port }, { log: { level: 'info' } });
  const front = frontOf(shopward);
  const agent = new Agent({ keepAlive: true });
  const disturb = async (tally: Tally) => {
    for (let round = 0; round < rounds; round += 1) {
      const burst = Array.from({ length: posters }, async (_, i) => {
        // From 20 ms before that moment to 20 ms after it.
        await sleep(shopIdleMs - 20 + (40 * i) / posters);
        const order = { method: 'POST', path: '/orders', body: { order: i } };
        tally.note('write', (await ask(front.port, order, agent)).words);
      });
      await Promise.all(burst);
    }
    agent.destroy();
    return undefined;
  };
  return {
    shop,
    processes: [shopward],
    fronts: () => [front],
    disturb,
    close: async () => {
      await link.close();
      shop.close();
    },
  };
}

/** A pair of a certificate that ends in so many days. */
function writePair(folder: string, days: number): void {
  const [cert, key] = [join(folder, 'cert.pem.new'), join(folder, 'key.pem.new')];
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  execFileSync(
    'openssl',
    ['req', '-x509', ...ec, '-subj', '/CN=localhost', '-days', `${days}`, '-keyout', key, '-out', cert],
    { stdio: 'ignore' },
  );
  execFileSync('mv', [key, join(folder, 'key.pem')]);
  execFileSync('mv', [cert, join(folder, 'cert.pem')]);
}

async function endingCertificate(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'shopward-drill-'));
  writePair(folder, 10);
  const shop = await startDrillShop();
  const shopward = await startReplica(shop, {
    log: { level: 'info' },
    listen: { tls: { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') } },
  });
  const front = frontOf(shopward, true);
  const disturb = async () => {
    await sleep(500);
    writePair(folder, 365);
    await eventually('/readyz without a word about it', async () => {
      const { reasons } = (await (await fetch(`${shopward.adminUrl}/readyz`)).json()) as {
        reasons: string[];
      };
      return reasons.some((reason) => reason.includes('certificate')) ? undefined : true;
    });
    return undefined;
  };
  return {
    shop,
    processes: [shopward],
    fronts: () => [front],
    disturb,
    close: async () => {
      shop.close();
      rmSync(folder, { recursive: true });
    },
  };
}

export const networkDrills: readonly Drill[] = [
  {
    name: "the shop's name moves to another address (`upstream.connectionLifetime: 2s`)",
    stage: movedName,
    maySee: nothing,
    told: [],
    linesAtMost: 0,
  },
  {
    name: 'the shop ends connections after 1 s without a word, POSTs at the worst rhythm',
    stage: (length) => worstRhythm(length === 'full' ? 30 : 3),
    maySee: { ...nothing, write: ['201'] },
    told: [],
    linesAtMost: 0,
  },
  {
    name: 'a certificate that ends in 10 days, and is renewed',
    stage: endingCertificate,
    maySee: nothing,
    told: [/the certificate expires in (9|10) days/, /^secrets-reloaded: /],
    linesAtMost: 3,
  },
];
