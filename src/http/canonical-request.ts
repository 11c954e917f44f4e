import type { FieldList } from './field-list.ts';
import type { Rejection } from './rejection.ts';

export const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
export type UsualMethod = (typeof methods)[number];

/**
 * Methods that are accepted if the configuration names them. Methods that act on a second resource, named in a field (COPY, MOVE, BIND), are not
 * among them: no row would be matched with that resource.
 */
export const extensionMethods = ['SEARCH', 'QUERY', 'PROPFIND', 'REPORT'] as const;

export type Method = UsualMethod | (typeof extensionMethods)[number];

/**
 * The request object: `canonicaliseRequest` makes it once, and it is then matched, keyed, authenticated and forwarded. No
 * later step reads the original request.
 */
export interface CanonicalRequest {
  readonly method: Method;
  /** Canonical path: one leading slash, unreserved octets decoded, escapes in upper case; forwarded in this form. */
  readonly path: string;
  /** From the first `?` (included) to the end, byte for byte as sent; empty when there is none. */
  readonly query: string;
  /** `path` split at `/`, without the leading empty string; canonical, not folded: `/a//b/` is ['a', '', 'b', '']. */
  readonly segments: readonly string[];
  /**
   * The other interpretation of a path with `%2F` (allowed by `request.encodedSlash` only): each `%2F` is a slash. Match
   * both; the stricter one wins. The forwarded path keeps its `%2F`.
   */
  readonly alternativeSegments?: readonly string[] | undefined;
  /**
   * End-to-end fields as they will be forwarded: without hop-by-hop, override, spoofable and framing fields (the client of
   * the upstream adds its own framing); `Host`, `X-Forwarded-*` and `X-Request-Id` are set.
   */
  readonly fields: FieldList;
  /** Valid `host[:port]` of the client's request; that of the upstream for an HTTP/1.0 request without Host. */
  readonly host: string;
  /** `http` or `https`, as the client used it (a trusted peer's `X-Forwarded-Proto` is believed). */
  readonly scheme: 'http' | 'https';
  /** The client's address, behind trusted proxies. */
  readonly clientAddress: string;
  readonly requestId: string;
  /** SHA-256 of the certificate that the client has shown to shopward itself; undefined: none, or shopward asks for none. */
  readonly clientCertificate?: string | undefined;
  /** A form, or a POST without a type, may override its method in the body: it counts as every method of its path. */
  readonly isFormPost: boolean;
  /** Whether a body follows, and its announced length in bytes. GET and HEAD have none. */
  readonly body: 'none' | 'chunked' | { readonly length: number };
  /** `Expect: 100-continue` was sent; shopward sends the interim response when every check has passed. */
  readonly expectsContinue: boolean;
  /** A WebSocket handshake (RFC 6455 section 4.2.1) where upgrades are switched on; Sec-WebSocket-* are in `fields`. */
  readonly isWebSocketUpgrade?: boolean;
  /** A subprotocol that the client has offered and that is not forwarded; it is the answer if the shop chooses none. */
  readonly offeredSubprotocol?: string;
  /**
   * A preflight of a target that is refused. Only shopward answers it, so that a page in a browser can read why its actual
   * request is refused; `path` is `/`.
   */
  readonly refusedTarget?: Rejection;
}

/** Safe by RFC 9110 section 9.2.1, RFC 5323, RFC 10008, RFC 4918 and RFC 3253. */
const safeMethods: ReadonlySet<Method> = new Set(['GET', 'HEAD', 'OPTIONS', ...extensionMethods]);

export function isSafe(method: Method): boolean {
  return safeMethods.has(method);
}

export function hasBody({ body }: Pick<CanonicalRequest, 'body'>): boolean {
  return body !== 'none' && (body === 'chunked' || body.length > 0);
}
