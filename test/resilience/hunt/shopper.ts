import { setTimeout as sleep } from 'node:timers/promises';
import { makeHmacToken } from '../../unit/access/signing.ts';
import { type CartAnswer, type CartRequest, createCartClient } from './cart-client.ts';
import { clockMs, type NotModified, type Told, type Write, type WriteKind } from './history.ts';
import type { Random } from './random.ts';

/** What all clients have seen. */
export interface Sightings {
  readonly writes: Write[];
  readonly counts: Record<string, number>;
  readonly notModified: NotModified[];
  /** A 304 that names another tag than the client's. */
  readonly misnamed: string[];
}

export interface ShopperOptions {
  readonly name: string;
  readonly user: string;
  readonly secret: string;
  readonly carts: readonly string[];
  readonly ports: readonly number[];
  readonly random: Random;
  readonly sightings: Sightings;
}

interface Known {
  readonly tag: string;
  readonly version: number;
}

/** Codes that mean that nothing was forwarded: refusals of shopward, and a refused connection. */
const unforwarded = new Set([
  '005',
  '006',
  'collection-write',
  'tag-store-unavailable',
  'resource-busy',
  'overloaded',
  'ECONNREFUSED',
]);

/** One client: reads carts, and bases its writes on what it has read. */
export class Shopper {
  readonly #options: ShopperOptions;
  readonly #client: ReturnType<typeof createCartClient>;
  readonly #known = new Map<string, Known>();
  #writes = 0;
  #lastStatus = '';

  constructor(options: ShopperOptions) {
    this.#options = options;
    const now = Math.floor(Date.now() / 1000);
    const claims = { sub: options.user, iat: now - 10, exp: now + 7200 };
    this.#client = createCartClient(makeHmacToken(options.secret, claims));
  }

