import type { CanonicalRequest } from '../http/canonical-request.ts';
import { answerDocument, asksFor, renderDocument } from './document-answer.ts';
import type { ProtectedList } from './protected-list.ts';
import type { DocumentEndpoint } from './protected-resources-document.ts';

export interface ResourceMetadataOptions {
  /** The resource identifier: address of the API without a path. Left out: scheme and Host of the request. */
  readonly publicUrl?: string | undefined;
  /** Issuer identifiers of the authorization servers; none: not said. */
  readonly authorizationServers?: readonly string[];
  /** Address of a page for developers. */
  readonly documentation?: string | undefined;
  readonly list: () => Pick<ProtectedList, 'rows'>;
}

export interface ResourceMetadata extends DocumentEndpoint {
  /** For `resource_metadata` in challenges (RFC 9728 section 5.1). */
  url(request: Pick<CanonicalRequest, 'scheme' | 'host'>): string;
}

/** RFC 9728 section 3. */
export const metadataPath = '/.well-known/oauth-protected-resource';

/** Metadata of the protected resource (RFC 9728); needs no token. Lists without members are left out (section 3.2). */
export function createResourceMetadata(options: ResourceMetadataOptions): ResourceMetadata {
  const { publicUrl, authorizationServers = [], documentation, list } = options;
  const known = new WeakMap<object, readonly string[]>();
  /** Found once for each list: a list may have tens of thousands of rows. */
  const scopesOf = (current: Pick<ProtectedList, 'rows'>) => {
    const scopes = known.get(current) ?? [...new Set(current.rows.flatMap((row) => row.scopes))];
    known.set(current, scopes);
    return scopes;
  };
  const resourceOf = ({ scheme, host }: Pick<CanonicalRequest, 'scheme' | 'host'>) =>
    publicUrl ?? `${scheme}://${host}`;
  return {
    route: metadataPath,
    url: (request) => `${resourceOf(request)}${metadataPath}`,
    answer(request) {
      if (!asksFor(metadataPath, request)) return undefined;
      const scopes = scopesOf(list());
      const answer = answerDocument(
        request,
        renderDocument('application/json', {
          resource: resourceOf(request),
          ...(authorizationServers.length > 0 && { authorization_servers: authorizationServers }),
          ...(scopes.length > 0 && { scopes_supported: scopes }),
          bearer_methods_supported: ['header'],
          ...(documentation !== undefined && { resource_documentation: documentation }),
        }),
      );
      // A cache in between must not tell one host the name of another.
      return publicUrl === undefined ? { ...answer, fields: [...answer.fields, 'Vary', 'Host'] } : answer;
    },
  };
}
