import type { CanonicalRequest } from '../http/canonical-request.ts';
import { editFields, fieldValues, trimOws } from '../http/field-list.ts';
import { foldName, mayBeNamed } from '../http/form-encoding.ts';
import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import { type BearerCredentials, maxTokenLength, readBearerCredentials } from './bearer-credentials.ts';

/**
 * Where a row expects the token, in the spelling of the list: `header` (the field `Authorization`), `cookie:NAME`,
 * `query:NAME`, or `subprotocol:NAME`: the handshake of a WebSocket offers `NAME, <token>`.
 */
export type TokenLocation = 'header' | `${NamedLocation}:${string}`;
type NamedLocation = 'cookie' | 'query' | 'subprotocol';

const locationPattern = /^(?:header|(?:cookie|query|subprotocol):[A-Za-z0-9_-]{1,64})$/;

export function isTokenLocation(text: string): text is TokenLocation {
  return locationPattern.test(text);
}

/** The locations that both rows allow, for a request that matches both. Undefined: only the field `Authorization`. */
export function commonLocations(
  one: readonly TokenLocation[] | undefined,
  other: readonly TokenLocation[] | undefined,
): readonly TokenLocation[] | undefined {
  if (one === undefined && other === undefined) return undefined;
  const common = (one ?? headerAlone).filter((location) => (other ?? headerAlone).includes(location));
  return common.length === 1 && common[0] === 'header' ? undefined : common;
}

export const headerAlone: readonly TokenLocation[] = ['header'];

export interface PresentedToken extends BearerCredentials {
  readonly request: CanonicalRequest;
}

/**
 * Reads the token, and removes it from the request unless it is in `Authorization`. Any name that some backend may read as
 * the configured one counts as a token, too (`mayBeNamed`), so that the shop cannot find another token. Pure.
 *
 * Rejections: `access-token-missing`, `access-token-invalid`, `access-token-repeated` (two tokens), and `cross-site-request`:
 * a change, or the handshake of a WebSocket, with a cookie but not from a page of the shop.
 *
 * @param pageOrigins Origins whose pages may send changes, besides the request's own host.
 * @param takesOpaque Whether the token need not be a JWS.
 * @param takesDpop Whether the scheme of `Authorization` may be DPoP.
 */
export function readPresentedToken(
  request: CanonicalRequest,
  locations: readonly TokenLocation[],
  pageOrigins: readonly string[],
  takesOpaque = false,
  takesDpop = false,
): PresentedToken | Rejection {
  const found: (Found & { readonly location: TokenLocation })[] = [];
  for (const location of locations) {
    const at = location === 'header' ? undefined : findAt(location, request);
    if (at !== undefined) found.push({ ...at, location });
  }
  const isInHeader = fieldValues(request.fields, 'authorization').some((value) => trimOws(value) !== '');
  if (found.length + Number(isInHeader) > 1) return reject('access-token-repeated', { reason: 'two-places' });
  const [only] = found;
  if (only === undefined) {
    if (!locations.includes('header'))
      return reject('access-token-missing', { reason: isInHeader ? 'other-place' : 'missing' });
    const credentials = readBearerCredentials(request.fields, takesOpaque, takesDpop);
    return isRejection(credentials) ? credentials : { ...credentials, request };
  }
  if (only.token === undefined) return reject('access-token-invalid', { reason: only.reason });
  if (only.location.startsWith('cookie:') && isChange(request) && !isOfOwnOrigin(request, pageOrigins))
    return reject('cross-site-request', { reason: 'origin' });
  const credentials = readBearerCredentials(['Authorization', `Bearer ${only.token}`], takesOpaque);
  return isRejection(credentials) ? credentials : { ...credentials, request: only.request };
}

/** Reasons that mean that the request has no bearer token. */
const withoutBearer: ReadonlySet<string | undefined> = new Set(['missing', 'other-place', 'other-scheme']);

/**
 * Whether a request without a bearer token has credentials for the shop to check: HTTP Basic (RFC 7617), or, without an
 * `Authorization` field, one of the cookies. Any other `Authorization` is refused, since the shop could believe it.
 */
export function findShopCredentials(
  request: CanonicalRequest,
  refusal: Rejection,
  sessionCookies: readonly string[],
): 'found' | Rejection {
  if (!withoutBearer.has(refusal.reason)) return refusal;
  const values = fieldValues(request.fields, 'authorization').map(trimOws);
  const sent = values.filter((value) => value !== '');
  if (sent.length > 0) return values.length === 1 && isBasic(sent[0] ?? '') ? 'found' : refusal;
  const cookies = sessionCookies.flatMap((name) => findCookie(name, request) ?? []);
  const odd = cookies.find(({ token }) => token === undefined);
  if (odd !== undefined && odd.token === undefined)
    return reject('access-token-invalid', { reason: odd.reason });
  return cookies.some(({ token }) => token !== '' && token !== '""') ? 'found' : refusal;
}

const basic = /^Basic +([A-Za-z0-9+/]+={0,2})$/i;

/** User, colon and password. User or password may be empty, because API keys are sent that way. */
function isBasic(value: string): boolean {
  const [, encoded = ''] = basic.exec(value) ?? [];
  const pair = Buffer.from(encoded, 'base64').toString('latin1');
  return encoded.length <= maxTokenLength && pair.includes(':') && pair.length > 1;
}

/** A token; or `reason`, if a text is not a proper token but some backend could read it as one: the request is refused. */
type Found =
  | { readonly token: string; readonly request: CanonicalRequest }
  | { readonly token?: undefined; readonly reason: 'repeated' | 'malformed' };

