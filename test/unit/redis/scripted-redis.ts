import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
export const list = (items: readonly string[]) => `*${items.length}\r\n${items.map(bulk).join('')}`;

/** INFO fields of a healthy server. */
export const healthy = {
  redis_version: '8.0.0',
  loading: 0,
  maxmemory_policy: 'noeviction',
  run_id: 'run-1',
  master_replid: 'history-1',
  used_memory: 50 * 1024 * 1024,
  maxmemory: 0,
};

export const infoReply = (info: Readonly<Record<string, string | number>>) => {
  const fields = Object.entries(info).map(([key, value]) => `${key}:${value}`);
  return bulk(`# Server\r\n${fields.join('\r\n')}\r\n`);
};

/** A fake Redis that sends what `answer` returns for each command, in RESP (undefined: nothing). It stops after the test. */
export async function startScriptedRedis(
  answer: (words: readonly string[], socket: Socket) => string | undefined,
) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let text = '';
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      for (;;) {
        const read = readCommand(text);
        if (read === undefined) return;
        text = text.slice(read.length);
        socket.write(answer(read.words, socket) ?? '');
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    server.close();
    drop();
  });
  return { port: (server.address() as AddressInfo).port, drop };
}

/** The first complete command in a text of RESP. */
function readCommand(text: string): { words: string[]; length: number } | undefined {
  let at = 0;
  const line = () => {
    const end = text.indexOf('\r\n', at);
    if (end < 0) return undefined;
    const found = text.slice(at + 1, end);
    at = end + 2;
    return Number(found);
  };
  const count = line();
  if (count === undefined) return undefined;
  const words: string[] = [];
  while (words.length < count) {
    const bytes = line();
    if (bytes === undefined || text.length < at + bytes + 2) return undefined;
    words.push(text.slice(at, at + bytes));
    at += bytes + 2;
  }
  return { words, length: at };
}
