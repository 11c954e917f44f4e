import { createServer } from 'node:http';
import { createKeptClient, type KeptClient } from '../../../harness/kept-client.ts';
import { listen } from '../../../harness/listen.ts';
import type { RunningShopward, ShopwardOptions } from '../../../harness/shopward.ts';
import { startShopwardHere } from '../../../harness/shopward-here.ts';
import type { Action, ArrivedRequest, PairShop } from './pair-shop.ts';
import { type ClientRequest, usedToken } from './shop-requests.ts';
import {
  isExchange,
  isProtectedBy,
  isTrackedWrite,
  type ListName,
  listFileOf,
  shopRoutes,
} from './shop-routes.ts';

/** An action that the shop would run although shopward had to prevent it. */
export interface Finding {
  readonly kind:
    | 'protected action without a token'
    | 'tracked write without If-Match'
    | 'used token exchanged';
  readonly list: ListName;
  readonly action: Action;
  /** Method and target as they arrived at the shop. */
  readonly line: string;
}

/** Counts of all requests so far. */
export interface Counts {
  /** Requests sent to shopward. */
  requests: number;
  forwarded: number;
  /** Forwarded requests that run an action. */
  acted: number;
  /** Answers by status, whether of shopward or the shop; 0: no answer. */
  readonly statuses: Record<number, number>;
}

/** The real proxy with one list, in front of an upstream that records each request. */
export interface ForwardingStage {
  readonly counts: Counts;
  send(requests: readonly ClientRequest[]): Promise<readonly Finding[]>;
  close(): Promise<void>;
}

const clientCount = 8;

interface StageOptions {
  /** Settings that differ from the shipped ones. */
  readonly config?: object;
  /** Starts shopward. Default: in this process. In its own process, `close` also checks the exit code. */
  readonly start?: (options: ShopwardOptions) => Promise<RunningShopward>;
}

export async function openStage(
  list: ListName,
  shop: PairShop,
  { config = {}, start = startShopwardHere }: StageOptions = {},
): Promise<ForwardingStage> {
  const upstream = await startUpstream();
  const shopward = await start({
    upstream: `http://127.0.0.1:${upstream.port}`,
    listFile: listFileOf(list),
    // With the default, shopward leaves a used token of an OAuth endpoint to the shop.
    config: { refreshTokens: { replay: 'refuse' }, ...config },
  });
  const accessToken = shopward.issueToken();
  const counts: Counts = { requests: 0, forwarded: 0, acted: 0, statuses: {} };
  const clients: KeptClient[] = Array.from({ length: clientCount }, () => createKeptClient(shopward.port));
  await exchangeOnce(clients[0] as KeptClient);
  upstream.arrived.length = 0;

  const findingsOf = (
    { method, target, fields }: ArrivedRequest,
    actions: readonly Action[],
    tokens: readonly string[],
  ) =>
    actions.flatMap((action): Finding[] => {
      const line = `${method} ${target}`;
      const hasToken = fields.includes(`Bearer ${accessToken}`);
      const found: Finding[] = [];
      const find = (kind: Finding['kind']) => found.push({ kind, list, action, line });
      if (!hasToken && isProtectedBy(list, action)) find('protected action without a token');
      // No request was sent with `If-Match`, so shopward cannot have removed it.
      if (isTrackedWrite(action)) find('tracked write without If-Match');
      if (isExchange(action) && tokens.includes(usedToken)) find('used token exchanged');
      return found;
    });

  return {
    counts,
    async send(requests) {
      const waiting = requests.values();
      const sendSome = async (_: unknown, index: number) => {
        for (const one of waiting) {
          const status = await exchange(clients, index, shopward.port, octetsOf(one, accessToken));
          counts.statuses[status] = (counts.statuses[status] ?? 0) + 1;
        }
      };
      await Promise.all(clients.map(sendSome));
      const arrived = upstream.arrived.splice(0);
      const interpretations = await shop.interpret(arrived);
      counts.requests += requests.length;
      counts.forwarded += arrived.length;
      counts.acted += interpretations.filter(({ actions }) => actions.length > 0).length;
      return interpretations.flatMap(({ actions, tokens }, i) =>
        findingsOf(arrived[i] as ArrivedRequest, actions, tokens),
      );
    },
    async close() {
      for (const client of clients) client.close();
      await shopward.stop();
      await upstream.close();
    },
  };
}

/** The status; 0: the connection ended without one. */
async function exchange(clients: KeptClient[], index: number, port: number, octets: string): Promise<number> {
  try {
    return (await (clients[index] as KeptClient).exchange(octets)).status;
  } catch {
    clients[index]?.close();
    clients[index] = createKeptClient(port);
    return 0;
  }
}

function octetsOf({ method, target, fields, body, isSignedIn }: ClientRequest, accessToken: string): string {
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: shop.example', 'Accept: */*', ...fields];
  if (isSignedIn) lines.push(`Authorization: Bearer ${accessToken}`);
  if (body !== '') lines.push(`Content-Length: ${body.length}`);
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

const firstExchange = '/refresh-tokens?first';

/** Records each request, grants the first exchange and answers 404 to the rest. */
async function startUpstream() {
  const arrived: ArrivedRequest[] = [];
  const server = createServer(async (incoming, response) => {
    const { method = '', url = '', rawHeaders } = incoming;
    const chunks: Buffer[] = await incoming.toArray();
    const body = Buffer.concat(chunks);
    arrived.push({ method, target: url, fields: rawHeaders, body: body.toString('base64') });
    response.setHeader('Content-Type', 'application/vnd.api+json');
    if (url !== firstExchange) {
      response.writeHead(404).end('{"errors":[{"status":404,"detail":"Not Found"}]}');
      return;
    }
    const attributes = { tokenType: 'Bearer', expiresIn: 28800, accessToken: 'a.b.c', refreshToken: 'next' };
    response.writeHead(201).end(JSON.stringify({ data: { type: 'refresh-tokens', id: null, attributes } }));
  });
  return { ...(await listen(server)), arrived };
}

async function exchangeOnce(client: KeptClient): Promise<void> {
  const body = JSON.stringify({ data: { type: 'refresh-tokens', attributes: { refreshToken: usedToken } } });
  const fields = ['Content-Type: application/vnd.api+json'];
  const first = { method: 'POST', target: firstExchange, fields, body, isSignedIn: false };
  const { status } = await client.exchange(octetsOf(first, ''));
  if (status !== 201) throw new Error(`the first exchange: ${status}`);
}

/** A finding in words. */
export function describeFinding({ kind, list, action, line }: Finding): string {
  const { method = '', parents = [], type = '' } = shopRoutes[action.route] ?? {};
  const route = `${method} ${[...parents, type].join('/')}`;
  return `${kind} (${list} list): ${JSON.stringify(line)} runs ${route} ${JSON.stringify(action)}`;
}
