import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { exchangeRaw, openRawConnection, type RawConnection, type RawResponse } from './raw-client.ts';
import { answer, type RecordingUpstream, type Script, startRecordingUpstream } from './recording-upstream.ts';
import { type Shopward, type ShopwardOptions, startShopward } from './shopward.ts';

export interface AttackStageOptions extends Omit<ShopwardOptions, 'upstream'> {
  /** What the upstream answers. Default: a short 200. */
  readonly script?: Script;
  /** What must never be printed. Tokens never may. */
  readonly secrets?: readonly string[];
}

/** One proxy in front of one upstream that records every byte, for all tests of a file. */
export interface AttackStage {
  readonly shopward: Shopward;
  readonly upstream: RecordingUpstream;
  readonly port: number;
  /** Sends the bytes on a new connection, which is the caller's to read and to close. */
  send(bytes: string): Promise<RawConnection>;
  /** Sends the bytes on a connection of their own: they must be refused so, and the upstream get no byte of them. */
  refuses(bytes: string, status: number, code: string): Promise<RawResponse>;
  /** The same for the methods and paths of the shipped list: without a token, 401 and code 002. */
  demandsToken(bytes: string): Promise<RawResponse>;
  /** Sends the bytes on a connection of their own: they must reach the upstream, as one request. */
  passes(bytes: string): Promise<Passed>;
}

export interface Passed {
  readonly response: RawResponse;
  /** As the upstream read it. */
  readonly requestLine: string;
  /** Request line and fields, as the upstream read them. */
  readonly head: string;
  /** Values of a field in the upstream's order. */
  fields(name: string): string[];
}

const metadata = 'resource_metadata="http://shop.example/.well-known/oauth-protected-resource"';
/** Of a request without credentials: it says nothing about an error (RFC 6750, section 3.1). */
export const bareChallenge = `Bearer realm="Access to shop API", ${metadata}`;
export const invalidTokenChallenge = `Bearer realm="Access to shop API", error="invalid_token", ${metadata}`;

/** A request without anything suspicious. */
export function request(line: string, fields: readonly string[] = [], body = ''): string {
  return [`${line} HTTP/1.1`, 'Host: shop.example', ...fields, '', body].join('\r\n');
}

/** Of every JSON Web Token the first letters. */
const tokenStart = 'eyJ';
const marker = 'GET /is-still-alive';
/** Path of requests that may have begun to arrive at the upstream when their body turns out to be malformed. */
export const streamed = '/streamed';

/**
 * Starts the stage for the tests of a file. After each test the same process must answer, and the upstream must have
 * got nothing behind the test's back; at the end the process must drain cleanly, and none of the secrets be printed.
 */
export function useAttackStage({ script, secrets = [], ...options }: AttackStageOptions = {}): AttackStage {
  let shopward: Shopward;
  let upstream: RecordingUpstream;
  const heads: string[] = [];

  beforeAll(async () => {
    upstream = await startRecordingUpstream((received) => {
      heads.push(received.head);
      if (received.head.startsWith(marker)) return answer();
      return script?.(received) ?? answer(received.head.startsWith('HEAD ') ? '' : 'ok');
    });
    shopward = await startShopward({ ...options, upstream: `http://127.0.0.1:${upstream.port}` });
  });
  afterEach(async () => {
    expect(shopward.exitCode, shopward.output()).toBe(null);
    const { length } = upstream.requestLines;
    expect((await exchangeRaw(shopward.port, request(marker))).status).toBe(200);
    const late = upstream.requestLines.slice(length).filter((line) => !line.includes(streamed));
    expect(late).toEqual([`${marker} HTTP/1.1`]);
  });
  afterAll(async () => {
    await upstream?.close();
    if (shopward === undefined) return;
    await shopward.stop();
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
      await connection.write(bytes);
      return connection;
    },
    refuses: async (bytes, status, code) => {
      const before = upstream.bytes();
      const method = /^\S*/.exec(bytes)?.[0];
      const response = await exchangeRaw(shopward.port, bytes, method);
      expectRejection(response, status, code, method);
      expect(upstream.bytes()).toBe(before);
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

/** The one error body (design, section 11). */
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
