import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, type TestContext } from 'vitest';
import { ageRedis } from '../../harness/aged-redis.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { eventually } from '../../harness/eventually.ts';
import { listen } from '../../harness/listen.ts';
import type { RawResponse } from '../../harness/raw-response.ts';
import { startRedisProcess } from '../../harness/redis-server.ts';
import { callShop, outcomeOf, type ShopCall } from '../../harness/shop-client.ts';
import { type RunningShopward, type ShopwardOptions, startShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';

/** How long the other replica gets no request. For a longer run: `HONEST_IDLE_MS=200,1000,60000` and `HONEST_CARTS=50`. */
const idleMs = (process.env.HONEST_IDLE_MS ?? '200,2000').split(',').map(Number);
const cartCount = Number(process.env.HONEST_CARTS ?? 25);
const longestReadMs = Number(process.env.HONEST_LONGEST_READ_MS ?? 1500);

/** A shop that counts the writes of each cart, and answers after `waitMs`. */
class Shop {
  readonly items = new Map<string, number>();
  readonly asked: string[] = [];
  waitMs: (request: IncomingMessage) => number = () => 0;
  running = 0;
  busiest = 0;
  /** Each write waits until this many have arrived, because a slow machine may still be sending them. */
  together = 0;

  readonly #server: Server = createServer((request, response) => void this.#serve(request, response));

  async start(): Promise<string> {
    return (await listen(this.#server)).url;
  }

  close(): void {
    this.#server.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, , id = ''] = (request.url ?? '').split('/');
    this.asked.push(`${request.method} ${request.url}`);
    request.resume();
    await once(request, 'end');
    const document = () => ({ data: { type: 'carts', id, attributes: { items: this.items.get(id) ?? 0 } } });
    // A read returns the state at its arrival.
    const seen = JSON.stringify(document());
    const isWrite = request.method !== 'GET';
    if (isWrite) this.running += 1;
    this.busiest = Math.max(this.busiest, this.running);
    const areTogether = () => !isWrite || this.busiest >= this.together || undefined;
    await eventually('the others', areTogether, 20_000).catch(() => {
      // The writes are serialized; `busiest` shows how few ran together.
      this.together = 0;
    });
    await sleep(this.waitMs(request));
    if (isWrite) this.running -= 1;
    const type = { 'Content-Type': 'application/vnd.api+json' };
    if (isWrite) this.items.set(id, (this.items.get(id) ?? 0) + 1);
    response
      .writeHead(request.method === 'POST' ? 201 : 200, type)
      .end(isWrite ? JSON.stringify(document()) : seen);
  }
}

function opening(context: Pick<TestContext, 'onTestFinished'>) {
  const open = closingAtEnd(context);
  const shop = open(new Shop());
  /** Settings for replicas that share a new Redis. */
  async function settingsOf(upstream: string, config: object = {}): Promise<ShopwardOptions> {
    const redis = open(await startRedisProcess());
    await ageRedis(redis.port);
    return { upstream, config: { store: { url: `redis://127.0.0.1:${redis.port}` }, ...config } };
  }
  /** A separate process, with its own event loop and without earlier requests. */
  async function startProcess(settings: ShopwardOptions) {
    const replica = await startShopward(settings);
    open({ close: () => replica.kill() });
    return replica;
  }
  /** In this process: for tests without load that kill no process. */
  async function startHere(settings: ShopwardOptions) {
    const replica = await startShopwardHere(settings);
    open({ close: () => replica.stop() });
    return replica;
  }
  async function startPair(config?: object) {
    const settings = await settingsOf(await shop.start(), config);
    return Promise.all([startProcess(settings), startProcess(settings)]);
  }
  return { open, shop, settingsOf, startProcess, startHere, startPair };
}

const call = (
  replica: RunningShopward | undefined,
  line: string,
  options: ShopCall = {},
): Promise<RawResponse> => callShop(replica?.port ?? 0, line, { token: replica?.issueToken(), ...options });

/** Reads until there is a tag. */
const readTag = (replica: RunningShopward, path: string) =>
  eventually('tag', async () => (await call(replica, `GET ${path}`)).field('etag'));

const body = { data: { type: 'carts', attributes: {} } };

/** The part of a tag that names the state; the part after the dot names the variant. */
const stateIn = (tag: string | undefined) => tag?.replace(/\.[0-9a-f]+"$/, '"');
const tokens = (count: number, name = 'cart') => Array.from({ length: count }, (_, i) => `${name}-${i}`);

/**
 * If a replica stands still while an answer of the store waits, it knows the store's clock only roughly for a moment, and
 * reads in this moment get no tag. With a wrong clock most reads would get none.
 */
function expectTags(pairs: readonly (readonly [read: RawResponse, written: RawResponse])[]): void {
  const tagged = pairs.filter(([read]) => read.field('etag') !== undefined);
  for (const each of tagged) expect(new Set(each.map((one) => stateIn(one.field('etag')))).size).toBe(1);
  expect(tagged.length).toBeGreaterThan(pairs.length / 2);
}

// Not concurrent with other tests: each read must follow its write immediately.
describe('a read that follows a write at another replica', () => {
  it('has the tag of the write, with 16 carts at once', async (context) => {
    const { shop, startPair } = opening(context);
    const replicas = await startPair();
    shop.waitMs = ({ method }) => (method === 'GET' ? 5 : 0);
    const pairs: [RawResponse, RawResponse][] = [];
    await Promise.all(
      tokens(16).map(async (cart, i) => {
        let tag = (await call(replicas[0], `GET /carts/${cart}`)).field('etag');
        for (let round = 0; round < 12; round += 1) {
          const written = await call(replicas[(i + round) % 2], `PATCH /carts/${cart}`, {
            ifMatch: tag,
            body,
          });
          expect(written.status).toBe(200);
          const read = await call(replicas[(i + round + 1) % 2], `GET /carts/${cart}`);
          pairs.push([read, written]);
          tag = read.field('etag') ?? written.field('etag');
        }
      }),
    );
    expectTags(pairs);
  });
});

describe('a read at an idle replica that follows a write at another one', () => {
  it('has the tag of the write, for each idle time and each duration of the read', async (context) => {
    const { shop, startPair } = opening(context);
    const [one, other] = await startPair();
    for (const idle of idleMs) {
      // New carts for each idle time: none was read or written before.
      const carts = tokens(cartCount, `after-${idle}`);
      shop.waitMs = () => 0;
      const tagged = await Promise.all(carts.map((cart) => call(one, `GET /carts/${cart}`)));
      await call(other, 'GET /carts/warm');
      await sleep(idle);
      shop.waitMs = ({ method, url = '' }) =>
        method === 'GET' ? 5 + (longestReadMs * (Number(url.split('-').at(-1)) || 0)) / cartCount : 0;
      const writeAndRead = async (cart: string, i: number) => {
        const ifMatch = tagged[i]?.field('etag');
        const written = await call(one, `PATCH /carts/${cart}`, { ifMatch, body });
        expect(written.status).toBe(200);
        return [await call(other, `GET /carts/${cart}`), written] as const;
      };
      // The first cart is alone: among others, its read would follow the write so late that a wrong clock would pass.
      const [first = '', ...rest] = carts;
      expectTags([await writeAndRead(first, 0)]);
      expectTags(await Promise.all(rest.map((cart, i) => writeAndRead(cart, i + 1))));
    }
  });
});

describe.concurrent('a replica that is killed between its claim and its request to the shop', () => {
  it('leaves no write; the next write waits for the lease and gets 412, a new read gives a valid tag', async (context) => {
    const { shop, settingsOf, startProcess, startHere } = opening(context);
    const config = { entityTags: { lease: '20s', sendBy: '9s', wait: '20s' }, upstream: { connections: 1 } };
    const settings = await settingsOf(await shop.start(), config);
    const [one, other] = await Promise.all([startProcess(settings), startHere(settings)]);
    const ifMatch = (await call(one, 'GET /carts/1')).field('etag');
    shop.waitMs = ({ url }) => (url === '/carts/slow' ? 60_000 : 0);
    // The only connection to the shop is busy, so that the write has its lease and cannot be sent.
    const cut = [call(one, 'GET /carts/slow').catch(() => 'cut')];
    await eventually('the slow read at the shop', () => shop.asked.includes('GET /carts/slow') || undefined);
    cut.push(call(one, 'PATCH /carts/1', { ifMatch, body }).catch(() => 'cut'));
    await eventually('its lease', async () => {
      const metrics = await (await fetch(`${one.adminUrl}/metrics`)).text();
      return /^shopward_events_total\{.*event="claimed".*\} 1$/m.test(metrics) || undefined;
    });
    await one.kill();
    expect(await Promise.all(cut)).toEqual(['cut', 'cut']);
    expect(shop.items.get('1')).toBe(undefined);
    expect(outcomeOf(await call(other, 'PATCH /carts/1', { ifMatch, body }))).toBe('412 006');
    const now = await readTag(other, '/carts/1');
    expect(outcomeOf(await call(other, 'PATCH /carts/1', { ifMatch: now, body }))).toBe('200');
  });
});

describe.concurrent('forty adds to one cart at once', () => {
  it('all get 201 and run concurrently, at a fast shop and at a slow one; the old tag gets 412', async (context) => {
    const { shop, startPair } = opening(context);
    const [one, other] = await startPair({ upstream: { connections: 64 } });
    for (const waitMs of [150, 600]) {
      const cart = `/carts/${waitMs}`;
      shop.busiest = 0;
      shop.together = 11;
      shop.waitMs = () => 0;
      const before = (await call(one, `GET ${cart}`)).field('etag');
      shop.waitMs = ({ method }) => (method === 'GET' ? 0 : waitMs);
      const adds = Array.from({ length: 40 }, (_, i) =>
        call(i % 2 === 0 ? one : other, `POST ${cart}/items`, { body: { data: { type: 'items' } } }),
      );
      const outcomes = (await Promise.all(adds)).map(outcomeOf);
      expect(outcomes).toEqual(Array.from({ length: 40 }, () => '201'));
      expect(shop.items.get(`${waitMs}`)).toBe(40);
      // More than ten ran at the same time.
      expect(shop.busiest).toBeGreaterThan(10);
      shop.together = 0;
      const change = (ifMatch: string | undefined) => call(one, `PATCH ${cart}`, { ifMatch, body });
      expect(outcomeOf(await change(before))).toBe('412 006');
      expect(outcomeOf(await change(await readTag(other, cart)))).toBe('200');
    }
  });
});
