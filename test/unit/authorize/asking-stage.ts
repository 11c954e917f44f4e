import { connect, createServer, type Server, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Asked, Front } from '../../end-to-end/deploy/front.ts';
import { freePort } from '../../harness/free-port.ts';
import { listen } from '../../harness/listen.ts';
import { type HereOptions, startShopwardHere } from '../../harness/shopward-here.ts';

export type AskingStage = Awaited<ReturnType<typeof startAskingStage>>;

interface Question {
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
  readonly status: number;
}

/** A front that asks shopward and forwards to the shop itself. */
export async function startAskingStage(
  start: (ports: Asked) => Promise<Front>,
  shop: number,
  { isPlain, ...options }: Omit<HereOptions, 'upstream'> & Pick<Asked, 'isPlain'> = {},
) {
  const authorize = await freePort();
  const shopward = await startShopwardHere({
    ...options,
    upstream: `http://127.0.0.1:${shop}`,
    config: {
      trustedProxies: ['127.0.0.1/32'],
      authorize: { listen: { port: authorize } },
      auth: { forward: { subject: 'X-User' } },
      ...options.config,
    },
  });
  /** The questions of the front, with the status of each answer. */
  const questions: Question[] = [];
  const asked = await listen(startWitness(authorize, questions));
  const front = await start({ shop, authorize: asked.port, isPlain });
  const tunnel = await listen(
    createServer((client) =>
      join(client, connectTls({ host: '127.0.0.1', port: front.port, rejectUnauthorized: false })),
    ),
  );
  return {
    /** Port without TLS, also of a front that has a TLS port. */
    port: isPlain ? front.port : tunnel.port,
    tlsPort: front.port,
    shopward,
    questions,
    async close() {
      await front.close();
      await shopward.stop();
      await Promise.all([tunnel.close(), asked.close()]);
    },
  };
}

/** A relay between the front and shopward: passes all octets on unchanged, and reads both directions. */
function startWitness(authorize: number, questions: Question[]): Server {
  return createServer((front) => {
    const shopward = connect(authorize, '127.0.0.1');
    let [asked, answered, count] = ['', '', 0];
    front.on('data', (octets) => {
      asked += octets.toString('latin1');
    });
    shopward.on('data', (octets) => {
      answered += octets.toString('latin1');
      const statuses = [...answered.matchAll(/HTTP\/1\.1 (\d{3}) /g)];
      const heads = asked.split('\r\n\r\n');
      for (; count < statuses.length; count += 1)
        questions.push({ ...readHead(heads[count] ?? ''), status: Number(statuses[count]?.[1]) });
    });
    join(front, shopward);
  });
}

/** Reads fields of either kind; shopward answers 400 to a question with both. */
function readHead(head: string) {
  const field = (name: string) =>
    new RegExp(`^x-(?:original|forwarded)-${name}: (.*?)\r?$`, 'im').exec(head)?.[1] ?? '';
  const host = field('host') || /^host: (.*?)\r?$/im.exec(head)?.[1];
  return { method: field('method'), target: field('uri'), host };
}

function join(one: Socket, other: Socket): void {
  for (const socket of [one, other]) socket.on('error', () => [one, other].map((each) => each.destroy()));
  one.pipe(other).pipe(one);
}
