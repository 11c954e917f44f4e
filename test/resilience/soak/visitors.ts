import { Agent } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Shopward } from '../../harness/shopward.ts';
import { ask } from '../faults/ask.ts';
import { askRoute, readTagged, routeNames } from '../faults/routes.ts';
import type { Random } from '../hunt/random.ts';

/** How often the visitors got each answer, in the words of `ask`. */
export type Met = Record<string, number>;

/** Number of carts, customers and URLs. Limited, so that the growth of the store is not measured. */
const names = 400;

export interface Visitor {
  readonly shopward: Shopward;
  readonly random: Random;
  readonly met: Met;
  /** Pause between two actions. */
  readonly pauseMs: number;
}

/** A client that sends all kinds of requests, also invalid ones, until `isOver`. */
export async function visit(
  { shopward, random, met, pauseMs }: Visitor,
  isOver: () => boolean,
): Promise<void> {
  const isKeeping = random.next() < 0.6;
  const agent = new Agent({ keepAlive: isKeeping });
  const front = { port: shopward.port, token: shopward.issueToken(), agent };
  const count = (words: string) => {
    met[words] = (met[words] ?? 0) + 1;
  };
  while (!isOver()) {
    const name = `s${Math.floor(random.upTo(names))}`;
    const fate = random.next();
    if (fate < 0.02) await leave(shopward.port, random);
    else if (fate < 0.04) count((await nonsense(shopward.port, random)) ?? 'closed');
    else if (fate < 0.07) {
      const refused = await ask(front.port, { method: 'PATCH', path: `/carts/${name}`, body: {} }, agent);
      count(refused.words);
    } else if (fate < 0.2) {
      const { tag, words } = await readTagged(front, name);
      count(words);
      count((await askRoute(front, { name, tag }, 'tagged PATCH')).words);
    } else {
      count((await askRoute(front, { name, tag: undefined }, random.pick(routeNames))).words);
    }
    if (pauseMs > 0) await sleep(pauseMs);
  }
  agent.destroy();
}

/** Sends a whole or partial request, and closes the connection before the answer. */
async function leave(port: number, random: Random): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  const length = random.pick([5, 500]);
  socket.write(`POST /carts/s1/items HTTP/1.1\r\nHost: shop\r\nContent-Length: ${length}\r\n\r\nxxxxx`);
  await sleep(random.upTo(20));
  if (random.next() < 0.5) socket.resetAndDestroy();
  else socket.destroy();
}

/** Sends bytes that are no valid request, and reads until the end. Returns the status, if there was one. */
function nonsense(port: number, random: Random): Promise<string | undefined> {
  const bytes = random.pick([
    'GARBAGE\r\n\r\n',
    'GET /../x HTTP/1.1\r\nHost: a\r\n\r\n',
    '\x16\x03\x01\x02',
    'GET / HTTP/1.1\r\n',
  ]);
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.end(bytes, 'latin1'));
    let text = '';
    socket.setTimeout(5_000, () => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('close', () => resolve(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]));
  });
}
