import { createServer, type Socket } from 'node:net';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import type { ClientOptions } from '../../../src/upstream/port.ts';
import { listen } from '../../harness/listen.ts';
import { answer } from '../../harness/recording-upstream.ts';
import { ask, clientOf } from './direct-client.ts';

afterEach(() => void vi.useRealTimers());

/** A shop that closes no connection, and adds `fields` to each answer. */
async function start(options: Partial<ClientOptions>, fields: string) {
  const sockets: Socket[] = [];
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => {}).on('data', () => socket.write(answer('', fields)));
  });
  const { port, close } = await listen(server);
  const client = clientOf(port, options);
  onTestFinished(async () => {
    await client.close();
    await close();
  });
  return { client, sockets };
}

const saysTen = 'Keep-Alive: timeout=10\r\n';
const long = { idleTimeoutMs: 600_000 };

it.each<[method: string, idleMs: number, isReused: boolean, options: Partial<ClientOptions>, fields: string]>(
  [
    ['GET', 3_999, true, {}, ''],
    ['GET', 4_001, false, {}, ''],
    ['GET', 599_999, true, long, ''],
    ['GET', 600_001, false, long, ''],
    ['GET', 8_999, true, {}, saysTen],
    ['GET', 9_001, false, long, saysTen],
    ['POST', 249, true, {}, ''],
    ['POST', 251, false, long, ''],
    ['POST', 8_999, true, {}, saysTen],
    ['POST', 9_001, false, long, saysTen],
    ['GET', 44_999, true, { ...long, connectionLifetimeMs: 60_000 }, ''],
    ['GET', 60_001, false, { ...long, connectionLifetimeMs: 60_000 }, ''],
  ],
)('a %s after %i ms uses the idle connection: %s (%j %s)', async (method, idleMs, isReused, ...more) => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const { client, sockets } = await start(...more);
  expect(await ask(client)).toBe(200);
  vi.advanceTimersByTime(idleMs);
  const body = method === 'GET' ? null : Buffer.from('a=1');
  expect(await ask(client, { method, body })).toBe(200);
  expect(sockets.length).toBe(isReused ? 1 : 2);
});
