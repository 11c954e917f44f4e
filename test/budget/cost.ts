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
 * one; `expected` is every answer's status.
 */
export async function measureCost(
  options: ShopwardOptions,
  makeRequest: (shopward: Shopward, tag: string | undefined) => string,
  expected: number,
): Promise<Cost> {
  const shopward = await startShopward({ ...options, env: { NODE_OPTIONS: `--import ${probe}` } });
  const client = createKeptClient(shopward.port);
  try {
    const first = await client.exchange(makeRequest(shopward, undefined));
    let tag = first.field('etag');
    let bytes = makeRequest(shopward, tag);
    const send = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const answer = await client.exchange(bytes);
        if (answer.status !== expected) throw new Error(`${answer.status} instead of ${expected}`);
        const given = answer.field('etag');
        if (given === tag) continue;
        tag = given;
        bytes = makeRequest(shopward, tag);
      }
    };
    await send(warmUpRequests);
    const samples = [await sample(shopward, 1)];
    while (samples.length <= rounds) {
      await send(requests);
      samples.push(await sample(shopward, samples.length + 1));
    }
    shopward.signal('SIGWINCH');
    await shopward.waitForLog((line) => line.event === 'counting');
    await send(requests);
    return costOf(samples, await sample(shopward, samples.length + 1));
  } finally {
    client.close();
    await shopward.kill();
  }
}

function sample(shopward: Shopward, seq: number): Promise<LogLine> {
  shopward.signal('SIGUSR2');
  return shopward.waitForLog((line) => line.event === 'probe' && line.seq === seq);
}

function costOf(samples: readonly LogLine[], counted: LogLine): Cost {
  const totals = samples.map((line) => Number(line.bytes));
  const asked = totals.slice(1).map((total, i) => total - (totals[i] ?? 0));
  const begun = counted.begun as Record<string, number>;
  const each = (type: string) => Math.round((begun[type] ?? 0) / requests);
  return {
    bytes: Math.round(Math.min(...asked) / requests),
    promises: each('PROMISE'),
    timers: each('Timeout'),
    immediates: each('Immediate'),
    ticks: each('TickObject'),
  };
}
