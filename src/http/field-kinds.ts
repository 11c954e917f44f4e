import { hopByHopNames } from './field-list.ts';

/** How a request field is handled. Names without a kind are `end-to-end`; names that are not plain are `dropped`. */
export type FieldKind =
  | 'end-to-end'
  /** End-to-end; may occur only once. */
  | 'single'
  | 'dropped'
  /** Set by a trusted peer and named in `trustedFields`: forwarded. From anybody else: dropped. */
  | 'trusted'
  | 'method-override'
  | 'web-socket'
  | (typeof ownKinds)[number]
  | 'x-forwarded-host';

export type FieldKinds = ReadonlyMap<string, FieldKind>;

const words = (text: string) => text.split(' ');

/**
 * Fields in which proxies tell a shop facts or give it orders. Clients must not set them. These are dropped from every peer:
 * they replace the request line, or command the server that gets them.
 */
const alwaysDropped = words(
  'aspfiltersessionid proxy x-accel-internal x-forwarded-method x-forwarded-path x-forwarded-prefix x-forwarded-uri ' +
    'x-astro-path x-invoke-path x-matched-path x-original-method x-original-path x-original-uri x-original-url x-override-url ' +
    'x-proxy-url x-request-uri x-rewrite-uri x-rewrite-url x-script-name x-url',
);

/** Forwarded from `trustedProxies` if `trustedFields` names them. A `*` at the end: all names with this prefix. */
const unlessTrusted = [
  'forwarded forwarded-for forwarded-host forwarded-proto x-forwarded x-forwarded-* x-original-*', // RFC 7239, its forerunners
  'client-ip true-client-ip true-client-port x-client-ip x-client-host x-true-client-ip x-true-ip', // Akamai, PHP
  'x-real-ip x-real-host x-real-port x-real-proto x-nginx-proxy x-accel-*', // nginx
  'x-cluster-client-ip x-cluster-client-address x-originating-ip x-proxyuser-ip', // Rackspace, Rails
  'x-remote-addr x-remote-ip', // Spring
  'cf-connecting-ip cf-connecting-ipv6 cf-pseudo-ipv4 cf-visitor cf-client-cert-*', // Cloudflare
  'cf-access-authenticated-user-*', // Cloudflare Access
  'fastly-client-ip fly-client-ip incap-client-ip ali-cdn-real-ip cdn-src-ip', // Fastly, Fly, Imperva, Alibaba
  'cloudfront-forwarded-proto cloudfront-viewer-address x-amzn-mtls-* x-amzn-oidc-*', // AWS
  'x-azure-clientip x-azure-socketip x-arr-ssl x-arr-clientcert x-ms-client-principal*', // Azure
  'x-appengine-user-ip x-goog-authenticated-user-*', // Google Cloud
  'x-host x-host-override x-http-host x-http-host-override x-proxy-host', // Symfony, WordPress
  'x-server-name x-vhost', // ASP.NET
  'front-end-https x-https x-port x-proto x-protocol x-scheme x-secure x-ssl x-url-scheme', // Exchange, Rack, Django
  'remote-addr remote-user remote-groups remote-name remote-email x-remote-user', // CGI, Authelia
  'client-cert client-cert-chain', // RFC 9440 section 3
  'ssl-client-* x-ssl-client-* x-ssl-cert x-client-cert* x-client-verify x-client-dn', // TLS guides of nginx, Apache, HAProxy
  'wl-proxy-*', // Oracle WebLogic plug-in
  'proxy-*', // Oracle iPlanet (Proxy-auth-cert, Proxy-user-dn)
  'x-envoy-*', // Envoy (internal only headers)
  'x-invoke-* x-middleware-subrequest* x-middleware-rewrite x-now-route-matches x-astro-*', // Next.js, Astro
  'x-sendfile-type', // Rack::Sendfile, CVE-2025-61780; with X-Accel-Mapping
  'x-auth-request-* x-webauth-* x-authentik-* tailscale-user-*', // oauth2-proxy, Grafana, authentik, Tailscale
  'x-consumer-* x-credential-* x-anonymous-consumer', // Kong
  'iv-user iv-groups iv-creds', // IBM WebSEAL
].flatMap(words);
const droppedStarts = unlessTrusted.flatMap((name) => (name.endsWith('*') ? name.slice(0, -1) : []));

/** Fields that ask for another method than that of the request line. */
const methodOverrides = words('x-http-method-override x-http-method x-method-override x-http-verb');

/** These are in the map in their usual spelling, too, so that the common request needs no lower-casing. */
const ordinary = words(
  'accept accept-encoding accept-language cache-control cookie if-match if-none-match origin pragma referer sec-fetch-dest ' +
    'sec-fetch-mode sec-fetch-site store traceparent user-agent x-anonymous-customer-unique-id',
);

