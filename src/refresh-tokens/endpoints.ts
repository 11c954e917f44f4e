import { type CanonicalRequest, hasBody, type Method } from '../http/canonical-request.ts';
import {
  decodeSegment,
  type FormatSuffixes,
  foldSegment,
  foldSuffixes,
  withoutFormatSuffix,
} from '../http/path-folding.ts';
import { endpointRows, reachOf } from '../routes/endpoint-rows.ts';
import { buildPathTable, type PathRules, type PathTableRow } from '../routes/path-table.ts';

/** An endpoint of the shop that issues, refreshes or revokes refresh tokens. */
export interface TokenEndpoint {
  readonly kind: 'issue' | 'exchange' | 'revoke';
  readonly method: Method;
  /** Path template. A parameter at the end of a `revoke` endpoint is the token, or `mine`; without one the body has it. */
  readonly path: string;
  /** `json-api`: the shop's names and errors; `form` and `json`: those of RFC 6749. `json` refuses urlencoded forms. */
  readonly format: 'json-api' | 'json' | 'form';
  readonly fields: TokenFields;
}

/** Names of form fields and JSON members, as requests have to spell them. */
export interface TokenFields {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Lifetime of the refresh token in seconds. */
  readonly refreshExpiresIn: string;
}

/** What a request may do to refresh tokens. */
export interface TokenRequest {
  /** Endpoints by which the shop may refresh a token; exact matches first. */
  readonly refreshes: readonly TokenEndpoint[];
  /** Endpoints by which the shop may issue a token. */
  readonly issues: readonly TokenEndpoint[];
  /** Endpoints that match except for their method: a shop that ignores the method refreshes all the same. */
  readonly otherMethod: readonly TokenEndpoint[];
  /** The token that the path names for revocation, decoded, or `mine`. */
  readonly revokes: string | undefined;
  /** Endpoints that revoke the token in the body. Whatever the method: a shop that ignores it revokes all the same. */
  readonly endsShown: readonly TokenEndpoint[];
}

/** Matches paths as leniently as the protected list. Those below an endpoint that issues or refreshes match as well. */
export function compileTokenEndpoints(
  endpoints: readonly TokenEndpoint[],
  rules: PathRules,
): (request: CanonicalRequest) => TokenRequest | undefined {
  const table = buildPathTable(endpoints.flatMap(rowsOf), rules);
  const suffixes = foldSuffixes(rules.formatSuffixes);
  return (request) => {
    const refreshes = new Set<TokenEndpoint>();
    const issues = new Set<TokenEndpoint>();
    const others = new Set<TokenEndpoint>();
    const shown = { own: new Set<TokenEndpoint>(), other: new Set<TokenEndpoint>() };
    let revokes: string | undefined;
    for (const { data, params } of table.match(request)) {
      const reach = reachOf(request, data.method);
      if (reach === undefined) continue;
      const isOwn = reach === 'own';
      if (data.kind === 'exchange') (isOwn ? refreshes : others).add(data);
      else if (data.kind === 'issue') {
        // By any method, if there is a body for credentials: a shop that ignores the method issues all the same.
        if (isOwn || hasBody(request)) issues.add(data);
      } else if (!namesToken(data)) shown[reach].add(data);
      else if (isOwn) revokes ??= nameOfToken(Object.values(params).at(-1) ?? '', suffixes);
    }
    // Where one path revokes and refreshes, a shop that ignores the method may refresh: then the stricter check applies.
    if (shown.own.size > 0) for (const other of others) if (others.delete(other)) refreshes.add(other);
    // A refresh by its own method uses the token up, so that it need not be revoked as well.
    const endsShown = shown.own.size > 0 || refreshes.size > 0 ? shown.own : shown.other;
    if (refreshes.size + issues.size + others.size + endsShown.size === 0 && !revokes) return undefined;
    const lists = { refreshes: [...refreshes], issues: [...issues], otherMethod: [...others] };
    return { ...lists, revokes: revokes || undefined, endsShown: [...endsShown] };
  };
}

/** Whether the path of a `revoke` endpoint ends with the token; otherwise the token is in the body (RFC 7009). */
export function namesToken({ path }: Pick<TokenEndpoint, 'path'>): boolean {
  return path.endsWith('}');
}

/** The token in the path, or `mine`, which revokes all of a user's tokens, in every spelling that the shop may accept. */
function nameOfToken(segment: string, suffixes: FormatSuffixes): string {
  // The last part of a JWT is its signature, even if `*` makes every extension a suffix.
  const bare = jwt.test(segment) ? segment : (withoutFormatSuffix(segment, suffixes) ?? segment);
  return foldSegment(bare) === 'mine' ? 'mine' : decodeSegment(bare);
}

const jwt = /^ey[^.]+\.[^.]+\.[^.]+$/;

function rowsOf(endpoint: TokenEndpoint): PathTableRow<TokenEndpoint>[] {
  const { method, path, kind } = endpoint;
  if (kind === 'revoke' && namesToken(endpoint)) return [{ method, template: path, data: endpoint }];
  return endpointRows(path, endpoint).filter(({ template }) => kind !== 'revoke' || template === path);
}
