import { afterEach, expect, it } from 'vitest';
import { createAccessTokenMatcher } from '../../src/access/filter.ts';
import { compileProtectedList } from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { buildRejections, reject } from '../../src/http/rejection.ts';
import { RejectionBodies } from '../../src/http/rejection-bodies.ts';
import { createPipeline } from '../../src/proxy/pipeline.ts';
import { InFlight } from '../../src/server/in-flight.ts';
import { createListener } from '../../src/server/listener.ts';
import { createOwnFields } from '../../src/server/own-fields.ts';
import { createUpgradeHandler, type Handshake } from '../../src/server/upgrade.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

const { list } = parseProtectedList('groups: { all: [ANY /**] }\ncomplete: true\n', 'list');
if (list === undefined) throw new Error('the list is broken');
const everything = compileProtectedList(list, { ignoredPrefixes: [] });

let close: () => void;
afterEach(() => close());

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
  const listener = createListener({
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
        handle: createPipeline<Handshake>({
          canonicalise: () => ({ ...accepted(sampleHead()), isWebSocketUpgrade: true }),
          rules: {
            endpoints: [],
            accessToken: { ...createAccessTokenMatcher(() => everything), run: admit },
            filters: [],
            observe: false,
          },
          readBody: () => Promise.reject(new Error('a handshake has no body')),
          forward: () => Promise.reject(reject('internal-error')),
        }),
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
  close = () => listener.server.close();
  const head = 'GET /ws HTTP/1.1\r\nHost: shop.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  expect((await exchangeRaw(port, head)).status).toBe(500);
  expect(faults).toEqual([new Error('a bug')]);
  expect(records).toEqual([['refused', 500, 'fault']]);
});
