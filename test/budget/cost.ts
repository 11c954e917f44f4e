import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { createKeptClient } from '../harness/kept-client.ts';
import { type LogLine, type Shopward, type ShopwardOptions, startShopward } from '../harness/shopward.ts';

/** What one request costs, whatever the machine: heap bytes, and asynchronous resources by their type in node. */
export interface Cost {
  readonly bytes: number;
  readonly promises: number;
  readonly timers: number;
  readonly immediates: number;
  readonly ticks: number;
}

const warmUpRequests = 600;
const requests = 400;
/** Something is always done for the first time, or by a timer: of several rounds the least is what a request needs. */
const rounds = 5;
const probe = pathToFileURL(path.join(import.meta.dirname, 'probe.ts')).href;

/**
 * Starts shopward, and sends it the same request over and over on one connection, with the tag of the last answer that had
 * one; `expected` is every answer's status. Once a round took no more than `enoughBytes`, no other could tell more.
 */
export async function measureCost(
  options: ShopwardOptions,
  makeRequest: (shopward: Shopward, tag: string | undefined) => string,
  expected: number,
  enoughBytes = 0,
): Promise<Cost> {
  const shopward = await startShopward({ ...options, env: { NODE_OPTIONS: `--import ${probe}` } });
  const client = createKeptClient(shopward.port);
  try {
    const first = await client.exchange(makeRequest(shopward, undefined));
    let tag = first.field('etag');
    let octets = makeRequest(shopward, tag);
    const send = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const answer = await client.exchange(octets);
        if (answer.status !== expected) throw new Error(`${answer.status} instead of ${expected}`);
        const given = answer.field('etag');
        if (given === tag) continue;
        tag = given;
        octets = makeRequest(shopward, tag);
      }
    };
    await send(warmUpRequests);
    let last = await sample(shopward, 1);
    let bytes = Infinity;
    for (let round = 1; round <= rounds && bytes > enoughBytes; round++) {
      await send(requests);
      const next = await sample(shopward, round + 1);
      bytes = Math.min(bytes, (Number(next.bytes) - Number(last.bytes)) / requests);
      last = next;
    }
    shopward.signal('SIGWINCH');
    await shopward.waitForLog((line) => line.event === 'counting');
    await send(requests);
    return costOf(bytes, await sample(shopward, Number(last.seq) + 1));
  } finally {
    client.close();
    await shopward.kill();
  }
}

function sample(shopward: Shopward, seq: number): Promise<LogLine> {
  shopward.signal('SIGUSR2');
  return shopward.waitForLog((line) => line.event === 'probe' && line.seq === seq);
}

function costOf(bytes: number, counted: LogLine): Cost {
  const begun = counted.begun as Record<string, number>;
  const each = (type: string) => Math.round((begun[type] ?? 0) / requests);
  return {
    bytes: Math.round(bytes),
    promises: each('PROMISE'),
    timers: each('Timeout'),
    immediates: each('Immediate'),
    ticks: each('TickObject'),
  };
}
