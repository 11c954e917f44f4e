import type { PartialConfig } from '../../config/schema.ts';
import { metadataPath } from '../../protection/resource-metadata.ts';
import type { CanonicalRequest } from '../../request/canonical-request.ts';

/** Endpoints that shopward answers itself. */
export type OwnEndpointName = 'url-resolver' | 'protected-resources' | 'resource-metadata';

/** GET and HEAD of an own endpoint, whatever the list says; null: the request is forwarded. */
export function findOwnEndpoint(
  { method, path }: Pick<CanonicalRequest, 'method' | 'path'>,
  { urlResolver, protectedResourcesPath }: Pick<PartialConfig, 'urlResolver' | 'protectedResourcesPath'>,
): OwnEndpointName | null {
  if (method !== 'GET' && method !== 'HEAD') return null;
  if (urlResolver && (path === urlResolver.path || path === `${urlResolver.path}/`)) return 'url-resolver';
  if (path === protectedResourcesPath) return 'protected-resources';
  return path === metadataPath ? 'resource-metadata' : null;
}
