import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type FieldList, fieldValue, hopByHopNames, trimOws } from '../http/field-list.ts';
import { token, valueText } from './request-framing.ts';

/**
 * Fields of an upstream's response as they may be sent on: without hop-by-hop fields, what `Connection` names, trailer
 * announcements and framing other than Content-Length (RFC 9110 section 7.6.1), without the upstream's `Server` and
 * `X-Debug*`, and without any line that could not be written. Order, spelling and repeats are kept. With `references` the
 * shop's own address is replaced by the public one.
 */
export function endToEndFields(
  fields: FieldList,
  status: number,
  references?: PublicReferences,
  request?: CanonicalRequest,
): string[] {
  const named = namedByConnection(fields);
  const kept: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] as string;
    const value = fields[i + 1] as string;
    if (named === undefined && ordinary.has(name)) {
      if (valueText.test(value)) kept.push(name, value);
      continue;
    }
    const lower = name.toLowerCase();
    if (isHopByHop(lower)) continue;
    // RFC 9110 section 8.6: 1xx and 204 have no Content-Length.
    if ((status === 204 || status < 200) && lower === 'content-length') continue;
    if (named?.has(lower) && !unnameable.has(lower)) continue;
    if (!token.test(name) || !valueText.test(value)) continue;
    const isRewritten = references !== undefined && request !== undefined && referenceNames.has(lower);
    kept.push(name, isRewritten ? references.toPublic(value, request) : value);
  }
  return kept;
}

const referenceNames = new Set(['location', 'content-location']);

/** Whether a field is never sent on, whatever `Connection` names. */
function isHopByHop(lowerCaseName: string): boolean {
  return (
    dropped.has(lowerCaseName) || lowerCaseName.startsWith('proxy-') || lowerCaseName.startsWith('x-debug')
  );
}

const dropped = new Set([...hopByHopNames, 'server']);

/** Fields that most responses have and that always pass, in their usual spelling: they skip the checks of names. */
const ordinary = new Set([
  'Accept-Ranges',
  'Access-Control-Allow-Origin',
  'Cache-Control',
  'Content-Type',
  'Date',
  'ETag',
  'Expires',
  'Last-Modified',
  'Set-Cookie',
  'Vary',
]);

/** `Connection` cannot remove these: without them a client would misread, cache or trust the response wrongly. */
const unnameable = new Set([
  'cache-control',
  'content-encoding',
  'content-length',
  'content-type',
  'etag',
  'set-cookie',
  'vary',
  'www-authenticate',
]);

function namedByConnection(fields: FieldList): Set<string> | undefined {
  let named: Set<string> | undefined;
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] as string;
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    const value = (fields[i + 1] as string).toLowerCase();
    if (value === 'keep-alive' || value === 'close') continue;
    named ??= new Set();
    for (const one of value.split(',')) named.add(trimOws(one));
  }
  return named;
}

/** The upstream's reason phrase, or undefined if a status line cannot contain it (RFC 9112 section 4). */
export function reasonPhrase(reason: string): string | undefined {
  return valueText.test(reason) ? reason : undefined;
}

interface PublicReferencesOptions {
  /** Address of the shop: an IPv6 address without its brackets, and the path that is put before every target. */
  readonly upstream: { readonly hostname: string; readonly port: number; readonly path: string };
  /** `scheme://host[:port]` under which clients know the API. Default: unknown, and references become paths. */
  readonly publicUrl?: string | undefined;
}

/**
 * `Location` and `Content-Location` (RFC 9110 sections 10.2.2 and 8.7) as clients may see them: the shop's own address is
 * replaced by the public one, and its path is removed. Without `publicUrl` only a path is left, which each client resolves
 * against the address that it asked: so no client decides where others are sent.
 */
export class PublicReferences {
  readonly #own: string;
  readonly #path: string;
  readonly #publicUrl: string;
  readonly #publicAuthority: string | undefined;

