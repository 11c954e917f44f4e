import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { Answer } from '../http/rejection.ts';
import { answerDocument, asksFor, type RenderedDocument, renderDocument } from './document-answer.ts';
import type { ProtectedList } from './protected-list.ts';
import { type ProtectedResource, resourceId } from './protected-resource.ts';

export interface ProtectedResourcesDocumentOptions {
  /** Canonical path. Default `/protected-resources`. */
  readonly path?: string;
  /** The list in force. */
  readonly list: () => Pick<ProtectedList, 'rows'>;
  /** The list in force, rendered. Default: it is rendered when it is first asked for. */
  readonly rendered?: () => RenderedDocument;
}

/** An endpoint of shopward's own that needs no token; `undefined`: not this request. */
export interface DocumentEndpoint {
  readonly route: string;
  answer(request: CanonicalRequest): Answer | undefined;
}

/** The protected list for clients (contract, Authentication 7): a JSON:API document, in the order of the list. */
export function createProtectedResourcesDocument({
  path = '/protected-resources',
  list,
  rendered = renderOnce(list),
}: ProtectedResourcesDocumentOptions): DocumentEndpoint {
  return {
    route: path,
    answer(request) {
      if (!asksFor(path, request)) return undefined;
      return answerDocument(request, rendered());
    },
  };
}

/** A list of 60,000 rows makes 10 MB: not a thing to do while others are served. */
export function renderProtectedResources({ rows }: Pick<ProtectedList, 'rows'>): RenderedDocument {
  return renderDocument('application/vnd.api+json', { data: rows.map(describeRow) });
}

/** Once for each list that comes into force. */
function renderOnce(list: ProtectedResourcesDocumentOptions['list']): () => RenderedDocument {
  const known = new WeakMap<object, RenderedDocument>();
  return () => {
    const current = list();
    const document = known.get(current) ?? renderProtectedResources(current);
    known.set(current, document);
    return document;
  };
}

function describeRow(row: ProtectedResource): object {
  const { group, method, template, scopes } = row;
  return {
    type: 'protected-resources',
    id: resourceId(row),
    attributes: { group, method, path: template, scopes },
  };
}