function findAt(location: TokenLocation, request: CanonicalRequest): Found | undefined {
  const separator = location.indexOf(':');
  const name = location.slice(separator + 1);
  switch (location.slice(0, separator) as NamedLocation) {
    case 'cookie':
      return findCookie(name, request);
    case 'query':
      return findParameter(name, request);
    case 'subprotocol':
      return findSubprotocol(name, request);
  }
}

/**
 * Splits a text into pairs: `meant` are those that some backend may read as `name`, `rest` all others. `also`: a second
 * separator, which some backends accept.
 */
function splitPairs(text: string, separator: string, also: string, name: string) {
  const folded = foldName(name);
  const rest: string[] = [];
  const meant: string[] = [];
  for (const pair of text.split(separator)) {
    const isMeant = pair.includes(also)
      ? pair.split(also).some((part) => mayBeNamed(part, folded))
      : mayBeNamed(pair, folded);
    (isMeant ? meant : rest).push(pair);
  }
  return { rest, meant };
}

/**
 * The value of the only pair `name=value`; its name must be spelled exactly. Escapes in the value are decoded (RFC 6750
 * section 2.3).
 */
function onlyValue(meant: readonly string[], name: string): { token: string } | Found {
  if (meant.length > 1) return { reason: 'repeated' };
  const pair = trimOws(meant[0] ?? '');
  if (!pair.startsWith(`${name}=`)) return { reason: 'malformed' };
  const value = pair.slice(name.length + 1);
  if (!value.includes('%')) return { token: value };
  try {
    return { token: decodeURIComponent(value) };
  } catch {
    return { reason: 'malformed' };
  }
}

function findCookie(name: string, request: CanonicalRequest): Found | undefined {
  const lines = fieldValues(request.fields, 'cookie').map((line) => splitPairs(line, ';', ',', name));
  const meant = lines.flatMap((line) => line.meant);
  if (meant.length === 0) return undefined;
  const value = onlyValue(meant, name);
  if (value.token === undefined) return value;
  const rest = lines.flatMap((line) => line.rest.map(trimOws)).filter((pair) => pair !== '');
  const fields = editFields(request.fields, { Cookie: rest.length === 0 ? null : rest.join('; ') });
  return { token: value.token, request: { ...request, fields } };
}

function findParameter(name: string, request: CanonicalRequest): Found | undefined {
  if (request.query.length < 2) return undefined;
  const { rest, meant } = splitPairs(request.query.slice(1), '&', ';', name);
  if (meant.length === 0) return undefined;
  const value = onlyValue(meant, name);
  if (value.token === undefined) return value;
  const query = rest.length === 0 ? '' : `?${rest.join('&')}`;
  return { token: value.token, request: { ...request, query } };
}

function findSubprotocol(name: string, request: CanonicalRequest): Found | undefined {
  if (request.isWebSocketUpgrade !== true) return undefined;
  const offered = fieldValues(request.fields, 'sec-websocket-protocol').flatMap((line) =>
    line.split(',').map(trimOws),
  );
  const at = offered.findIndex((one) => one.toLowerCase() === name.toLowerCase());
  if (at === -1) return undefined;
  if (offered.findLastIndex((one) => one.toLowerCase() === name.toLowerCase()) !== at)
    return { reason: 'repeated' };
  const token = offered[at + 1];
  if (offered[at] !== name || token === undefined) return { reason: 'malformed' };
  const rest = offered.filter((_, i) => i !== at && i !== at + 1);
  if (rest.includes(token)) return { reason: 'repeated' };
  const fields = editFields(request.fields, {
    'Sec-WebSocket-Protocol': rest.length === 0 ? null : rest.join(', '),
  });
  return { token, request: { ...request, fields, offeredSubprotocol: name } };
}

/** Whether the request may be a change, which a page of another site must not send with the user's cookie. */
function isChange({ method, isWebSocketUpgrade }: CanonicalRequest): boolean {
  return !['GET', 'HEAD', 'OPTIONS'].includes(method) || isWebSocketUpgrade === true;
}

/**
 * Whether a page of the shop has sent the request, by `Origin` (RFC 6454) and `Sec-Fetch-Site` (W3C Fetch Metadata). One of
 * `pageOrigins` is enough. Otherwise a field is required, and each that is sent must name the request's own origin.
 */
function isOfOwnOrigin(request: CanonicalRequest, pageOrigins: readonly string[]): boolean {
  const origins = fieldValues(request.fields, 'origin');
  const sites = fieldValues(request.fields, 'sec-fetch-site');
  const [origin] = origins;
  const [site] = sites;
  if (origins.length > 1 || sites.length > 1) return false;
  if (origin === undefined) return site === 'same-origin';
  if (pageOrigins.includes(origin)) return true;
  return origin === originOf(request) && (site === undefined || site === 'same-origin');
}

/** The origin as a browser writes it, without the default port of the scheme. */
export function originOf({ scheme, host }: Pick<CanonicalRequest, 'scheme' | 'host'>): string {
  return `${scheme}://${host.replace(scheme === 'https' ? /:443$/ : /:80$/, '')}`;
}

/**
 * Removes `Referer` if its query or fragment may contain a token: the previous page may have been opened with one. `names`:
 * all query parameters that the list takes a token from.
 */
export function withoutReferredToken(request: CanonicalRequest, names: readonly string[]): CanonicalRequest {
  const referers = fieldValues(request.fields, 'referer');
  if (!referers.some((referer) => mentions(referer, names))) return request;
  return { ...request, fields: editFields(request.fields, { Referer: null }) };
}

function mentions(referer: string, names: readonly string[]): boolean {
  const pairs = referer.slice(referer.search(/[?#]/) + 1).split(/[&;?#]/);
  return names.some((name) => pairs.some((pair) => mayBeNamed(pair, foldName(name))));
}
