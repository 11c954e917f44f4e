import { once } from 'node:events';
import { connect } from 'node:net';

/** How long a server may say nothing before, and after, its first octet, since an attack may have no answer. */
const silenceMs = 400;
const quietMs = 25;

/** Sends the octets (latin-1) on a connection of their own, and lets it go once the other side has nothing more to say. */
export async function sendWhole(port: number, octets: string): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => socket.destroy());
  socket.setTimeout(silenceMs, () => socket.destroy());
  socket.on('data', () => socket.setTimeout(quietMs));
  const closed = once(socket, 'close');
  socket.write(Buffer.from(octets, 'latin1'));
  await closed;
}

/** Sends a request that has an answer, and after which the other side closes, however long it takes. */
export async function sendAnswered(port: number, octets: string): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write(Buffer.from(octets, 'latin1'));
  await once(socket.resume(), 'close');
}

/** All of them, some at a time. */
export async function sendAll(port: number, all: readonly string[]): Promise<void> {
  const waiting = all.values();
  const lane = async () => {
    for (const octets of waiting) await sendWhole(port, octets);
  };
  await Promise.all(Array.from({ length: 16 }, lane));
}
