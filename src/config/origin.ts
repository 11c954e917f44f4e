/** Scheme, host and port of a URL, taken apart once. */
export interface Origin {
  readonly scheme: 'http' | 'https';
  /** Lower case; an IPv6 address without its brackets. */
  readonly hostname: string;
  readonly port: number;
  /** `scheme://host[:port]`, without the scheme's default port. */
  readonly origin: string;
}

const pattern =
  /^(https?):\/\/(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9._-]{0,252}[a-z0-9_])?)(?::(\d{1,5}))?\/?$/i;

/**
 * Reads an http(s) origin (RFC 6454 section 6.1; one closing slash is forgiven). Undefined when it is anything else: a
 * path, a query, userinfo, another scheme, a port outside 1-65535.
 */
export function parseOrigin(text: string): Origin | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const scheme = match[1]?.toLowerCase() === 'https' ? 'https' : 'http';
  const host = (match[2] ?? '').toLowerCase();
  const defaultPort = scheme === 'https' ? 443 : 80;
  const port = match[3] === undefined ? defaultPort : Number(match[3]);
  if (port < 1 || port > 65_535) return undefined;
  const hostname = host.startsWith('[') ? host.slice(1, -1) : host;
  return { scheme, hostname, port, origin: `${scheme}://${host}${port === defaultPort ? '' : `:${port}`}` };
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|::1|0:0:0:0:0:0:0:1|::ffff:127(\.\d{1,3}){3})$/i;

/** Whether a host can only be reached from this machine. */
export function isLoopback(hostname: string): boolean {
  return loopback.test(hostname);
}

const linkLocal = /^(169\.254\.|fe[89ab][0-9a-f]:|metadata\.google\.internal$)/i;

/** Whether a host is link-local (RFC 3927, RFC 4291 section 2.5.6): there clouds answer with a machine's credentials. */
export function isLinkLocal(hostname: string): boolean {
  return linkLocal.test(hostname);
}
