import type { Answer } from '../request/answer.ts';
import type { CanonicalRequest } from '../request/canonical-request.ts';
import { answerDocument, asksFor, type RenderedDocument, renderDocument } from './document-answer.ts';
import type { ProtectedList } from './protected-list.ts';
import { type ProtectedResource, resourceId } from './protected-resource.ts';

export interface ProtectedResourcesDocumentOptions {
  /** Canonical path. Default `/protected-resources`. */
  readonly path?: string;
  /** The list in force. */
  readonly list: () => Pick<ProtectedList, 'rows'>;
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
}: ProtectedResourcesDocumentOptions): DocumentEndpoint {
  /** Rendered once for each list that comes into force. */
  const rendered = new WeakMap<object, RenderedDocument>();
  return {
    route: path,
    answer(request) {
      if (!asksFor(path, request)) return undefined;
      const current = list();
      const document = rendered.get(current) ?? renderDocument('application/vnd.api+json', describe(current));
      rendered.set(current, document);
      return answerDocument(request, document);
    },
  };
}

function describe({ rows }: Pick<ProtectedList, 'rows'>): object {
  return { data: rows.map(describeRow) };
}

function describeRow(row: ProtectedResource): object {
  const { group, method, template, scopes } = row;
  return {
    type: 'protected-resources',
    id: resourceId(row),
    attributes: { group, method, path: template, scopes },
  };
}
