import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createAccessTokenMatcher } from '../../src/access/filter.ts';
import { compileProtectedList } from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { buildRejections, reject } from '../../src/http/rejection.ts';
import { RejectionBodies } from '../../src/http/rejection-bodies.ts';
import { Pipeline } from '../../src/proxy/pipeline.ts';
import { InFlight } from '../../src/server/in-flight.ts';
import { Listener } from '../../src/server/listener.ts';
import { createOwnFields } from '../../src/server/own-fields.ts';
import { createUpgradeHandler, type Handshake, refuseOtherThanHandshake } from '../../src/server/upgrade.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

const { list } = parseProtectedList('groups: { all: [ANY /**] }\ncomplete: true\n', 'list');
if (list === undefined) throw new Error('the list is broken');
const everything = compileProtectedList(list, { ignoredPrefixes: [] });

/** Nobody waits for a handshake: what it throws would end the process. */
it.each([
  [
    'throws',
    () => {
      throw new Error('a bug');
    },
  ],
  ['rejects', () => Promise.reject(new Error('a bug'))],
])('a handshake whose admission %s is 500, and a fault', async (_how, admit) => {
  const faults: unknown[] = [];
  const records: unknown[] = [];
  const listener = new Listener({
    host: '127.0.0.1',
    port: 0,
    keepAliveTimeoutMs: 1000,
    requestHeadersBytes: 16_384,
    rejectMalformed: (_why, socket) => socket.destroy(),
    handle: (_incoming, response) => {
      response.end();
      return undefined;
    },
    handleUpgrade: createUpgradeHandler(
      {
        inFlight: new InFlight({ limit: 10, sharePercent: 50 }),
        handle: new Pipeline<Handshake>({
          canonicalise: () => ({ ...accepted(sampleHead()), isWebSocketUpgrade: true }),
          rules: {
            endpoints: [],
            accessToken: { ...createAccessTokenMatcher(() => everything), run: admit },
            filters: [],
            observe: false,
          },
          readBody: () => Promise.reject(new Error('a handshake has no body')),
          forward: () => Promise.reject(reject('internal-error')),
        }).run,
      },
      {
        rejections: new RejectionBodies(buildRejections()),
        ownFields: createOwnFields(undefined),
        redactPath: () => '/',
        record: ({ decision, status, reason }) => records.push([decision, status, reason]),
        onFault: (fault) => faults.push(fault),
      },
    ),
  });
  const { port } = await listener.listen();
  const head = 'GET /ws HTTP/1.1\r\nHost: shop.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  expect((await exchangeRaw(port, head)).status).toBe(500);
  listener.server.close();
  expect(faults).toEqual([new Error('a bug')]);
  expect(records).toEqual([['refused', 500, 'fault']]);
});

it('where only a handshake may stand, any other request is refused', () => {
  const handshake = { ...accepted(sampleHead()), isWebSocketUpgrade: true };
  const refusal = reject('bad-host');
  expect(refuseOtherThanHandshake(handshake)).toBe(handshake);
  expect(refuseOtherThanHandshake(refusal)).toBe(refusal);
  const other = reject('bad-request', { reason: 'websocket' });
  expect(refuseOtherThanHandshake(accepted(sampleHead()))).toEqual(other);
});

describe('a handshake on its socket', () => {
  beforeEach(() => void vi.useFakeTimers({ now: 0 }));
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  /** A socket and the handshake on it; `handled` says whether it was given to the pipeline. */
  function begin(inFlight: InFlight, socket = new PassThrough()) {
    const records: unknown[] = [];
    let handled: Handshake | undefined;
    const upgrade = createUpgradeHandler(
      {
        inFlight,
        handle(handshake) {
          handled = handshake;
        },
      },
      {
        rejections: new RejectionBodies(buildRejections()),
        ownFields: createOwnFields(undefined),
        redactPath: () => '/',
        record: ({ decision, status, reason }) => records.push([decision, status, reason]),
        onFault: () => {},
      },
    );
    const incoming = { method: 'GET', url: '/', headers: {}, rawHeaders: [], socket };
    upgrade(incoming as unknown as IncomingMessage, socket, Buffer.alloc(0));
    return { socket, records, handled };
  }

  const newInFlight = () => new InFlight({ limit: 1, sharePercent: 100 });

  it('has a place from its beginning to the end of its socket, one more is refused', async () => {
    const inFlight = newInFlight();
    const first = begin(inFlight);
    const second = begin(inFlight);
    expect([first.handled !== undefined, second.handled, inFlight.count]).toEqual([true, undefined, 2]);
    expect([first.records, second.records]).toEqual([[], [['refused', 503, 'websockets']]]);
    expect(String(second.socket.read())).toMatch(/^HTTP\/1\.1 503 [\s\S]*\r\nRetry-After: 1\r\n/);
    await Promise.all([first, second].map(({ socket }) => once(socket.destroy(), 'close')));
    expect(inFlight.count).toBe(0);
  });

  it('leaves its place at once where the socket is gone already, and then has nothing to write to', async () => {
    const inFlight = newInFlight();
    const gone = new PassThrough();
    gone.destroy();
    const { handled, records } = begin(inFlight, gone);
    expect(inFlight.count).toBe(0);
    handled?.refuse(reject('internal-error'));
    handled?.refuse(reject('internal-error'));
    expect(records).toEqual([['aborted', 0, undefined]]);
  });

  const join = (expiresAtMs: number | undefined) => {
    const { handled, socket } = begin(newInFlight());
    const forwarder = { open: 0, close() {}, forward: () => new Promise<never>(() => {}) };
    const identity = expiresAtMs === undefined ? undefined : { expiresAtMs };
    void handled?.join(forwarder, accepted(sampleHead()), identity);
    return socket;
  };

  it('ends with its token, to the millisecond', () => {
    const socket = join(5000);
    vi.advanceTimersByTime(4999);
    expect(socket.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(socket.destroyed).toBe(true);
    expect([join(5000).destroyed, join(5001).destroyed]).toEqual([true, false]);
  });

  it('has no clock where it has no token, nor when its socket is closed', () => {
    join(undefined);
    expect(vi.getTimerCount()).toBe(0);
    const socket = join(5000);
    expect(vi.getTimerCount()).toBe(1);
    socket.emit('close');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('of a token that lives longer than a timer of node is looked at in between', () => {
    const longestMs = 2_147_483_647;
    const set = vi.spyOn(globalThis, 'setTimeout');
    const socket = join(longestMs + 10);
    vi.advanceTimersByTime(longestMs);
    expect([socket.destroyed, set.mock.calls.map(([, delayMs]) => delayMs)]).toEqual([
      ...[false, [longestMs, 10]],
    ]);
    vi.advanceTimersByTime(10);
    expect(socket.destroyed).toBe(true);
  });
});
