/**
 * The upstream of the hunt, run as a process. It applies writes and records them. Arguments: seed, the latest time
 * in milliseconds at which a write is applied, a factor for the rate of writes with an unknown outcome, and `broken` to
 * apply writes later than that.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Applied, clockMs, type WriteKind } from './history.ts';
import { createRandom } from './random.ts';

/** The report of the shop at the end. */
export interface ShopReport {
  readonly applied: readonly Applied[];
  readonly counts: Readonly<Record<string, number>>;
}
export type ShopMessage = { readonly port: number } | { readonly report: ShopReport };
/** `calm`: the shop causes no more faults. */
export type ShopOrder = 'calm' | 'report';

interface Cart {
  version: number;
  exists: boolean;
}

interface WriteBody {
  readonly write: string;
  readonly basedOn?: number;
  readonly cart?: string;
  /** For a write of all carts: the versions that its client had read. */
  readonly versions?: Readonly<Record<string, number>>;
}

const [seed = '1', landsWithin = '1900', misfortunes = '1', broken] = process.argv.slice(2);
const random = createRandom(Number(seed));
const landsWithinMs = Number(landsWithin);
const isBroken = broken === 'broken';
const carts = new Map<string, Cart>();
const applied: Applied[] = [];
const counts: Record<string, number> = {};
let isCalm = false;

// If this process stalled, a request read now may have waited in the kernel since the last tick of the event loop.
let lastTickMs = performance.now();
let worstStallMs = 0;
setInterval(() => {
  const now = performance.now();
  worstStallMs = Math.max(worstStallMs, now - lastTickMs);
  lastTickMs = now;
}, 5);

const server = createServer((request, response) => {
  void serve(request, response);
}).listen(0, '127.0.0.1', () => tell({ port: (server.address() as AddressInfo).port }));
server.keepAliveTimeout = 60_000;

process.on('message', (order: ShopOrder) => {
  if (order === 'calm') isCalm = true;
  else tell({ report: { applied, counts: { ...counts, worstStallMs: Math.round(worstStallMs) } } });
});
process.on('disconnect', () => process.exit());

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request).catch(() => undefined);
  if (body === undefined) return;
  const arrivedMs = lastTickMs;
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://shop.example');
  const [, , id = '', child] = pathname.split('/');
  if (request.method === 'GET') return serveRead(id, searchParams.get('cart'), response);
  const kind: WriteKind =
    request.method === 'PATCH'
      ? id === ''
        ? 'collection'
        : 'patch'
      : request.method === 'DELETE'
        ? 'delete'
        : child === undefined
          ? 'create'
          : 'child';
  const write = JSON.parse(body) as WriteBody;
  await serveWrite(kind, kind === 'create' ? (write.cart ?? '') : id, write, arrivedMs, request, response);
}

/** Answers with the state at the arrival, perhaps late. */
async function serveRead(id: string, only: string | null, response: ServerResponse): Promise<void> {
  const fate = isCalm ? 1 : random.next();
  const name = only ?? id;
  if (name === '') {
    const all = [...carts]
      .filter(([, cart]) => cart.exists)
      .map(([cart, { version }]) => dataOf(cart, version));
    return send(response, 200, { data: all });
  }
  const { version, exists } = cartOf(name);
  await sleep(fate < 0.01 ? random.upTo(1500) : random.upTo(10));
  if (fate > 0.997 && !isCalm) return send(response, 500, {});
  if (fate > 0.99 && !isCalm) return cutInTheMiddle(response, documentOf(name, version));
  if (only !== null) return send(response, 200, { data: exists ? [dataOf(name, version)] : [] });
  return exists
    ? send(response, 200, documentOf(name, version))
    : send(response, 404, { errors: [{ code: '101', status: 404 }] });
}

