import { readdirSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, test as base, beforeAll, expect, vi } from 'vitest';
import { exchangeRaw, openRawConnection, type RawConnection, type RawResponse } from './raw-client.ts';
import { answer, type RecordingUpstream, type Script, startRecordingUpstream } from './recording-upstream.ts';
import { type RunningShopward, type Shopward, type ShopwardOptions, startShopward } from './shopward.ts';
import { type HereOptions, startShopwardHere } from './shopward-here.ts';

export interface AttackStageOptions extends Omit<HereOptions, 'upstream'> {
  /** What the upstream answers. Default: a short 200. */
  readonly script?: Script;
  /** Texts that must never be printed. Tokens are always among them. */
  readonly secrets?: readonly string[];
  /** Starts a process for this file and looks for secrets in its whole output. Default: a proxy in this process. */
  readonly asProcess?: boolean;
}

/** One proxy in front of one upstream that records every byte, for all tests of a file. */
export interface AttackStage {
  readonly shopward: RunningShopward;
  readonly upstream: RecordingUpstream;
  readonly port: number;
  /** Sends the bytes on a new connection, which the caller reads and closes. */
  send(bytes: string): Promise<RawConnection>;
  /**
   * Sends the bytes on a new connection. The proxy must answer with this status and code, and send the upstream no byte.
   */
  refuses(bytes: string, status: number, code: string): Promise<RawResponse>;
  /** Like `refuses`, with 401 and code 002: for requests without a token to the shipped list. */
  demandsToken(bytes: string): Promise<RawResponse>;
  /** Sends the bytes on a new connection: they must reach the upstream as one request. */
  passes(bytes: string): Promise<Passed>;
}

export interface Passed {
  readonly response: RawResponse;
  /** The request line that the upstream read. */
  readonly requestLine: string;
  /** Request line and fields, as the upstream read them. */
  readonly head: string;
  /** Values of a field in the upstream's order. */
  fields(name: string): string[];
}

const metadata = 'resource_metadata="http://shop.example/.well-known/oauth-protected-resource"';
/** The challenge to a request without credentials: it names no error (RFC 6750, section 3.1). */
export const bareChallenge = `Bearer realm="Access to shop API", ${metadata}`;
export const invalidTokenChallenge = `Bearer realm="Access to shop API", error="invalid_token", ${metadata}`;

/** A request without anything suspicious. */
export function request(
  line: string,
  fields: readonly string[] = [],
  body = '',
  host = 'shop.example',
): string {
  return [`${line} HTTP/1.1`, `Host: ${host}`, ...fields, '', body].join('\r\n');
}

/** Each JSON Web Token begins with these letters. */
const tokenStart = 'eyJ';
const marker = 'GET /is-still-alive';
/** Path of requests whose first bytes may reach the upstream before their body proves malformed or too large. */
export const streamed = '/streamed';

/** A proxy and its upstream. */
interface ProxyAndUpstream {
  readonly shopward: RunningShopward;
  readonly upstream: RecordingUpstream;
  /** The script of the current test file. */
  script: Script;
}

/** A process, its upstream, and how many sockets it has without any client. */
export interface Pair extends ProxyAndUpstream {
  readonly shopward: Shopward;
  readonly socketsAtRest: number;
}

export async function startPair(options: Omit<ShopwardOptions, 'upstream'> = {}): Promise<Pair> {
  const upstream = await startRecordingUpstream((received) => pair.script(received));
  const shopward = await startShopward({ ...options, upstream: `http://127.0.0.1:${upstream.port}` });
  const pair: Pair = { shopward, upstream, script: () => undefined, socketsAtRest: countSockets(shopward) };
  return pair;
}

/** Like `startPair`, in this process. */
async function startHere(options: Omit<HereOptions, 'upstream'>): Promise<ProxyAndUpstream> {
  const upstream = await startRecordingUpstream((received) => here.script(received));
  const shopward = await startShopwardHere({ ...options, upstream: `http://127.0.0.1:${upstream.port}` });
  const here: ProxyAndUpstream = { shopward, upstream, script: () => undefined };
  return here;
}

async function stop({ shopward, upstream }: ProxyAndUpstream): Promise<void> {
  await upstream.close();
  await shopward.stop();
}

/**
 * Test files without settings of their own share one pair per worker, because a start costs more than their tests.
 * Vitest does not report failures at the end of a worker, so `expectRest` checks at the end of each file.
 */
const test = base.extend<{ sharedPair: Pair }>({
  sharedPair: [
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern what a fixture needs.
    async ({}, use) => {
      const pair = await startPair();
      await use(pair);
      await stop(pair);
    },
    { scope: 'worker' },
  ],
});

/**
 * Once clients and shop have closed their connections, the process must have no request, connection, queue entry or
 * socket left, so that a drain would end and the next file starts clean.
 */
export async function expectRest(
  { shopward, upstream, socketsAtRest }: Pair,
  patienceMs = 30_000,
): Promise<void> {
  const connections = upstream.connections.splice(0);
  for (const { socket } of connections) socket.destroy();
  await Promise.all(connections.map(({ closed }) => closed));
  const look = async () => {
    const { body } = await exchangeRaw(shopward.adminPort, request('GET /metrics', [], '', 'localhost'));
    const left = gaugesOfRest.map((name) => {
      const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(body.toString())?.[1];
      return value === '0' ? [] : [`${name} ${value}`];
    });
    const sockets = countSockets(shopward) - socketsAtRest;
    const all = [...left.flat(), ...(sockets === 0 ? [] : [`sockets ${sockets}`])];
    if (all.length > 0) throw new Error(`left of the file: ${all.join(', ')}`);
  };
  await vi.waitFor(look, { timeout: patienceMs, interval: 20 });
  upstream.requestLines.length = 0;
}