  constructor({ upstream: { hostname, port, path }, publicUrl }: PublicReferencesOptions) {
    this.#own = comparable(`${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`);
    this.#path = path;
    this.#publicUrl = publicUrl ?? '';
    this.#publicAuthority =
      publicUrl === undefined ? undefined : comparable(publicUrl.replace(/^.*\/\//, ''));
  }

  /** Never throws, whatever the shop sent. A reference to another host, or of an unknown kind, stays as it is. */
  toPublic(said: string, request: Pick<CanonicalRequest, 'host' | 'fields'>): string {
    const reference = asBrowsersRead(said);
    const start = startOfAuthority(reference);
    if (start === -1) return reference.startsWith('/') ? (this.#below(reference) ?? said) : said;
    const end = endOfAuthority(reference, start);
    const authority = reference.slice(start, end);
    const host = comparable(authority.slice(authority.lastIndexOf('@') + 1));
    const target = reference.slice(end);
    if (host === this.#own) return this.#publicUrl + plainTarget(this.#below(target) ?? target);
    const below = this.#isPublic(host, request) ? this.#below(target) : undefined;
    return below === undefined ? said : reference.slice(0, end) + plainTarget(below);
  }

  /**
   * A target without the upstream's path; undefined: it does not begin with that path, or leaves it by dot segments.
   */
  #below(target: string): string | undefined {
    if (this.#path === '' || !target.startsWith(this.#path)) return undefined;
    const [path = ''] = target.split(/[?#]/, 1);
    const rest = target.slice(this.#path.length);
    if (path.length > this.#path.length && !rest.startsWith('/')) return undefined;
    return dotSegment.test(path) ? undefined : plainTarget(rest);
  }

  /** Whether the shop used the public address, with the path that only shopward adds. */
  #isPublic(host: string, { host: asked, fields }: Pick<CanonicalRequest, 'host' | 'fields'>): boolean {
    if (this.#path === '') return false;
    return (
      host === this.#publicAuthority ||
      host === comparable(asked) ||
      host === comparable(fieldValue(fields, 'x-forwarded-host') ?? asked)
    );
  }
}

const dotSegment = /\/(?:\.|%2e){1,2}(?:[/\\]|$)/i;

/** Drops what the URL standard drops from every reference: tabs and line breaks, and leading controls and spaces (section 4.4). */
function asBrowsersRead(reference: string): string {
  const from = reference.search(/[^\0-\x20]/);
  return reference.slice(Math.max(0, from)).replace(/[\t\r\n]/g, '');
}

/**
 * Index of the authority, -1 where there is none: after the `//` of `http://…`, `https://…` and `//…` (RFC 3986 section 4.2), and
 * after any number of slashes and backslashes where the URL standard skips them. After a scheme there may be no slash at all: whether a
 * browser then reads a path depends on the scheme of its page.
 */
function startOfAuthority(reference: string): number {
  return /^(?:https?:[/\\]*|[/\\]{2,})/i.exec(reference)?.[0].length ?? -1;
}

/** A backslash ends the authority, too: browsers read it as a slash. */
function endOfAuthority(reference: string, start: number): number {
  let end = start;
  while (end < reference.length && !'/?#\\'.includes(reference.charAt(end))) end += 1;
  return end;
}

/**
 * `host[:port]` in the one spelling that the URL standard has for it: `127.1` and `%6Cocalhost` name hosts, too. The default ports
 * of http and https are equal: a shop behind a TLS terminator may use either.
 */
function comparable(authority: string): string {
  const parsed = authority.length > longestAuthority ? null : URL.parse(`http://${authority}`);
  return (parsed?.host ?? authority.toLowerCase()).replace(/:(?:80|443)?$/, '');
}

/** Octets of `host[:port]`, each perhaps escaped; no name is longer (RFC 1035 section 2.3.4). */
const longestAuthority = 1024;

/**
 * Makes path, query and fragment unambiguous. It leaves one slash in front, since two begin an authority, and escapes
 * backslashes, which browsers read as slashes, and all octets that are not visible ASCII: browsers drop some.
 */
function plainTarget(target: string): string {
  const path = target.startsWith('/') ? target.replace(/^\/+/, '/') : `/${target}`;
  return path.replace(
    /[^\x21-\x5b\x5d-\x7e]/g,
    (octet) => `%${octet.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  );
}
