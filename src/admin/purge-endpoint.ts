import type { Purge } from '../url-resolver/purge-log.ts';
import type { UrlResolver } from '../url-resolver/url-resolver.ts';
import { fieldsOf, type JsonEndpoint } from './admin-endpoint.ts';

/** `POST /api/purge` with `{"url": …}`, `{"prefix": …}` or `{"all": true}`: reaches every replica, or answers 503. */
export function createPurgeEndpoint({
  purge,
  path = '/api/purge',
}: {
  readonly purge: UrlResolver['purge'];
  readonly path?: string;
}): JsonEndpoint {
  return {
    method: 'POST',
    path,
    async run({ body }) {
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
  const fields = fieldsOf(body);
  if (Object.keys(fields).length !== 1) return undefined;
  const { url, prefix, all } = fields;
  if (typeof url === 'string' && url !== '') return { url };
  if (typeof prefix === 'string' && prefix !== '') return { prefix };
  return all === true ? 'all' : undefined;
}
