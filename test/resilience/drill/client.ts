import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OutageShop } from '../faults/shop.ts';
import type { Kind, Tally } from './tally.ts';

/** What a client needs to use one replica. */
export interface Front {
  readonly port: number;
  readonly token: string;
  readonly isTls?: boolean;
}

export interface ClientOptions {
  readonly name: string;
  /** The cart that the client writes; other clients may write it, too. */
  readonly cart: string;
  /** The replicas that accept requests now; the client uses them in turn. */
  readonly fronts: () => readonly Front[];
  readonly tally: Tally;
  readonly shop: Pick<OutageShop, 'hasExchanged' | 'noteLost'>;
  readonly pauseMs: number;
  /** Offset of the rounds in which the client refreshes, so that clients do so at different times. */
  readonly offset: number;
}

interface Answer {
  /** 0: no answer. */
  readonly status: number;
  readonly code: string | undefined;
  readonly tag: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly attributes: { readonly version?: number; readonly refreshToken?: string };
}

interface Known {
  readonly tag: string;
  readonly version: number;
}

/** Longest wait for one answer. */
const patienceMs = 10_000;
const pauseWithoutWordMs = 500;

/**
 * A correct client: repeats after `Retry-After`, keeps the tag of what it has read, reads again after a 412
 * or if the outcome of a write is unknown, and has one refresh at a time in progress.
 */
export class OutageClient {
  readonly #options: ClientOptions;
  readonly #agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) };
  #offset = 0;
  #known: Known | undefined;
  #refreshToken: string;
  #logins = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#refreshToken = `${options.name}-0`;
  }

  /** Reads, writes and refreshes until `isOver`. Completes what it has begun, unless `giveUp` is aborted. */
  async run(isOver: () => boolean, giveUp: AbortSignal): Promise<void> {
    for (let round = 0; !isOver(); round += 1) {
      // Clients refresh in different rounds, so that each fault affects every kind of request.
      if ((round + this.#options.offset) % 4 === 3) await this.#refresh(giveUp);
      await this.#wish('read', giveUp, () => this.#read());
      await this.#wish('write', giveUp, () => this.#write());
      await sleep(this.#options.pauseMs);
    }
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }

  /** Repeats `tryOnce` until it returns undefined (done) instead of the milliseconds to wait before the next try. */
  async #wish(kind: Kind, giveUp: AbortSignal, tryOnce: () => Promise<number | undefined>): Promise<void> {
    const wantedMs = performance.now();
    for (;;) {
      const waitMs = await tryOnce();
      if (waitMs === undefined) return this.#options.tally.succeed(kind, wantedMs);
      if (giveUp.aborted) {
        this.#options.tally.wrongs.push(`${this.#options.name}: no ${kind} until the end`);
        return;
      }
      await sleep(waitMs);
    }
  }

  async #read(): Promise<number | undefined> {
    const answer = await this.#send('read', 'GET', `/carts/${this.#options.cart}`);
    const { version } = answer.attributes;
    this.#known =
      answer.tag === undefined || version === undefined ? undefined : { tag: answer.tag, version };
    return answer.status === 200 ? undefined : waitOf(answer);
  }

  async #write(): Promise<number | undefined> {
    const waitMs = this.#known === undefined ? await this.#read() : undefined;
    const known = this.#known;
    // The read had no tag: the store is new or cannot be reached.
    if (known === undefined) return waitMs ?? pauseWithoutWordMs;
    const answer = await this.#send('write', 'PATCH', `/carts/${this.#options.cart}`, {
      ifMatch: known.tag,
      body: { basedOn: known.version },
    });
    const { version } = answer.attributes;
    const isRefused = answer.status === 503;
    if (isRefused) return waitOf(answer);
    this.#known =
      answer.status === 200 && answer.tag !== undefined && version !== undefined
        ? { tag: answer.tag, version }
        : undefined;
    if (answer.status === 200) return undefined;
    return answer.status === 412 ? 0 : waitOf(answer);
  }

  async #refresh(giveUp: AbortSignal): Promise<void> {
    await this.#wish('refresh', giveUp, async () => {
      const refreshToken = this.#refreshToken;
      const body = { data: { type: 'refresh-tokens', attributes: { refreshToken } } };
      const answer = await this.#send('refresh', 'POST', '/refresh-tokens', { body });
      const next = answer.attributes.refreshToken;
      if (answer.status === 201 && next !== undefined) {
        this.#refreshToken = next;
        return undefined;
      }
      if (answer.status !== 401 && answer.status !== 503) this.#options.shop.noteLost(refreshToken);
      if (answer.status !== 401) return waitOf(answer);
      if (!this.#options.shop.hasExchanged(refreshToken)) {
        this.#options.tally.wrongs.push('401 for a refresh token that never reached the shop');
      }
      // The answer of an exchange was lost, so the user logs in again.
      this.#logins += 1;
      this.#refreshToken = `${this.#options.name}-${this.#logins}`;
      return 0;
    });
  }

  async #send(
    kind: Kind,
    method: string,
    path: string,
    more: { readonly ifMatch?: string; readonly body?: object } = {},
  ): Promise<Answer> {
    const fronts = this.#options.fronts();
    this.#offset += 1;
    const front = fronts[this.#offset % fronts.length];
    if (front === undefined) throw new Error('no replica takes requests');
    const answer = await send(front, this.#agents, method, path, more);
    const words = answer.status === 0 ? 'no answer' : [answer.status, answer.code].filter(Boolean).join(' ');
    this.#options.tally.note(kind, words);
    return answer;
  }
}

function waitOf({ retryAfterMs }: Answer): number {
  return retryAfterMs ?? pauseWithoutWordMs;
}

function send(
  { port, token, isTls = false }: Front,
  agents: { readonly http: HttpAgent; readonly https: HttpsAgent },
  method: string,
  path: string,
  { ifMatch, body }: { readonly ifMatch?: string; readonly body?: object },
): Promise<Answer> {
  const text = body === undefined ? '' : JSON.stringify(body);
  const headers = {
    Host: 'shop.example',
    Authorization: `Bearer ${token}`,
    ...(ifMatch !== undefined && { 'If-Match': ifMatch }),
    ...(body !== undefined && { 'Content-Type': 'application/vnd.api+json', 'Content-Length': text.length }),
  };
  const at = { host: '127.0.0.1', port, method, path, headers };
  return new Promise((resolve) => {
    const fail = () =>
      resolve({ status: 0, code: undefined, tag: undefined, retryAfterMs: undefined, attributes: {} });
    const take = (response: IncomingMessage) => void readAnswer(response).then(resolve, fail);
    const request = isTls
      ? httpsRequest({ ...at, agent: agents.https, rejectUnauthorized: false }, take)
      : httpRequest({ ...at, agent: agents.http }, take);
    request.setTimeout(patienceMs, () => request.destroy());
    request.on('error', fail);
    request.end(text);
  });
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  const document = JSON.parse(text);
  const seconds = response.headers['retry-after'];
  return {
    status: response.statusCode ?? 0,
    code: document.errors?.[0]?.code,
    tag: response.headers.etag,
    retryAfterMs: seconds === undefined ? undefined : Number(seconds) * 1000,
    attributes: document.data?.attributes ?? {},
  };
}
