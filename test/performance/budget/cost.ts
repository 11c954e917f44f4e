import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { createKeptClient, type KeptClient } from '../../harness/kept-client.ts';
import { type Shopward, type ShopwardOptions, startShopward } from '../../harness/shopward.ts';

/** The cost of one request, independent of the machine: heap bytes, and asynchronous resources by their type in Node. */
export interface Cost {
  readonly bytes: number;
  readonly promises: number;
  readonly timers: number;
  readonly immediates: number;
  readonly ticks: number;
}

const warmUpRequests = 600;
const requests = 400;
/** A round may contain work of a timer or of a first use, so the least of several rounds counts. */
const rounds = 5;
const probe = pathToFileURL(path.join(import.meta.dirname, 'probe.ts')).href;

/** A request to repeat, and the expected status of every answer. */
export interface Repeated {
  readonly makeRequest: (shopward: Shopward, tag: string | undefined) => string;
  readonly expected: number;
  /** A round with at most this many bytes ends the measurement. Default 0. */
  readonly enoughBytes?: number | undefined;
}

/**
 * Starts shopward and sends it each request repeatedly on one connection, with the tag of the last answer that had one.
 * Returns the costs in the order of the requests.
 */
export async function measureCosts(options: ShopwardOptions, all: readonly Repeated[]): Promise<Cost[]> {
  const shopward = await startShopward({ ...options, env: { NODE_OPTIONS: `--import ${probe}` } });
  const client = createKeptClient(shopward.port);
  let seq = 0;
  const sample = () => {
    seq += 1;
    const own = seq;
    shopward.signal('SIGUSR2');
    return shopward.waitForLog((line) => line.event === 'probe' && line.seq === own);
  };
  try {
    const senders: ((count: number) => Promise<void>)[] = [];
    const least: number[] = [];
    for (const { makeRequest, expected, enoughBytes = 0 } of all) {
      const send = await createSender(shopward, client, makeRequest, expected);
      await send(warmUpRequests);
      let last = await sample();
      let bytes = Infinity;
      for (let round = 0; round < rounds && bytes > enoughBytes; round++) {
        await send(requests);
        const next = await sample();
        bytes = Math.min(bytes, (Number(next.bytes) - Number(last.bytes)) / requests);
        last = next;
      }
      senders.push(send);
      least.push(bytes);
    }
    shopward.signal('SIGWINCH');
    await shopward.waitForLog((line) => line.event === 'counting');
    const costs: Cost[] = [];
    let before: Begun = {};
    for (const [i, send] of senders.entries()) {
      await send(requests);
      const begun = (await sample()).begun as Begun;
      costs.push(costOf(least[i] ?? Infinity, begun, before));
      before = begun;
    }
    return costs;
  } finally {
    client.close();
    await shopward.kill();
  }
}

async function createSender(
  shopward: Shopward,
  client: KeptClient,
  makeRequest: Repeated['makeRequest'],
  expected: number,
): Promise<(count: number) => Promise<void>> {
  const first = await client.exchange(makeRequest(shopward, undefined));
  let tag = first.field('etag');
  let octets = makeRequest(shopward, tag);
  return async (count) => {
    for (let i = 0; i < count; i++) {
      const answer = await client.exchange(octets);
      if (answer.status !== expected) throw new Error(`${answer.status} instead of ${expected}`);
      const given = answer.field('etag');
      if (given === tag) continue;
      tag = given;
      octets = makeRequest(shopward, tag);
    }
  };
}

type Begun = Readonly<Record<string, number>>;

function costOf(bytes: number, begun: Begun, before: Begun): Cost {
  const each = (type: string) => Math.round(((begun[type] ?? 0) - (before[type] ?? 0)) / requests);
  return {
    bytes: Math.round(bytes),
    promises: each('PROMISE'),
    timers: each('Timeout'),
    immediates: each('Immediate'),
    ticks: each('TickObject'),
  };
}
