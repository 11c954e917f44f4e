import { type CanonicalRequest, hasBody, type Method } from '../http/canonical-request.ts';
import type { PathTableRow } from './path-table.ts';

/**
 * The rows of an endpoint that a shop may reach by any method and by any longer path, because shops ignore an id after the
 * endpoint's path. `reachOf` then tells whether a request that meets one of these rows may use the endpoint.
 */
export function endpointRows<T>(path: string, data: T): PathTableRow<T>[] {
  return [path, `${path}/**`].flatMap((template) =>
    (['ANY', 'OPTIONS'] as const).map((method) => ({ method, template, data })),
  );
}

/** How a request reaches an endpoint: `own`: by its method; `other`: by another one with a query or body; else not at all. */
export function reachOf(
  request: Pick<CanonicalRequest, 'method' | 'isFormPost' | 'query' | 'body'>,
  method: Method,
): 'own' | 'other' | undefined {
  // A shop may treat a form POST as any method.
  if (request.method === method || request.isFormPost) return 'own';
  return request.query.length > 1 || hasBody(request) ? 'other' : undefined;
}
