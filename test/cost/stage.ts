import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { stringify } from 'yaml';
import { secretsOf } from '../../src/app/secrets.ts';
import { createApp } from '../../src/app.ts';
import { explainForConsole } from '../../src/cli/explain/explain-pasted.ts';
import { fileValidators } from '../../src/cli/file-validators.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { makeSigner, publicPem } from '../access/signing.ts';
import { issueToken } from '../harness/shopward.ts';

/** The whole proxy in this process, so that its CPU can be read, over real sockets, in front of a shop that says what it is told. */
export interface Stage {
  /** Sends the octets on a connection of their own; resolves with the beginning of the answer. */
  send(octets: string | Buffer): Promise<string>;
  /** The same to the admin port. */
  sendToAdmin(octets: string | Buffer): Promise<string>;
  /** What the shop answers from now on, octet by octet. */
  answerWith(octets: string | Buffer): void;
  readonly authorization: string;
  close(): Promise<void>;
}

const listFile = path.join(import.meta.dirname, '../../config/protected-resources.yaml');

export async function openStage(): Promise<Stage> {
  const shop = await openShop();
  const folder = await mkdtemp(path.join(tmpdir(), 'shopward-cost-'));
  const signer = makeSigner('RS256');
  await writeFile(path.join(folder, 'public.pem'), publicPem(signer));
  const settings = {
    listen: { host: '127.0.0.1', port: 0, drainDelay: '0s' },
    admin: { host: '127.0.0.1', port: 0 },
    upstream: { url: `http://127.0.0.1:${shop.port}` },
    protectedResources: listFile,
    auth: { keys: { files: ['public.pem'] } },
    trustedProxies: ['127.0.0.1'],
    cors: { origins: ['https://shop.example'] },
  };
  await writeFile(path.join(folder, 'shopward.yaml'), stringify(settings));
  const loaded = await loadConfig({
    file: 'shopward.yaml',
    env: {},
    cwd: folder,
    validators: fileValidators,
  });
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems));
  const app = await createApp({
    config: loaded.config,
    protectedList: loaded.files.find(({ role }) => role === 'protected-resources')?.text ?? '',
    secrets: secretsOf(loaded),
    log: createLog('silent'),
    explain: explainForConsole,
  });
  const { url, adminUrl } = await app.listen();
  const portOf = (address: string | undefined) => Number(new URL(address ?? '').port);
  return {
    send: (octets) => sendOctets(portOf(url), octets),
    sendToAdmin: (octets) => sendOctets(portOf(adminUrl), octets),
    answerWith: shop.answerWith,
    authorization: `Authorization: Bearer ${issueToken(signer)}\r\n`,
    async close() {
      await app.close(0);
      shop.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A shop that says what it is told. */
export async function openShop() {
  let answer: string | Buffer = '';
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    // Every request of these tests has come whole when its first octets have, or is ended by what follows it.
    socket.once('data', () => socket.end(answer));
    socket.once('close', () => sockets.delete(socket));
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as net.AddressInfo).port,
    answerWith: (octets: string | Buffer) => {
      answer = octets;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** An answer that has not begun by then is none; only a hang takes as long. */
const patienceMs = 20_000;

/** Sends octets on a connection of their own; resolves with the beginning of the answer, or the code of the fault. */
export function sendOctets(port: number, octets: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    const late = setTimeout(() => socket.destroy(new Error('no answer')), patienceMs);
    const end = (text: string) => {
      clearTimeout(late);
      socket.destroy();
      resolve(text);
    };
    socket.setNoDelay(true);
    socket.once('data', (data) => end(data.toString('latin1', 0, 200)));
    socket.once('end', () => end(''));
    // Refused before it was read to its end.
    socket.once('error', (fault: NodeJS.ErrnoException) =>
      fault.code === undefined ? reject(fault) : end(fault.code),
    );
    socket.write(octets);
  });
}