/** Fields that are each a kind of their own; so is `x-forwarded-host` if `trustedFields` names it. */
const ownKinds = [
  'host',
  'connection',
  'upgrade',
  'content-length',
  'content-type',
  'transfer-encoding',
  'expect',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-request-id',
] as const;

/**
 * Kinds by field name, in lower case and in the usual spelling. `ownFields` are for shopward to set: they are dropped,
 * from any sender. Throws a TypeError that names the entry of `trustedFields` that must not be trusted (see
 * `isTrustableField`), or the one of `ownFields` that shopward must not set (see `isIdentityField`).
 */
export function buildFieldKinds(
  trustedFields: readonly string[],
  ownFields: readonly string[] = [],
): FieldKinds {
  const kinds = new Map<string, FieldKind>();
  const put = (names: readonly string[], kind: FieldKind) => {
    for (const name of names) kinds.set(name, kind).set(titleCase(name), kind);
  };
  put(ordinary, 'end-to-end');
  put(['authorization', 'if-modified-since', 'if-unmodified-since'], 'single');
  put([...hopByHopNames, ...alwaysDropped], 'dropped');
  for (const name of unlessTrusted) if (!name.endsWith('*')) put([name], 'dropped');
  put(methodOverrides, 'method-override');
  for (const kind of ownKinds) put([kind], kind);
  for (const field of trustedFields) {
    if (!isTrustableField(field)) throw new TypeError(`cannot be a trusted field: ${field}`);
    const name = field.toLowerCase();
    if (name === 'x-forwarded-host') put([name], name);
    else if (!believedAnyway.has(name)) put([name], 'trusted');
  }
  for (const field of ownFields) {
    if (!isIdentityField(field)) throw new TypeError(`cannot be a field of the identity: ${field}`);
    put([field.toLowerCase()], 'dropped');
  }
  return kinds;
}

const believedAnyway = new Set(['x-forwarded-for', 'x-forwarded-proto', 'x-request-id']);

/** Whether `trustedFields` may name the field: a plain name that neither frames, routes nor overrides the request. */
export function isTrustableField(field: string): boolean {
  const name = field.toLowerCase();
  if (!isPlainName(name) || hopByHopNames.includes(name) || alwaysDropped.includes(name)) return false;
  return !untrustable.has(name) && !name.startsWith('content-') && !name.startsWith('sec-websocket-');
}

const untrustable = new Set([
  ...words('authorization cookie expect host if-match if-none-match if-modified-since if-unmodified-since'),
  ...methodOverrides,
]);

/**
 * Whether `auth.forward` may name the field: a plain name without a meaning of its own. Names that a backend folds
 * into it (`_` and `.` for `-`) are not plain, and are dropped anyway.
 */
export function isIdentityField(field: string): boolean {
  const name = field.toLowerCase();
  if (meaningful.has(name) || meaningfulStart.test(name)) return false;
  return identityName.test(name) || kindOf(withoutSettings, name) === 'end-to-end';
}

/** Fields that name the user. From a client they are spoofed; `auth.forward` may use them. */
const identityName =
  /^(?:(?:x-)?remote-(?:user|groups|name|email)|iv-user|x-(?:auth-request|webauth|consumer)-.+)$/;

/** Request fields of the IANA registry, and others that frameworks and proxies act on. */
const meaningful = new Set([
  ...ordinary,
  ...words(
    'alt-used available-dictionary baggage date destination depth dpop early-data from host idempotency-key if ' +
      'last-event-id last-modified lock-token max-forwards overwrite prefer priority range referrer server set-cookie ' +
      'signature signature-input soapaction timeout tracestate trailers upgrade-insecure-requests vary via warning ' +
      'x-agent-authorization x-csrf-token x-requested-with x-xsrf-token',
  ),
]);
const meaningfulStart = /^(?:access-control-|accept|content-|http-|if-|proxy-|sec-|x-accel-|x-sendfile)/;

/** The kind of a field as it is spelled in the request. */
export function kindOf(kinds: FieldKinds, sent: string): FieldKind {
  const known = kinds.get(sent);
  if (known !== undefined) return known;
  const name = sent.toLowerCase();
  return kinds.get(name) ?? kindOfUnknown(name);
}

function kindOfUnknown(name: string): FieldKind {
  if (!isPlainName(name) || droppedStarts.some((start) => name.startsWith(start))) return 'dropped';
  if (name.endsWith('-method-override')) return 'method-override';
  return name.startsWith('sec-websocket-') ? 'web-socket' : 'end-to-end';
}

/**
 * PHP and CGI fold `_` and `.` into `-`, so a name with one of them could be read as another field. `name` is in lower
 * case.
 */
function isPlainName(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i);
    const isPlain = (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x2d;
    if (!isPlain) return false;
  }
  return name !== '';
}

function titleCase(name: string): string {
  return name.replace(/(?:^|-)[a-z]/g, (start) => start.toUpperCase());
}

const withoutSettings = buildFieldKinds([]);