const gaugesOfRest = [
  'http_server_active_requests',
  'shopward_connections',
  'shopward_upstream_active_requests',
  'shopward_upstream_queue',
];

function countSockets({ pid }: Shopward): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((name) => isSocket(path.join(folder, name))).length;
}

/** False if the descriptor was closed meanwhile. */
function isSocket(file: string): boolean {
  try {
    return readlinkSync(file).startsWith('socket:');
  } catch {
    return false;
  }
}

/**
 * The stage for the tests of a file. After each test the proxy must answer, and the upstream must have got no
 * unexpected byte. At the end no request may be left, and no secret printed. A file with settings has its own proxy in
 * this process (an uncaught exception fails the run), which must drain cleanly.
 */
export function useAttackStage({
  script,
  secrets = [],
  asProcess = false,
  ...options
}: AttackStageOptions = {}): AttackStage {
  let shared: Pair | undefined;
  let own: ProxyAndUpstream | undefined;
  let shopward: RunningShopward;
  let upstream: RecordingUpstream;
  const heads: string[] = [];
  const opened: RawConnection[] = [];
  const isShared = Object.keys(options).length === 0;

  const begin = (its: ProxyAndUpstream) => {
    shopward = its.shopward;
    upstream = its.upstream;
    its.script = (received) => {
      heads.push(received.head);
      if (received.head.startsWith(marker)) return answer();
      return script?.(received) ?? answer(received.head.startsWith('HEAD ') ? '' : 'ok');
    };
  };
  if (isShared) {
    test.beforeAll(async ({ sharedPair }) => {
      shared = sharedPair;
      begin(shared);
      shopward = await sinceNow(shared.shopward);
    });
  } else {
    beforeAll(async () => {
      own = await (asProcess ? startPair(options) : startHere(options));
      begin(own);
    });
  }
  afterEach(async () => {
    expect(shared?.shopward.exitCode ?? null, shopward.output()).toBe(null);
    const { length } = upstream.requestLines;
    expect((await exchangeRaw(shopward.port, request(marker))).status).toBe(200);
    const late = upstream.requestLines.slice(length).filter((line) => !line.includes(streamed));
    expect(late).toEqual([`${marker} HTTP/1.1`]);
  });
  afterAll(async () => {
    for (const connection of opened) connection.close();
    if (shared !== undefined) await expectRest(shared);
    else if (own !== undefined) await stop(own);
    else return;
    for (const secret of [tokenStart, ...secrets]) expect(shopward.output()).not.toContain(secret);
    expect(shopward.log().filter(({ event }) => event === 'crash' || event === 'fault')).toEqual([]);
  });

  const stage: AttackStage = {
    get shopward() {
      return shopward;
    },
    get upstream() {
      return upstream;
    },
    get port() {
      return shopward.port;
    },
    send: async (bytes) => {
      const connection = await openRawConnection(shopward.port);
      if (isShared) opened.push(connection);
      await connection.write(bytes);
      return connection;
    },
    refuses: async (bytes, status, code) => {
      const before = upstream.octets;
      const method = /^\S*/.exec(bytes)?.[0];
      const response = await exchangeRaw(shopward.port, bytes, method);
      expectRejection(response, status, code, method);
      if (upstream.octets !== before) expect.fail(`the upstream got something: ${upstream.bytes()}`);
      return response;
    },
    demandsToken: (bytes) => stage.refuses(bytes, 401, '002'),
    passes: async (bytes) => {
      const { length } = heads;
      const connection = await stage.send(bytes);
      try {
        let response = await connection.readResponse(/^\S*/.exec(bytes)?.[0]);
        if (response.status === 100) response = await connection.readResponse();
        const [head = '', ...more] = heads.slice(length);
        expect(head, `${response.status} ${response.body}`).not.toBe('');
        expect(more).toEqual([]);
        const fields = (name: string) => fieldsOf(head, name);
        return { response, head, fields, requestLine: head.slice(0, head.indexOf('\r\n')) };
      } finally {
        connection.close();
      }
    },
  };
  return stage;
}

/** The process, with a log that begins now: lines of all earlier requests are left out. */
async function sinceNow(shopward: RunningShopward): Promise<RunningShopward> {
  const { length } = shopward.log();
  const beginning = '/a-file-begins';
  expect((await exchangeRaw(shopward.port, request(`GET ${beginning}`))).status).toBe(200);
  const line = await shopward.waitForLog(({ path: asked }) => asked === beginning, length);
  const skipped = shopward.log().findLastIndex(({ requestId }) => requestId === line.requestId) + 1;
  return {
    ...shopward,
    log: () => shopward.log(skipped),
    waitForLog: (isWanted) => shopward.waitForLog(isWanted, skipped),
  };
}

/** Checks the error body, which is the same for all refusals. */
export function expectRejection(response: RawResponse, status: number, code: string, method = 'GET'): void {
  const body = method === 'HEAD' ? undefined : JSON.parse(response.body.toString());
  expect({ status: response.status, code: body?.errors[0].code ?? code }).toEqual({ status, code });
  expect(response.field('content-type')).toBe('application/vnd.api+json');
  if (body !== undefined) expect(body).toEqual({ errors: [{ detail: expect.any(String), status, code }] });
}

function fieldsOf(head: string, name: string): string[] {
  const lines = head.split('\r\n').slice(1, -2);
  const own = lines.filter((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`));
  return own.map((line) => line.slice(name.length + 1).trim());
}
