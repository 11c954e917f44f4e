import type { CanonicalRequest, Method } from '../http/canonical-request.ts';
import { buildPathTable, type PathRules } from '../http/path-table.ts';

/** Limits of one request, in bytes and milliseconds. */
export interface RouteLimits {
  readonly requestBodyBytes: number;
  readonly responseTimeoutMs: number;
}

interface LimitedRoute {
  readonly method: Method | 'ANY';
  /** Path template; may end in `**`. */
  readonly path: string;
  readonly requestBody?: number | undefined;
  readonly responseTimeout?: number | undefined;
}

/**
 * Compiles `limits.routes`; undefined if there are none, so that no request is matched. A route matches only the exact path and
 * no other spelling, because a spelling must not give a larger limit. If several routes match a request, the smallest value
 * counts.
 */
export function compileRouteLimits(
  routes: readonly LimitedRoute[],
  usual: RouteLimits,
  rules: PathRules,
): ((request: CanonicalRequest) => RouteLimits) | undefined {
  if (routes.length === 0) return undefined;
  const table = buildPathTable(
    routes.map((route) => ({ method: route.method, template: route.path, data: route })),
    rules,
  );
  return (request) => {
    const met = table.match(request).filter(({ exact }) => exact);
    if (met.length === 0) return usual;
    const least = (values: readonly (number | undefined)[], other: number) => {
      const set = values.filter((value) => value !== undefined);
      return set.length === 0 ? other : set.reduce((one, next) => Math.min(one, next));
    };
    return {
      requestBodyBytes: least(
        met.map(({ data }) => data.requestBody),
        usual.requestBodyBytes,
      ),
      responseTimeoutMs: least(
        met.map(({ data }) => data.responseTimeout),
        usual.responseTimeoutMs,
      ),
    };
  };
}
