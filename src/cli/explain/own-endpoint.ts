import { metadataPath } from '../../access/published-documents.ts';
import type { PartialConfig } from '../../config/schema.ts';
import type { CanonicalRequest } from '../../http/canonical-request.ts';
import { createOwnPathTest } from '../../http/path-interpretations.ts';

/** Endpoints that shopward answers itself. */
export type OwnEndpointName = 'url-resolver' | 'protected-resources' | 'resource-metadata';

/** GET and HEAD of an own endpoint, whatever the list says; null: the request is forwarded. */
export function findOwnEndpoint(
  asked: Pick<CanonicalRequest, 'method' | 'path' | 'segments'>,
  config: Pick<PartialConfig, 'urlResolver' | 'protectedResourcesPath' | 'request'>,
): OwnEndpointName | null {
  const { method, path } = asked;
  const { urlResolver, protectedResourcesPath, request: paths = { ignoredPrefixes: [] } } = config;
  if (method !== 'GET' && method !== 'HEAD') return null;
  if (urlResolver) {
    const isPlain = path === urlResolver.path || path === `${urlResolver.path}/`;
    if (isPlain || createOwnPathTest(urlResolver.path, paths)(asked)) return 'url-resolver';
  }
  if (path === protectedResourcesPath) return 'protected-resources';
  return path === metadataPath ? 'resource-metadata' : null;
}
