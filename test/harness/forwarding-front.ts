import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterAll, describe } from 'vitest';
import type { CanonicalRequest, Method } from '../../src/http/canonical-request.ts';
import { buildRejections } from '../../src/http/rejection.ts';
import { RejectionBodies } from '../../src/http/rejection-bodies.ts';
import { writeRejection } from '../../src/http/write-response.ts';
import { ClientMessage } from '../../src/server/client-message.ts';
import { InFlight } from '../../src/server/in-flight.ts';
import { createUpstreamClient } from '../../src/upstream/client.ts';
import type { ForwardResult } from '../../src/upstream/forward.ts';
import { createForwarder, type ForwarderOptions } from '../../src/upstream/forwarder.ts';
import type { ForwardOutcome, ResponseEdits, UpstreamHooks } from '../../src/upstream/hooks.ts';
import type { ClientOptions } from '../../src/upstream/port.ts';
import { listen } from './listen.ts';
import { canonicalRequest } from './run-filter.ts';
import { type RecordingUpstream, type Script, startRecordingUpstream } from './recording-upstream.ts';

export interface FrontOptions extends Partial<Omit<ForwarderOptions, 'client' | 'streamingBodies'>> {
  readonly connections?: number;
  readonly upstreamPort: number;
  readonly scheme?: 'http' | 'https';
  readonly client?: Partial<ClientOptions>;
  readonly hooks?: (request: CanonicalRequest) => UpstreamHooks | undefined;
  /** Changes the request that the forwarder gets. */
  readonly edit?: (request: CanonicalRequest) => CanonicalRequest;
}

export type ForwardingFront = Awaited<ReturnType<typeof startFront>>;

/** A `node:http` server whose only step is the forwarder: nothing is canonicalised or decided. */
export async function startFront(options: FrontOptions) {
  const { upstreamPort, client: clientOptions, hooks, edit, connections = 16, ...more } = options;
  const client = createUpstreamClient({
    queueLimit: 1_000,
    queueTimeoutMs: 60_000,
    upstream: { scheme: options.scheme ?? 'http', hostname: '127.0.0.1', port: upstreamPort },
    connectTimeoutMs: 30_000,
    connections,
    ...clientOptions,
  });
  const forwarder = createForwarder({
    responseTimeoutMs: 60_000,
    bodyLimitBytes: 2_097_152,
    bodyTimeoutMs: 60_000,
    writeStallTimeoutMs: 60_000,
    ...more,
    streamingBodies: new InFlight({ limit: Math.max(1, Math.floor(connections / 2)), sharePercent: 100 }),
    client,
  });
  const rejections = new RejectionBodies(buildRejections());
  /** Results of all forwarded requests, in the order in which they ended. */
  const results: ForwardResult[] = [];
  let wake: () => void = () => {};
  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const request = edit === undefined ? requestOf(incoming) : edit(requestOf(incoming));
    const conclude = (result: ForwardResult) => {
      if (result.rejection !== undefined) writeRejection(incoming, response, result.rejection, rejections);
      results.push(result);
      wake();
    };
    await forwarder.forward({ request, incoming, response, hooks: hooks?.(request) }, { conclude });
  };
  const server = createServer({
    IncomingMessage: ClientMessage,
    maxHeaderSize: 65_536,
    rejectNonStandardBodyWrites: false,
  });
  server.on('request', handle);
  server.on('checkContinue', handle);
  server.on('clientError', (_error, socket) => socket.destroy());
  const { port, close } = await listen(server);
  return {
    port,
    results,
    forwarder,
    /** Resolves with the first `count` results once there are that many. */
    resultsOf: async (count: number) => {
      while (results.length < count) {
        await new Promise<void>((resolve, reject) => {
          const timer = setTimeout(() => reject(new Error(`${results.length} of ${count} results`)), 60_000);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      return results;
    },
    close: async () => {
      await close();
      await forwarder.close();
    },
  };
}

/** Hooks that record their outcomes. */
export function notingHooks(more: Partial<UpstreamHooks> = {}, edits: ResponseEdits = {}) {
  const outcomes: ForwardOutcome[] = [];
  const onOutcome = (outcome: ForwardOutcome) => {
    outcomes.push(outcome);
    return edits;
  };
  return { hooks: (): UpstreamHooks => ({ bufferLimit: 1000, onOutcome, ...more }), outcomes };
}

const hopByHop = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'expect',
  'upgrade',
]);

function requestOf(incoming: IncomingMessage): CanonicalRequest {
  const { 'content-length': length, 'transfer-encoding': coding, host = 'shop.test' } = incoming.headers;
  return canonicalRequest(incoming.url ?? '/', {
    method: incoming.method as Method,
    fields: pairs(incoming.rawHeaders)
      .filter(([name]) => !hopByHop.has((name as string).toLowerCase()))
      .flat(),
    host,
    body: coding !== undefined ? 'chunked' : length === undefined ? 'none' : { length: Number(length) },
    expectsContinue: incoming.headers.expect !== undefined,
  });
}

function pairs(fields: readonly string[]): string[][] {
  return Array.from({ length: fields.length / 2 }, (_, i) => fields.slice(2 * i, 2 * i + 2));
}

export interface Stage {
  readonly port: number;
  readonly upstream: RecordingUpstream;
  readonly front: ForwardingFront;
}

export type StartStage = (script: Script, options?: Partial<FrontOptions>) => Promise<Stage>;

/** Concurrent tests. Each starts its own upstreams and fronts, which are closed after all tests. */
export function frontSuite(title: string, define: (start: StartStage) => void): void {
  describe.concurrent(title, () => {
    const stages: Stage[] = [];
    afterAll(async () => {
      for (const { front, upstream } of stages) {
        await front.close();
        await upstream.close();
      }
    });
    define(async (script, options = {}) => {
      const upstream = await startRecordingUpstream(script);
      const front = await startFront({ upstreamPort: upstream.port, ...options });
      const stage = { port: front.port, upstream, front };
      stages.push(stage);
      return stage;
    });
  });
}
