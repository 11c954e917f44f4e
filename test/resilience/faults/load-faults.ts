import { once } from 'node:events';
import { Agent } from 'node:http';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../harness/eventually.ts';
import { freePort } from '../../harness/free-port.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';
import { ask } from './ask.ts';
import { checkScene, type Scene } from './scene.ts';

const clients = 32;
const connections = 16;
/** Each connection to the shop ends after this number of answers. */
const answersOfOne = 8;
/** After this number of answers every connection has ended twice. Not a time, because the rate depends on the machine. */
const round = 2 * connections * answersOfOne;

/** Faults that show only under load. */
export async function runLoadFaults(): Promise<Scene[]> {
  return [await closedListener(), ...(await usedUpDescriptors())];
}

/** A rolling restart of the shop: it refuses new connections, and the open ones answer a few requests each. */
async function closedListener(): Promise<Scene> {
  const shop = await startRestartingShop();
  const shopward = await startShopward({
    upstream: `http://127.0.0.1:${shop.port}`,
    config: { upstream: { connections } },
  });
  const load = startLoad(shopward);
  await load.more(round);
  await shop.closeListener();
  await load.more(round);
  const livez = await askLivez(shopward);
  await shop.openListener();
  await load.more(round);
  const seen = await load.stop();
  const after = await askOpen(shopward);
  const stopped = await stop(shopward);
  shop.close();
  return checkScene(
    `the listener refuses, open connections answer, ${clients} clients`,
    { requests: seen, livez, afterwards: after, SIGTERM: stopped },
    {
      // If the open connections suffice, no request needs a new one.
      requests: ['200', '200, 502 upstream-unreachable'],
      ...{ livez: '200', afterwards: '200', SIGTERM: 'drained' },
    },
  );
}

/** Opens more idle connections than the process has descriptors, first at the public port, then at the admin port. */
async function usedUpDescriptors(): Promise<Scene[]> {
  const shop = await startRestartingShop();
  const shopward = await startShopward({
    upstream: `http://127.0.0.1:${shop.port}`,
    launcher: ['sh', '-c', 'ulimit -n 256; exec "$@"', 'sh'],
  });
  const seen = [await crowd(shopward, 'public'), await crowd(shopward, 'admin')];
  const stopped = await stop(shopward);
  shop.close();
  return seen.map(({ port, ...answers }) =>
    checkScene(
      `descriptors used up by clients of the ${port} port`,
      { ...answers, SIGTERM: stopped },
      { requests: ['200', 'not asked'], livez: ['200', 'not asked'], afterwards: '200', SIGTERM: 'drained' },
    ),
  );
}

async function crowd(shopward: Shopward, port: 'public' | 'admin') {
  const idle = Array.from({ length: 400 }, () =>
    connect(port === 'public' ? shopward.port : shopward.adminPort, '127.0.0.1').on('error', () => {}),
  );
  await sleep(500);
  // At the crowded port itself, a new connection may be the one that is closed.
  const livez = port === 'admin' ? 'not asked' : await askLivez(shopward);
  const requests = port === 'public' ? 'not asked' : await askOpen(shopward);
  for (const socket of idle) socket.destroy();
  const works = async () => ((await askOpen(shopward)) === '200' ? '200' : undefined);
  return { port, livez, requests, afterwards: await eventually(`200 after the crowd at ${port}`, works) };
}

/** Clients with kept-alive connections that send the next request after each answer. */
function startLoad({ port }: Shopward) {
  const seen = new Set<string>();
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  let answers = 0;
  let isOver = false;
  const client = async () => {
    while (!isOver) {
      seen.add((await ask(port, { method: 'GET', path: '/stores/x' }, agent)).words);
      answers += 1;
    }
  };
  const running = Promise.all(Array.from({ length: clients }, client));
  return {
    /** Resolves after `count` more answers, or once a client hangs, since no more may come. */
    more: async (count: number) => {
      const enough = answers + count;
      while (answers < enough && !seen.has('hang')) await sleep(10);
    },
    /** Ends the load. Returns each kind of answer once. */
    stop: async () => {
      isOver = true;
      await running;
      agent.destroy();
      return [...seen].toSorted().join(', ');
    },
  };
}

async function askOpen({ port }: Shopward): Promise<string> {
  return (await ask(port, { method: 'GET', path: '/stores/x' })).words;
}

async function askLivez({ adminPort }: Shopward): Promise<string> {
  return String(
    await fetch(`http://127.0.0.1:${adminPort}/livez`, { signal: AbortSignal.timeout(5_000) }).then(
      ({ status }) => status,
      () => 'no answer',
    ),
  );
}

async function stop(shopward: Shopward): Promise<string> {
  const isDrained = await Promise.race([
    shopward.stop().then(
      () => true,
      () => false,
    ),
    sleep(40_000, false),
  ]);
  if (!isDrained) await shopward.kill();
  return isDrained ? 'drained' : 'killed';
}

interface RestartingShop {
  readonly port: number;
  closeListener(): Promise<void>;
  openListener(): Promise<void>;
  close(): void;
}

/**
 * Each connection ends after some answers, so that new ones are needed all the time. An answer takes so long that two
 * clients wait for each connection although the machine is almost idle.
 */
async function startRestartingShop(): Promise<RestartingShop> {
  const sockets = new Set<Socket>();
  let server: Server;
  // This port is not given away while the listener is closed.
  const port = await freePort();
  const take = (socket: Socket) => {
    let answers = 0;
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
    socket.on('data', () => {
      answers += 1;
      const isLast = answers === answersOfOne;
      const connection = isLast ? 'Connection: close\r\n' : '';
      setTimeout(() => {
        socket.write(
          `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${connection}Content-Length: 2\r\n\r\n{}`,
        );
        if (isLast) socket.end();
      }, 10);
    });
  };
  const listen = async () => {
    server = createServer({ noDelay: true }, take).listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  await listen();
  return {
    port,
    closeListener: async () => {
      server.close();
      while (server.listening) await sleep(1);
    },
    openListener: listen,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
