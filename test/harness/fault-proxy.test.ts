import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import { closingAtEnd } from './closing-at-end.ts';
import { type Faults, startFaultProxy } from './fault-proxy.ts';

interface Client {
  readonly socket: Socket;
  received: string;
  /** `fin`, a code such as ECONNRESET, or `open`. */
  ending: string;
}

async function openClient(port: number): Promise<Client> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const client: Client = { socket, received: '', ending: 'open' };
  socket.on('data', (chunk) => {
    client.received += chunk.toString('latin1');
  });
  socket.on('end', () => {
    client.ending = 'fin';
  });
  socket.on('error', ({ code }: NodeJS.ErrnoException) => {
    client.ending = code ?? 'error';
  });
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {});
  return client;
}

/** A proxy in front of a server that answers each line with itself. */
async function startStage(context: TestContext) {
  const closing = closingAtEnd(context);
  let heard = '';
  const echo = closing(
    createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        heard += chunk.toString('latin1');
        if (socket.writable) socket.write(chunk);
      });
      socket.on('end', () => socket.end());
    }).listen(0, '127.0.0.1'),
  );
  await once(echo, 'listening');
  const proxy = closing(await startFaultProxy((echo.address() as AddressInfo).port));
  return { proxy, heard: () => heard, open: () => openClient(proxy.port) };
}

const cases: readonly (readonly [string, Faults, string, string, string])[] = [
  ['nothing', {}, 'abcdef', 'open', 'abcdef'],
  ['reset on connect', { connections: 'reset' }, '', 'ECONNRESET', ''],
  ['refused', { connections: 'refuse' }, '', 'ECONNREFUSED', ''],
  ['hanging', { connections: 'hang' }, '', 'open', ''],
  ['delayed', { toUpstream: { delayMs: 30 }, toClient: { delayMs: 30 } }, 'abcdef', 'open', 'abcdef'],
  ['slow', { toClient: { bytesPerSecond: 100 } }, 'abcdef', 'open', 'abcdef'],
  ['dropped on the way', { toUpstream: { drop: true } }, '', 'open', ''],
  ['dropped on the way back', { toClient: { drop: true } }, '', 'open', 'abcdef'],
  ['duplicated', { toClient: { duplicate: true } }, 'abcdefabcdef', 'open', 'abcdef'],
  ['replaced', { toClient: { replaceBy: 'nonsense' } }, 'nonsense', 'open', 'abcdef'],
  ['truncated by FIN', { toClient: { cut: { bytes: 2, by: 'fin' } } }, 'ab', 'fin', 'abcdef'],
  ['truncated by RST', { toClient: { cut: { bytes: 2, by: 'reset' } } }, 'ab', 'ECONNRESET', 'abcdef'],
  ['half-closed', { toClient: { cut: { bytes: 2, by: 'half-close' } } }, 'ab', 'fin', 'abcdef'],
  ['stalled', { toClient: { cut: { bytes: 2, by: 'stall' } } }, 'ab', 'open', 'abcdef'],
  ['stalled on the way', { toUpstream: { cut: { bytes: 4, by: 'stall' } } }, 'abcd', 'open', 'abcd'],
  [
    'cut after a mark',
    { toClient: { cut: { behind: 'cd', bytes: 1, by: 'fin' } } },
    'abcde',
    'fin',
    'abcdef',
  ],
];

describe.concurrent('the fault proxy', () => {
  test.for(cases)('%s', async ([, faults, received, ending, arrived], context) => {
    const { proxy, heard, open } = await startStage(context);
    const { expect } = context;
    await proxy.set(faults);
    const client = await open();
    client.socket.write('abcdef');
    await expect.poll(() => [client.received, client.ending, heard()]).toEqual([received, ending, arrived]);
    // Nothing more comes.
    await sleep(60);
    expect([client.received, client.ending, heard()]).toEqual([received, ending, arrived]);
    await proxy.heal();
    const next = await open();
    next.socket.write('again');
    await expect.poll(() => next.received).toBe('again');
    client.socket.destroy();
    next.socket.destroy();
    await expect.poll(() => proxy.open).toBe(0);
  });

  test('on connections that are abandoned nothing comes any more, and those after them work', async (context) => {
    const { proxy, heard, open } = await startStage(context);
    const { expect } = context;
    const client = await open();
    client.socket.write('before');
    await expect.poll(() => client.received).toBe('before');
    await proxy.abandon();
    client.socket.write('after');
    const next = await open();
    next.socket.write('again');
    await expect.poll(() => next.received).toBe('again');
    expect([client.received, client.ending, heard()]).toEqual(['before', 'open', 'beforeagain']);
  });

  test('a fault that is set in the middle of a connection takes effect from there on', async (context) => {
    const { proxy, open } = await startStage(context);
    const { expect } = context;
    const client = await open();
    client.socket.write('before ');
    await expect.poll(() => client.received).toBe('before ');
    await proxy.set({ toClient: { cut: { bytes: 3, by: 'reset' } } });
    client.socket.write('after');
    await expect.poll(() => [client.received, client.ending]).toEqual(['before aft', 'ECONNRESET']);
  });

  test('what is cut in one direction leaves the other open', async (context) => {
    const { proxy, heard, open } = await startStage(context);
    const { expect } = context;
    await proxy.set({ toClient: { cut: { bytes: 1, by: 'half-close' } } });
    const client = await open();
    client.socket.write('first ');
    await expect.poll(() => client.ending).toBe('fin');
    client.socket.write('second');
    await expect.poll(heard).toBe('first second');
    client.socket.destroy();
  });
});
