import type { Purge } from '../url-resolver/purge/purge.ts';
import type { UrlResolver } from '../url-resolver/url-resolver.ts';
import type { AdminEndpoint } from './admin-server.ts';

/** `POST /purge` with `{"url": …}`, `{"prefix": …}` or `{"all": true}`: reaches every replica, or answers 503. */
export function createPurgeEndpoint({ purge }: { purge: UrlResolver['purge'] }): AdminEndpoint {
  return {
    method: 'POST',
    path: '/purge',
    async run(body) {
      const request = readPurge(body);
      if (request === undefined) {
        return {
          status: 400,
          body: { error: 'one of {"url": text}, {"prefix": text} and {"all": true} is needed' },
        };
      }
      const outcome = await purge(request);
      if (outcome === 'purged') return { status: 200, body: { purged: request } };
      return { status: 503, body: { error: 'the purge log cannot be reached; nothing was purged' } };
    },
  };
}

function readPurge(body: unknown): Purge | undefined {
  if (typeof body !== 'object' || body === null || Object.keys(body).length !== 1) return undefined;
  const { url, prefix, all } = body as Record<string, unknown>;
  if (typeof url === 'string' && url !== '') return { url };
  if (typeof prefix === 'string' && prefix !== '') return { prefix };
  return all === true ? 'all' : undefined;
}
