import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long to wait for the first octet of an answer, and after each octet for the next: an attack may get no answer. */
const silenceMs = 400;
const idleMs = 25;
/** On a busy machine, wait this many times as long as a refusal takes. */
const patience = 10;

/** Sends the octets (latin-1) on a new connection, and closes it once the other side is silent. */
export async function sendWhole(port: number, octets: string, withinMs = silenceMs): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => socket.destroy());
  socket.setTimeout(withinMs, () => socket.destroy());
  socket.on('data', () => socket.setTimeout(idleMs));
  const closed = once(socket, 'close');
  socket.write(Buffer.from(octets, 'latin1'));
  await closed;
}

/** Sends a request after whose answer the other side closes, and waits for that without a limit. */
export async function sendAnswered(port: number, octets: string): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write(Buffer.from(octets, 'latin1'));
  await once(socket.resume(), 'close');
}

/** Sends all, 16 at a time. A request that never reaches the shop measures meanwhile how slow the machine is. */
export async function sendAll(port: number, all: readonly string[]): Promise<void> {
  const waiting = all.values();
  let isOver = false;
  let withinMs = silenceMs;
  const refused = 'GET /a/%2e%2e/b HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n';
  const measure = async () => {
    const begunMs = performance.now();
    await sendAnswered(port, refused);
    withinMs = Math.max(silenceMs, patience * (performance.now() - begunMs));
  };
  await measure();
  const watch = async () => {
    for (; !isOver; await sleep(50)) await measure();
  };
  const worker = async () => {
    for (const octets of waiting) await sendWhole(port, octets, withinMs);
  };
  const watched = watch();
  await Promise.all(Array.from({ length: 16 }, worker));
  isOver = true;
  await watched;
}