  async run(isOver: () => boolean): Promise<void> {
    const { random, carts } = this.#options;
    while (!isOver()) {
      const cart = random.pick(carts);
      if (random.next() < 0.05) {
        // Every write of a cart makes the tag of the list stale, so it tries several times.
        for (let times = 0; times < 12 && (await this.#writeCollection()) === '006'; times += 1);
        continue;
      }
      if (random.next() < 0.12) {
        // A write below a cart needs no tag, but must make the earlier tag of the cart stale.
        await this.read(cart);
        await this.#write('child', cart, undefined);
        await this.read(cart);
        continue;
      }
      const seen = await this.read(cart);
      if (seen === 'absent' && random.next() < 0.7) await this.#write('create', cart, undefined);
      if (seen === 'silent') await sleep(random.upTo(200));
      // Without a tag no write is possible; waits, so that clients do not only read.
      if (seen === 'seen' && !this.#known.has(cart)) await sleep(random.upTo(800));
      while (!isOver() && this.#known.has(cart) && random.next() < 0.4) await this.read(cart);
      while (!isOver() && this.#known.has(cart)) {
        const kind = random.next() < 0.06 ? 'delete' : 'patch';
        const told = await this.#write(kind, cart, this.#known.get(cart));
        if (told !== 'accepted' || random.next() < 0.3) break;
      }
      await sleep(random.upTo(50));
    }
  }

  /** Reads a cart, often with `If-None-Match` of a known tag, and stores in `#known` what a write may be based on. */
  async read(cart: string): Promise<'seen' | 'absent' | 'silent'> {
    const { random, sightings } = this.#options;
    const before = this.#known.get(cart);
    const isConditional = before !== undefined && random.next() < 0.8;
    const path = random.next() < 0.15 && !isConditional ? `/carts?cart=${cart}` : `/carts/${cart}`;
    const fields = isConditional ? { 'If-None-Match': before.tag } : {};
    if (isConditional) this.#count('reads with If-None-Match');
    const askedMs = clockMs();
    const { status, tag, version } = await this.#send({ method: 'GET', path, fields });
    if (status === 304 && before !== undefined) {
      sightings.notModified.push({ cart, version: before.version, askedMs, answeredMs: clockMs() });
      if (tag !== before.tag) sightings.misnamed.push(`cart ${cart}: 304 with ${tag} for ${before.tag}`);
      return 'seen';
    }
    this.#known.delete(cart);
    if (status === 404 || (status === 200 && version === undefined)) return 'absent';
    if (status !== 200 || version === undefined) return 'silent';
    this.#count(tag === undefined ? 'reads without a tag' : 'reads with a tag');
    if (tag !== undefined) this.#known.set(cart, { tag, version });
    return 'seen';
  }

  /** Tries for `withinMs` to read the cart with a tag and to write it. Returns what failed; undefined: it worked. */
  async findObstacle(cart: string, withinMs: number): Promise<string | undefined> {
    const deadline = performance.now() + withinMs;
    let obstacle = '';
    while (performance.now() < deadline) {
      const seen = await this.read(cart);
      if (seen === 'absent') await this.#write('create', cart, undefined);
      const known = this.#known.get(cart);
      if (known !== undefined && (await this.#write('patch', cart, known)) === 'accepted') return undefined;
      obstacle = known === undefined ? `${seen}, no tag` : this.#lastStatus;
      await sleep(200);
    }
    return obstacle;
  }

  close(): void {
    this.#client.close();
  }

  async #write(kind: WriteKind, cart: string, known: Known | undefined): Promise<Told> {
    const { random, name, sightings } = this.#options;
    this.#writes += 1;
    const write = `${name}.${this.#writes}`;
    const answer = await this.#send({
      ...requestOf(kind, cart),
      ...(known && { fields: { 'If-Match': known.tag } }),
      body: { write, cart, ...(known && { basedOn: known.version }) },
      ...(random.next() < 0.01 && { leaveAfterMs: 1 + random.upTo(30) }),
    });
    const told = toldBy(answer);
    sightings.writes.push({
      ...{ write, cart, kind, told, result: answer.version, basedOn: known?.version },
      ...(told === 'refused' && { status: answer.status }),
      ...(told !== 'unknown' && { answeredMs: clockMs() }),
    });
    this.#count(`${kind} ${told}`);
    this.#lastStatus = `status ${answer.status}${answer.code === undefined ? '' : ` ${answer.code}`}`;
    this.#count(this.#lastStatus);
    if (kind === 'child') return told;
    this.#known.delete(cart);
    if (told !== 'accepted' || answer.version === undefined) return told;
    if (answer.tag !== undefined && kind !== 'delete') {
      this.#known.set(cart, { tag: answer.tag, version: answer.version });
    }
    return told;
  }

  /** Writes all carts at once, with the tag of the list. The shop records one write for each. */
  async #writeCollection(): Promise<string | undefined> {
    const { name, sightings } = this.#options;
    const { tag, versions = {} } = await this.#send({ method: 'GET', path: '/carts' });
    if (tag === undefined || Object.keys(versions).length === 0) return undefined;
    this.#writes += 1;
    const write = `${name}.${this.#writes}`;
    const request = {
      method: 'PATCH',
      path: '/carts',
      fields: { 'If-Match': tag },
      body: { write, versions },
    };
    const answer = await this.#send(request);
    this.#count(`collection ${answer.code ?? answer.status}`);
    const told = toldBy(answer);
    for (const cart of Object.keys(versions)) {
      const one = { write: `${write} ${cart}`, cart, kind: 'collection', told, result: undefined } as const;
      sightings.writes.push(one);
    }
    return answer.code;
  }

  /** Sends a request to a random replica. */
  #send(request: Omit<CartRequest, 'port'>): Promise<CartAnswer> {
    return this.#client.send({ ...request, port: this.#options.random.pick(this.#options.ports) });
  }

  #count(what: string): void {
    const { counts } = this.#options.sightings;
    counts[what] = (counts[what] ?? 0) + 1;
  }
}

function requestOf(kind: WriteKind, cart: string): { readonly method: string; readonly path: string } {
  switch (kind) {
    case 'patch':
      return { method: 'PATCH', path: `/carts/${cart}` };
    case 'delete':
      return { method: 'DELETE', path: `/carts/${cart}` };
    case 'child':
      return { method: 'POST', path: `/carts/${cart}/items` };
    case 'create':
      return { method: 'POST', path: '/carts' };
    case 'collection':
      return { method: 'PATCH', path: '/carts' };
  }
}

function toldBy({ status, code }: CartAnswer): Told {
  if (status >= 200 && status < 300) return 'accepted';
  if (code !== undefined && unforwarded.has(code)) return 'refused';
  return status >= 400 && status < 500 ? 'refused' : 'unknown';
}
