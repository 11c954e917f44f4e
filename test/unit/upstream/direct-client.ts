import { createUpstreamClient } from '../../../src/upstream/client.ts';
import type {
  ClientOptions,
  UpstreamClient,
  UpstreamFault,
  UpstreamHandler,
  UpstreamRequest,
} from '../../../src/upstream/port.ts';

/** A client of a local server, with long deadlines for a busy machine. */
export function clientOf(port: number, more: Partial<ClientOptions> = {}): UpstreamClient {
  return createUpstreamClient({
    upstream: { scheme: 'http', hostname: '127.0.0.1', port },
    ...{ connectTimeoutMs: 30_000, connections: 2, queueLimit: 1_000, queueTimeoutMs: 60_000 },
    ...more,
  });
}

/** The status of a complete response, or the kind of the fault. */
export function ask(
  client: UpstreamClient,
  request: Partial<UpstreamRequest> = {},
  handler: Partial<UpstreamHandler> = {},
): Promise<number | UpstreamFault['kind']> {
  return new Promise((resolve) => {
    let seen = 0;
    client.dispatch(
      { method: 'GET', target: '/', fields: ['Host', 's'], body: null, ...request },
      {
        onHead: (status) => {
          seen = status;
        },
        onData: () => true,
        onEnd: () => resolve(seen),
        onFault: ({ kind }) => resolve(kind),
        ...handler,
      },
    );
  });
}
