import type { CanonicalRequest, Method } from '../request/canonical-request.ts';
import { decodeSegment } from '../request/path-folding.ts';
import { buildPathTable, type PathTableRow } from '../request/path-table.ts';

/** An endpoint of the shop that issues, exchanges or revokes refresh tokens. */
export interface TokenEndpoint {
  readonly kind: 'issue' | 'exchange' | 'revoke';
  readonly method: Method;
  /** Path template; the last parameter of a `revoke` endpoint is the token, or `mine`. */
  readonly path: string;
  /** `form`: RFC 6749, errors included; `json-api`: the shop's own. */
  readonly format: 'json-api' | 'form';
  readonly fields: TokenFields;
}

/** Names of fields; those of requests are compared without case, `_` and `-`. */
export interface TokenFields {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Lifetime of the access token in seconds. */
  readonly expiresIn: string;
  /** Lifetime of the refresh token in seconds. */
  readonly refreshExpiresIn: string;
}

/** What a request is to the life of refresh tokens. */
export interface TokenRequest {
  /** Exact matches first. */
  readonly exchanges: readonly TokenEndpoint[];
  readonly issues: readonly TokenEndpoint[];
  /** The token of the path, decoded, or `mine`. */
  readonly revokes: string | undefined;
}

/**
 * Compiles the endpoints with the protected list's own lenient matching. A path that goes on behind an endpoint that
 * issues or exchanges counts as well: shops ignore an id where none belongs.
 */
export function compileTokenEndpoints(
  endpoints: readonly TokenEndpoint[],
  ignoredPrefixes: readonly string[],
): (request: CanonicalRequest) => TokenRequest | undefined {
  const rows = endpoints.flatMap(rowsOf);
  const table = buildPathTable(rows, { ignoredPrefixes });
  // A form POST may be of any method; reading goes by at no cost.
  const methods = new Set<Method>(
    rows.length === 0 ? [] : ['POST', ...rows.map(({ method }) => method as Method)],
  );
  return (request) => {
    if (!methods.has(request.method)) return undefined;
    const met = table.match(request);
    if (met.length === 0) return undefined;
    const kinds = { exchange: new Set<TokenEndpoint>(), issue: new Set<TokenEndpoint>() };
    let revokes: string | undefined;
    for (const { data, params } of met) {
      if (data.kind !== 'revoke') kinds[data.kind].add(data);
      else revokes ??= decodeSegment(Object.values(params).at(-1) ?? '');
    }
    return { exchanges: [...kinds.exchange], issues: [...kinds.issue], revokes: revokes || undefined };
  };
}

function rowsOf(endpoint: TokenEndpoint): PathTableRow<TokenEndpoint>[] {
  const { method, path, kind } = endpoint;
  const row = { method, template: path, data: endpoint };
  const goesOn = kind === 'revoke' || path.endsWith('**');
  return goesOn ? [row] : [row, { ...row, template: `${path === '/' ? '' : path}/**` }];
}
