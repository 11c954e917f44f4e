import type { CanonicalRequest, Method } from '../http/canonical-request.ts';
import {
  decodeSegment,
  type FormatSuffixes,
  foldSegment,
  foldSuffixes,
  withoutFormatSuffix,
} from '../http/path-folding.ts';
import { buildPathTable, type PathRules, type PathTableRow } from '../http/path-table.ts';

/** An endpoint of the shop that issues, refreshes or revokes refresh tokens. */
export interface TokenEndpoint {
  readonly kind: 'issue' | 'exchange' | 'revoke';
  readonly method: Method;
  /** Path template, of segments and parameters. The last parameter of a `revoke` endpoint is the token, or `mine`; without one, the body has the token. */
  readonly path: string;
  /** Whose errors and grants: `form` those of RFC 6749, `json-api` the shop's own. */
  readonly format: 'json-api' | 'form';
  readonly fields: TokenFields;
}

/** Names of fields, as requests have to spell them. */
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
  readonly refreshes: readonly TokenEndpoint[];
  readonly issues: readonly TokenEndpoint[];
  /** Endpoints whose path it is, by another method than theirs: shops that ignore the method refresh all the same. */
  readonly otherMethod: readonly TokenEndpoint[];
  /** The token of the path, decoded, or `mine`. */
  readonly revokes: string | undefined;
  /** Endpoints that end the token which the request shows, by whatever method: shops that ignore it end the token all the same. */
  readonly endsShown: readonly TokenEndpoint[];
}

/**
 * Compiles the endpoints with the protected list's own lenient matching. A path that goes on after an endpoint that
 * issues or refreshes counts as well: shops ignore an id where none belongs.
 */
export function compileTokenEndpoints(
  endpoints: readonly TokenEndpoint[],
  rules: PathRules,
): (request: CanonicalRequest) => TokenRequest | undefined {
  const table = buildPathTable(endpoints.flatMap(rowsOf), rules);
  const suffixes = foldSuffixes(rules.formatSuffixes);
  // A form POST may be of any method.
  const methods = new Set<Method>(endpoints.length === 0 ? [] : ['POST', ...endpoints.map(methodOf)]);
  return (request) => {
    const hasNothing = request.query.length < 2 && !hasBody(request);
    // Reading goes by at no cost.
    if (methods.size === 0 || (hasNothing && !methods.has(request.method))) return undefined;
    const met = table.match(request);
    if (met.length === 0) return undefined;
    const refreshes = new Set<TokenEndpoint>();
    const issues = new Set<TokenEndpoint>();
    const others = new Set<TokenEndpoint>();
    let endsShown: readonly TokenEndpoint[] = none;
    let endsOtherwise: readonly TokenEndpoint[] = none;
    let revokes: string | undefined;
    for (const { data, params } of met) {
      const isOwn = data.method === request.method || request.isFormPost;
      if (data.kind === 'revoke' && !namesToken(data)) {
        if (isOwn) endsShown = [...endsShown, data];
        else if (!hasNothing) endsOtherwise = [...endsOtherwise, data];
      } else if (data.kind === 'revoke') {
        if (isOwn) revokes ??= nameOfToken(Object.values(params).at(-1) ?? '', suffixes);
      } else if (data.kind === 'issue') {
        // By any method that carries credentials: what a shop issues that ignores the method is recorded, too.
        if (isOwn || hasBody(request)) issues.add(data);
      } else if (isOwn) refreshes.add(data);
      else if (!hasNothing) others.add(data);
    }
    // Ended and refreshed by one path, a shop that ignores the method may do the other: to be refreshed asks for more.
    if (endsShown.length > 0) for (const other of others) if (others.delete(other)) refreshes.add(other);
    // What is a refresh by its method uses the token up, which ends it too.
    if (endsShown.length === 0 && refreshes.size === 0) endsShown = endsOtherwise;
    if (refreshes.size + issues.size + others.size + endsShown.length === 0 && !revokes) return undefined;
    return {
      refreshes: [...refreshes],
      issues: [...issues],
      otherMethod: [...others],
      revokes: revokes || undefined,
      endsShown,
    };
  };
}

const none: readonly never[] = [];

/** Whether the path of a `revoke` endpoint ends in the token; otherwise it is in the body (RFC 7009). */
export function namesToken({ path }: Pick<TokenEndpoint, 'path'>): boolean {
  return path.endsWith('}');
}

/** A user who ends all tokens ends them here, too, however leniently the shop reads the word. */
function nameOfToken(segment: string, suffixes: FormatSuffixes): string {
  const bare = withoutFormatSuffix(segment, suffixes) ?? segment;
  return foldSegment(bare) === 'mine' ? 'mine' : decodeSegment(bare);
}

export function hasBody({ body }: Pick<CanonicalRequest, 'body'>): boolean {
  return body !== 'none' && (body === 'chunked' || body.length > 0);
}

function methodOf({ method }: TokenEndpoint): Method {
  return method;
}

function rowsOf(endpoint: TokenEndpoint): PathTableRow<TokenEndpoint>[] {
  const { method, path, kind } = endpoint;
  const templates = kind === 'revoke' ? [path] : [path, `${path}/**`];
  const methods = kind === 'revoke' && namesToken(endpoint) ? [method] : (['ANY', 'OPTIONS'] as const);
  return templates.flatMap((template) => methods.map((one) => ({ method: one, template, data: endpoint })));
}