async function serveWrite(
  kind: WriteKind,
  cart: string,
  write: WriteBody,
  arrivedMs: number,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const fate = isCalm ? 1 : random.next() / Number(misfortunes);
  const apply = () =>
    kind === 'collection' ? applyToAll(write, arrivedMs) : applyWrite(kind, cart, write, arrivedMs);
  const late = () => sleep(random.upTo(isBroken ? landsWithinMs * 4 : landsWithinMs));
  const answer = (result: number | 'absent' | 'exists' | 'late') => {
    if (result === 'late') return void request.socket.destroy();
    if (result === 'absent') return send(response, 404, { errors: [{ code: '101', status: 404 }] });
    if (result === 'exists') return send(response, 409, { errors: [{ code: '1', status: 409 }] });
    return send(response, kind === 'create' ? 201 : 200, documentOf(cart, result));
  };
  if (fate < 0.02) return send(response, 422, { errors: [{ code: '901', status: 422 }] });
  if (fate < 0.024) return send(response, 500, {});
  if (fate < 0.028) {
    apply();
    return send(response, random.pick([500, 502, 504]), {});
  }
  if (fate < 0.032) {
    // As if a gateway gave up while the shop goes on.
    send(response, 504, {});
    await late();
    return void apply();
  }
  if (fate < 0.037) {
    request.socket.resetAndDestroy();
    await late();
    return void apply();
  }
  if (fate < 0.042) {
    apply();
    return cutInTheMiddle(response, documentOf(cart, 0));
  }
  if (fate < 0.044) return void apply();
  if (fate < 0.048) {
    const result = apply();
    await sleep(random.upTo(3000));
    return answer(result);
  }
  await (fate < 0.055 ? late() : sleep(random.upTo(15)));
  return answer(apply());
}

/** Applies the write to each existing cart, based on the version that the client had read. */
function applyToAll({ write, versions = {} }: WriteBody, arrivedMs: number): number | 'late' {
  for (const [name, { exists }] of carts) {
    const one = { write: `${write} ${name}`, basedOn: versions[name] ?? -1 };
    if (exists && applyWrite('collection', name, one, arrivedMs) === 'late') return 'late';
  }
  return 0;
}

function applyWrite(
  kind: WriteKind,
  name: string,
  { write, basedOn }: WriteBody,
  arrivedMs: number,
): number | 'absent' | 'exists' | 'late' {
  if (!isBroken && performance.now() - arrivedMs > landsWithinMs) {
    counts.tooLate = (counts.tooLate ?? 0) + 1;
    return 'late';
  }
  const cart = cartOf(name);
  if (kind === 'create' && cart.exists) return 'exists';
  if (kind !== 'create' && !cart.exists) return 'absent';
  const replaced = cart.version;
  cart.version += 1;
  cart.exists = kind !== 'delete';
  const base = kind === 'child' || kind === 'create' ? null : (basedOn ?? -1);
  applied.push({ write, cart: name, kind, basedOn: base, replaced, result: cart.version, atMs: clockMs() });
  return cart.version;
}

function cartOf(name: string): Cart {
  const known = carts.get(name);
  if (known !== undefined) return known;
  const made = { version: 1, exists: true };
  carts.set(name, made);
  return made;
}

function dataOf(id: string, version: number): object {
  return { type: 'carts', id, attributes: { version } };
}

function documentOf(id: string, version: number): object {
  return { data: dataOf(id, version) };
}

/** Adds a tag of the shop, which nothing checks. */
function send(response: ServerResponse, status: number, document: object): void {
  const body = JSON.stringify(document);
  const tag = status < 300 ? { ETag: `"shop-${body.length}-${random.next()}"` } : {};
  response
    .writeHead(status, { 'Content-Type': 'application/vnd.api+json', 'Content-Length': body.length, ...tag })
    .end(body);
}

function cutInTheMiddle(response: ServerResponse, document: object): void {
  const body = JSON.stringify(document);
  response.writeHead(200, { 'Content-Type': 'application/vnd.api+json', 'Content-Length': body.length });
  response.write(body.slice(0, 10), () => response.socket?.destroy());
}

function tell(message: ShopMessage): void {
  process.send?.(message);
}
