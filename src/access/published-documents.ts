import { hash } from 'node:crypto';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { isNoneMatchMet } from '../http/entity-tag-list.ts';
import { fieldValues } from '../http/field-list.ts';
import type { Answer } from '../http/rejection.ts';
import type { Steps } from '../lib/slices.ts';
import type { Matcher } from '../proxy/filter.ts';
import { conditionTexts } from './claim-conditions.ts';
import { proofAlgorithms } from './proof-of-possession.ts';
import { type ProtectedList, type ProtectedResource, resourceId } from './protected-list.ts';
import { acceptsCertificates, acceptsDpop, type ProofMode } from './token-kind.ts';

/** The protected list for clients (contract, Authentication 7): a JSON:API document, in the order of the list. */
export function* renderProtectedResources({ rows }: Pick<ProtectedList, 'rows'>): Steps<RenderedDocument> {
  const parts: Buffer[] = [Buffer.from('{"data":[')];
  let some: string[] = [];
  for (const row of rows) {
    some.push(`${parts.length + some.length === 1 ? '' : ','}${JSON.stringify(describeRow(row))}`);
    if (some.length < renderedRows) continue;
    parts.push(Buffer.from(some.join('')));
    some = [];
    yield;
  }
  parts.push(Buffer.from(some.join('')));
  parts.push(Buffer.from(']}'));
  return documentOf('application/vnd.api+json', Buffer.concat(parts));
}

/** Rows rendered in one step, which takes less than a millisecond. */
const renderedRows = 100;

function describeRow(row: ProtectedResource): object {
  const { group, method, template, scopes, tokenIn } = row;
  const conditions = conditionTexts(row);
  return {
    type: 'protected-resources',
    id: resourceId(row),
    attributes: {
      group,
      method,
      path: template,
      scopes,
      ...(conditions.length > 0 && { conditions }),
      ...(tokenIn && { tokenIn }),
    },
  };
}

interface ResourceMetadataOptions {
  /** The resource identifier: address of the API without a path. Left out: scheme and Host of the request. */
  readonly publicUrl?: string | undefined;
  /** Issuer identifiers of the authorization servers; if there are none, the member is left out. */
  readonly authorizationServers: readonly string[];
  readonly list: () => BearerTerms;
  readonly proof: ProofMode;
}

/** RFC 9728 section 3. */
export const metadataPath = '/.well-known/oauth-protected-resource';

/** Metadata of the protected resource (RFC 9728); needs no token. Empty lists are left out, except `bearer_methods_supported`. */
export function createResourceMetadata(options: ResourceMetadataOptions) {
  const { publicUrl, authorizationServers, list, proof } = options;
  const resourceOf = ({ scheme, host }: Pick<CanonicalRequest, 'scheme' | 'host'>) =>
    publicUrl ?? `${scheme}://${host}`;
  return {
    /** For `resource_metadata` in challenges (RFC 9728 section 5.1). */
    url: (request: Pick<CanonicalRequest, 'scheme' | 'host'>) => `${resourceOf(request)}${metadataPath}`,
    answer(request: CanonicalRequest): Answer {
      const { terms } = list();
      const scopes = [...new Set(terms.flatMap((row) => [...row.scopes, ...(row.anyScopes ?? [])]))];
      const document = Buffer.from(
        JSON.stringify({
          resource: resourceOf(request),
          ...(authorizationServers.length > 0 && { authorization_servers: authorizationServers }),
          ...(scopes.length > 0 && { scopes_supported: scopes }),
          bearer_methods_supported: bearerMethodsOf(list()),
          ...(acceptsCertificates(proof) && { tls_client_certificate_bound_access_tokens: true }),
          ...(acceptsDpop(proof) && {
            dpop_signing_alg_values_supported: proofAlgorithms,
            dpop_bound_access_tokens_required:
              proof === 'dpop' && terms.every((row) => row.proof === 'required'),
          }),
        }),
      );
      const answer = answerDocument(request, documentOf('application/json', document));
      // The document has the host of the request: a cache must not serve it for another host.
      return publicUrl === undefined ? { ...answer, fields: [...answer.fields, 'Vary', 'Host'] } : answer;
    },
  };
}

/** RFC 9728 section 2 has no value for cookies and subprotocols. */
function bearerMethodsOf({ terms, tokenParameters }: BearerTerms): string[] {
  const isInHeader = terms.some(({ tokenIn }) => tokenIn === undefined || tokenIn.includes('header'));
  return [...(isInHeader ? ['header'] : []), ...(tokenParameters.length > 0 ? ['query'] : [])];
}

type BearerTerms = Pick<ProtectedList, 'terms' | 'tokenParameters'>;

/** A small document that shopward answers itself, ready to be sent. */
export interface RenderedDocument {
  readonly contentType: string;
  readonly body: Buffer;
  /** Strong: differs if any byte differs. */
  readonly tag: string;
}

function documentOf(contentType: string, body: Buffer): RenderedDocument {
  return { contentType, body, tag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` };
}

/** An endpoint that answers GET and HEAD of one path. */
export type DocumentMatcher = Matcher<true>;

export function createDocumentMatcher(name: string, path: string, what: string): DocumentMatcher {
  return {
    name,
    route: path,
    pathEnd: path,
    match: ({ method, path: asked }) =>
      (asked === path && (method === 'GET' || method === 'HEAD')) || undefined,
    describe: () => ({ text: `by shopward: ${what}; needs no token` }),
  };
}

/**
 * 200, or 304 if the client has the document already; HEAD has the fields of GET and no body. `no-cache`: caches
 * ask each time, so that clients see an edit of the list at once.
 */
export function answerDocument(request: CanonicalRequest, document: RenderedDocument): Answer {
  const { contentType, body, tag } = document;
  const fields = ['ETag', tag, 'Cache-Control', 'no-cache'];
  if (isNoneMatchMet(fieldValues(request.fields, 'if-none-match'), tag))
    return { status: 304, fields, body: null };
  fields.push('Content-Type', contentType, 'Content-Length', String(body.length));
  fields.push('X-Content-Type-Options', 'nosniff');
  return { status: 200, fields, body: request.method === 'HEAD' ? null : body };
}
