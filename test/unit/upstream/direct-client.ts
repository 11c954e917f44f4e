import { createUpstreamClient } from '../../../src/upstream/client.ts';
import type {
  ClientOptions,
  UpstreamClient,
  UpstreamFault,
  UpstreamHandler,
  UpstreamRequest,
} from '../../../src/upstream/port.ts';

/** A client of a server on this machine, with time enough for a busy one. */
export function clientOf(port: number, more: Partial<ClientOptions> = {}): UpstreamClient {
  return createUpstreamClient({
    upstream: { scheme: 'http', hostname: '127.0.0.1', port },
    ...{ connectTimeoutMs: 30_000, connections: 2, queueLimit: 1_000, queueTimeoutMs: 60_000 },
    ...more,
  });
}

/** The status of a response that ended, or the kind of fault. */
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
