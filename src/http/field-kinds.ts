import { hopByHopNames } from './field-list.ts';

/** How a request field is handled. Other names are `end-to-end`, or `dropped` if they are odd. */
export type FieldKind =
  | 'end-to-end'
  /** End-to-end, and may stand once only. */
  | 'single'
  | 'dropped'
  /** Set by a trusted peer and named in `trustedFields`: forwarded. From anybody else: dropped. */
  | 'trusted'
  | 'method-override'
  | 'web-socket'
  | 'host'
  | 'connection'
  | 'upgrade'
  | 'content-length'
  | 'content-type'
  | 'transfer-encoding'
  | 'expect'
  | 'x-forwarded-for'
  | 'x-forwarded-proto'
  | 'x-forwarded-host'
  | 'x-request-id';

export type FieldKinds = ReadonlyMap<string, FieldKind>;

/**
 * Fields that some upstream takes for the request line, for the client's address, for the host, port or scheme that it
 * was asked by, or for its own settings (`Proxy`: CGI programs): what Symfony, Laravel, WordPress and other PHP, Rails
 * and Rack, Django, Spring and Tomcat, Express, ASP.NET, and the proxies and CDNs in front of them set or read. All
 * `X-Forwarded-*` and `X-Original-*` are dropped as well, by their prefix.
 */
const spoofable = {
  always: [
    'proxy',
    'x-accel-internal',
    'x-forwarded-method',
    'x-forwarded-path',
    'x-forwarded-prefix',
    'x-forwarded-uri',
    'x-original-method',
    'x-original-path',
    'x-original-uri',
    'x-original-url',
    'x-override-url',
    'x-proxy-url',
    'x-request-uri',
    'x-rewrite-uri',
    'x-rewrite-url',
    'x-script-name',
    'x-url',
  ],
  unlessTrusted: [
    'cf-connecting-ip',
    'cf-connecting-ipv6',
    'client-ip',
    'fastly-client-ip',
    'forwarded',
    'true-client-ip',
    'x-client-ip',
    'x-cluster-client-ip',
    'x-real-ip',
    // Other spellings of the client's address.
    'ali-cdn-real-ip',
    'cdn-src-ip',
    'cf-pseudo-ipv4',
    'cf-visitor',
    'cloudfront-forwarded-proto',
    'cloudfront-viewer-address',
    'fly-client-ip',
    'incap-client-ip',
    'true-client-port',
    'wl-proxy-client-ip',
    'wl-proxy-ssl',
    'x-appengine-user-ip',
    'x-arr-ssl',
    'x-azure-clientip',
    'x-azure-socketip',
    'x-client-host',
    'x-cluster-client-address',
    'x-envoy-external-address',
    'x-forwarded',
    'x-host',
    'x-host-override',
    'x-http-host',
    'x-http-host-override',
    'x-nginx-proxy',
    'x-original-for',
    'x-original-forwarded-for',
    'x-original-host',
    'x-original-proto',
    'x-original-remote-addr',
    'x-originating-ip',
    'x-proxy-host',
    'x-proxyuser-ip',
    'x-real-host',
    'x-real-port',
    'x-real-proto',
    'x-remote-addr',
    'x-remote-ip',
    'x-remote-user',
    'x-ssl',
    'x-true-client-ip',
    'x-true-ip',
    // Whether it came over TLS, and by which name and port.
    'forwarded-for',
    'forwarded-host',
    'forwarded-proto',
    'front-end-https',
    'remote-addr',
    'remote-user',
    'x-https',
    'x-port',
    'x-proto',
    'x-protocol',
    'x-scheme',
    'x-secure',
    'x-server-name',
    'x-url-scheme',
    'x-vhost',
  ],
};

/** These are in the map in their usual spelling, too, so that the common request needs no lower-casing. */
const ordinary = [
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'cookie',
  'if-match',
  'if-none-match',
  'origin',
  'pragma',
  'referer',
  'sec-fetch-dest',
  'sec-fetch-mode',
  'sec-fetch-site',
  'store',
  'traceparent',
  'user-agent',
  'x-anonymous-customer-unique-id',
];

/** Kinds with the name of their one field; `x-forwarded-host` is one only from a trusted peer. */
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
 * whoever sends them. Throws a TypeError that names the entry of `trustedFields` that must not be trusted (see
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
  put([...hopByHopNames, ...spoofable.always, ...spoofable.unlessTrusted], 'dropped');
  put(['x-http-method-override', 'x-http-method', 'x-method-override'], 'method-override');
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
  if (!isPlainName(name) || hopByHopNames.includes(name) || spoofable.always.includes(name)) return false;
  return !untrustable.has(name) && !name.startsWith('content-') && !name.startsWith('sec-websocket-');
}

const untrustable = new Set([
  'authorization',
  'cookie',
  'expect',
  'host',
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
]);

/**
 * Whether `auth.forward` may name the field: a plain name without a meaning of its own. Names that a backend folds
 * into it (`_` and `.` for `-`) are not plain, and are dropped anyway.
 */
export function isIdentityField(field: string): boolean {
  const name = field.toLowerCase();
  if (remoteUserNames.includes(name)) return true;
  return (
    !meaningful.has(name) && !meaningfulStart.test(name) && kindOf(withoutSettings, name) === 'end-to-end'
  );
}

/** Fields that name the user. From a client they are spoofed; `auth.forward` may use them. */
const remoteUserNames = ['remote-user', 'x-remote-user'];

/** Request fields of the IANA registry, and others that frameworks and proxies act on. */
const meaningful = new Set([
  ...ordinary,
  ...['alt-used', 'available-dictionary', 'baggage', 'date', 'destination', 'depth', 'dpop', 'early-data'],
  ...[
    'from',
    'host',
    'idempotency-key',
    'if',
    'last-event-id',
    'last-modified',
    'lock-token',
    'max-forwards',
  ],
  ...['overwrite', 'prefer', 'priority', 'range', 'referrer', 'server', 'set-cookie', 'signature'],
  ...[
    'signature-input',
    'soapaction',
    'timeout',
    'tracestate',
    'trailers',
    'upgrade-insecure-requests',
    'vary',
  ],
  ...['via', 'warning', 'x-agent-authorization', 'x-csrf-token', 'x-requested-with', 'x-xsrf-token'],
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
  if (!isPlainName(name) || name.startsWith('x-forwarded-') || name.startsWith('x-original-'))
    return 'dropped';
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

/** The kind of each name if nothing is configured. */
const withoutSettings = buildFieldKinds([]);
