import { describe, expect, it } from 'vitest';
import { rowsOf } from '../../harness/text-table.ts';
import { keys, problemLines } from './config-folder.ts';

const durationText = 'must be a duration with a unit (ms, s, m, h or d), such as 250ms or 30s';
const sizeText = 'must be a size in bytes, or with a unit (B, KiB, MiB or GiB), such as 64KiB';
const upstreamText =
  'must be http:// or https:// with a host, perhaps a port and a path such as /api/v2, without query, user, escapes, empty and dot segments';
const originText = 'must be http:// or https:// with a host and perhaps a port, without path, query and user';
const templateText = 'must be a path of literals and {name}s such as /carts/{cart_id}';
const pathText = 'must be a path such as /url-resolver: no closing slash, query or {name}';

describe('a wrong line after valid keys', () => {
  const table = rowsOf(`
mode: enforced => 7: error: mode must be one of enforce, observe
mode: => 1: error: mode has no value
mode: null => 7: error: mode has no value
lisen: {} => 1: error: lisen is not a known key; did you mean listen?
PROTECTEDRESOURCES: x => 1: error: PROTECTEDRESOURCES is not a known key; did you mean protectedResources?
upstream: { engine: llhttp }
  13: error: upstream.engine is no longer a key: there is one HTTP client; remove it
entityTags: { resources: [{ collection: /a, member: "/a/{id}", freshFor: 1s }] }
  64: error: entityTags.resources[0].freshFor is no longer a key: a read always asks the shop; remove it
quux: {} => 1: error: quux is not a known key; remove it
__proto__: { a: 1 } => 1: error: __proto__ is not a known key; remove it
"a b": 1 => 1: error: "a b" is not a known key; remove it
listen: [] => 9: error: listen must be a map of keys and values
listen: { port: "80" } => 17: error: listen.port must be a whole number
listen: { port: 65536 } => 17: error: listen.port must be at most 65535
listen: { host: "a b" } => 17: error: listen.host must be an IP address or a host name
listen: { keepAliveTimeout: 75 } => 29: error: listen.keepAliveTimeout ${durationText}
listen: { keepAliveTimeout: 0s } => 29: error: listen.keepAliveTimeout must be at least 1ms
listen: { keepAliveTimeout: 25d } => 29: error: listen.keepAliveTimeout must be at most 24d
listen: { tls: { cert: a.pem } } => 11: error: listen.tls.key is required
admin: { port: 8080 } => 16: error: admin.port must not be the port of another listener
admin: true => 8: error: admin must be a map of keys and values, or false
admin: { host: 0.0.0.0 }
  1: error: admin.token is required when admin.host is not a loopback address
  1: error: admin.hosts must name the hosts by which the admin port is addressed when admin.host is not a loopback address
${['127.0.0.2', '"::1"', 'localhost'].map((host) => `admin: { host: ${host} }\n  -`).join('\n')}
admin: { token: "a b" } => 17: error: admin.token must be of visible ASCII characters
authorize: true => 12: error: authorize must be a map of keys and values, or false
authorize: { listen: { port: 0 } } => 30: error: authorize.listen.port must be at least 1
authorize: { listen: { port: 8080 } }
  12: warning: authorize answers each question with 403: trustedProxies is empty
  30: error: authorize.listen.port must not be the port of another listener
authorize: { listen: { port: 8081 } }
  12: warning: authorize answers each question with 403: trustedProxies is empty
  30: error: authorize.listen.port must not be the port of another listener
workers: 0 => 10: error: workers must be at least 1
workers: many => 10: error: workers must be a whole number, or auto
request: { encodedSlash: [carts] } => 27: error: request.encodedSlash[0] ${templateText}; a path begins with "/"
request: { encodedSlash: ["/a/{b}/{b}"] }
  27: error: request.encodedSlash[0] ${templateText}; the parameter {b} occurs twice in one path
request: { ignoredPrefixes: ["/a;b"] }
  30: error: request.ignoredPrefixes[0] ${pathText}; "a;b": leave out ";" and what follows; matching ignores it
request: { ignoredPrefixes: ["/.."] }
  30: error: request.ignoredPrefixes[0] ${pathText}; ".." can never match: dot segments are refused
urlResolver: { path: "/a*b" }
  22: error: urlResolver.path ${pathText}; "a*b": a wildcard is {name} for one segment, or ** as the last segment
refreshTokens: { endpoints: [{ kind: issue, method: POST, path: "/x%2Fy" }] }
  65: error: refreshTokens.endpoints[0].path ${templateText}; "x%2Fy" can never match: an encoded "/" is refused
upstream: { url: "https://shop", tls: { cert: gone.pem } }
  34: error: upstream.tls.key is needed as well: a client certificate has a private key
upstream: { url: "http://shop", tls: { serverName: shop.example } }
  38: error: upstream.tls has no effect: upstream.url is http
upstream: { url: "https://shop", tls: { serverName: "shop:443" } }
  53: error: upstream.tls.serverName must be a host name
publicUrl: https://shop.example/api => 12: error: publicUrl ${originText}
upstream: { url: "http://u:hunter2@shop" } => 18: error: upstream.url ${upstreamText}
upstream: { url: "http://shop/a/../b" } => 18: error: upstream.url ${upstreamText}
upstream: { url: "http://127.0.0.1:8080" }
  18: error: upstream.url is the public listener itself (listen.port)
trustedProxies: [10.0.0.0/33]
  18: error: trustedProxies[0] must be an IP address or a range such as 10.0.0.0/8
trustedProxies: 10.0.0.0/8 => 17: error: trustedProxies must be a list
trustedFields: [Authorization]
  17: error: trustedFields[0] must not be a field that frames, routes or authorises a request
trustedFields: [X_Real] => 17: error: trustedFields[0] must be a field name of letters, digits and -
store: { url: "redis://:hunter2@h:99999" } => 15: error: store.url has a malformed host or port
store: { url: "redis+sentinel://h1,h2" } => 15: error: store.url names no primary: redis+sentinel://h1,h2/name
store: { url: memcached }
  15: error: store.url must have one of the forms redis://host:port/db, rediss://…, redis+cluster://h1,h2, redis+sentinel://h1,h2/name
store: { tls: { key: gone.pem } }
  10: error: store.tls.cert is needed as well: a client certificate has a private key
store: { url: "redis+sentinel://h1,h2/shop" }
  1: warning: store.replicas is 0 behind Sentinel: a failover may forget the claim of a write under way, and an update can be lost
protectedResources: 1 => 21: error: protectedResources must be a text
protectedResources: gone.yaml => 21: error: protectedResources names gone.yaml: there is no such file
protectedResources: . => 21: error: protectedResources names .: it is not a regular file
entityTags: true => 13: error: entityTags must be a map of keys and values, or false
entityTags: { lease: 3s, wait: 1s }
  22: error: entityTags.lease must be longer than entityTags.sendBy, store.timeout and 0.5s together
entityTags: { lease: 3001ms, wait: 1s } => -
store: { timeout: 12499ms } => -
entityTags: { wait: 16s } => 21: error: entityTags.wait must not be longer than entityTags.lease
entityTags: { resources: [{ collection: /carts, member: "/carts/{id}", nonMembers: [search, a/b] }] }
  93: error: entityTags.resources[0].nonMembers[1] must be one segment of a path, such as search
entityTags: { resources: [{ collection: /carts, member: "/carts/{id}", batch: lenient }] }
  79: error: entityTags.resources[0].batch must be one of refuse, guarded
entityTags: { resources: [] } => 26: error: entityTags.resources must have at least one item
entityTags: { resources: [{ collection: /carts, member: "/cart/{id}" }] }
  57: error: entityTags.resources[0].member must be the collection and one {name}, such as /carts/{id}
entityTags: { resources: [{ collection: /carts, member: "/carts/{id}", methods: [GET] }] }
  82: error: entityTags.resources[0].methods[0] must be one of PATCH, DELETE, PUT, POST
urlResolver: { source: urls.txt }
  24: error: urlResolver.source must be upstream, a mapping file in CSV (urls.csv), or [file, upstream]; write a JSON or YAML file as CSV
urlResolver: { source: gone.csv } => 24: error: urlResolver.source names gone.csv: there is no such file
urlResolver: { maxEntries: 10000001 } => 28: error: urlResolver.maxEntries must be at most 10000000
rateLimits: { rows: [{ method: ANY, path: "/a/**/b", requests: 1, per: 1s }] }
  43: error: rateLimits.rows[0].path must be a path of literals and {name}s, perhaps with ** at its end, such as /uploads/**; "**": a wildcard is {name} for one segment, or ** as the last segment
urlResolver: { path: /Protected-Resources }
  22: error: urlResolver.path must not be the path of protectedResourcesPath
refreshTokens: { retention: never } => 29: error: refreshTokens.retention ${durationText}, or keep
refreshTokens: { endpoints: [{ kind: issue, method: POST }] }
  30: error: refreshTokens.endpoints[0].path is required
refreshTokens: { endpoints: [{ kind: exchange, method: POST, path: /a }, { kind: exchange, method: POST, path: /A }] }
  74: error: refreshTokens.endpoints[1] names an endpoint that an earlier row names
refreshTokens: { replay: end-family, leeway: 0s }
  46: warning: refreshTokens.leeway is 0s while replay is end-family: two tabs that send the same token sign their user out; 10s prevents this
entityTags: { resources: [{ collection: /carts, member: "/carts/{id}" }, { collection: /carts, member: "/carts/{a}" }] }
  104: error: entityTags.resources[1].member names a resource that an earlier row names
entityTags: { resources: [{ collection: /carts, member: "/carts/{id}" }, { collection: "/Carts/{a}/items", member: "/Carts/{a}/items/{id}" }] }
  88: error: entityTags.resources[1].collection lies below the member of another row: track one of the two
limits: { requestBody: 2MB } => 24: error: limits.requestBody ${sizeText}
cors: { origins: ["https://shop.example/"] }
  19: error: cors.origins[0] must be an origin as browsers send it (https://shop.example, in lower case, without a path), or * alone
cors: { origins: ["*"], credentials: true }
  38: error: cors.credentials must not be true with the origin *: every page could act with the cookies of its visitors
cors: { origins: ["*", "https://shop.example"] }
  18: error: cors.origins has * and other origins: write * alone, or name each origin
rejections: { acces-token-missing: {} }
  15: error: rejections.acces-token-missing is not a known key; did you mean access-token-missing?
rejections: { access-token-missing: { status: 200 } }
  47: error: rejections.access-token-missing.status must be at least 400
log: { level: verbose } => 15: error: log.level must be one of trace, debug, info, warn, error, fatal, silent
workers: 2 => 10: error: workers needs a shared store (store.url): the memory store belongs to one process
`);

  it.concurrent.for(table)('%s', async ([line, problems], test) => {
    const lines = await problemLines(`${keys}\n${line}\n`, { test });
    expect(lines).toEqual(problems.map((problem) => `c.yaml:2:${problem}`));
  });
});

describe('keys, algorithms and issuers', () => {
  const long = 'x'.repeat(32);
  const a = 'issuer: "https://a", keys: { jwks: "https://a/k" }';
  const asked = 'introspection: { url: "https://b/i", clientId: x, clientSecret: y }';
  const twoIssuers =
    'issuers: [{ issuer: "a", keys: { jwks: "https://a/b" } }, { issuer: "b", keys: { jwks: "https://b/b" } }]';
  const table = rowsOf(`
mode: enforce => 1:1: error: auth is required
auth: {} => 1:1: error: auth.keys is required
auth: { keys: {} } => 1:15: error: auth.keys must have exactly one of jwks, files, secret and discover
auth: { keys: { jwks: "https://a/b", secret: ${long} } }
  1:15: error: auth.keys must have exactly one of jwks, files, secret and discover
auth: { keys: { jwks: "https://a/b" }, proof: mtls }
trustedFields: [Client-Cert]
  1:47: error: auth.proof is mtls, but no client certificate can arrive: set listen.tls, or trustedProxies and trustedFields: [Client-Cert]
auth: { keys: { jwks: "https://a/b" }, proof: any }
trustedFields: [Client-Cert]
  1:47: error: auth.proof is any, but no client certificate can arrive: set listen.tls, or trustedProxies and trustedFields: [Client-Cert]
auth: { keys: { jwks: "https://a/b" }, proof: any }
trustedFields: [client-cert]
trustedProxies: [10.0.0.1] => -
auth: { keys: { jwks: "https://a/b" }, proofNonceSecret: ${long} }
  1:58: error: auth.proofNonceSecret has no effect: it needs auth.proof: dpop or any
auth: { keys: { jwks: "https://a/b" }, proof: dpop, proofNonceSecret: short }
  1:71: error: auth.proofNonceSecret must have at least 32 characters
auth: { keys: { files: [] } } => 1:24: error: auth.keys.files must have at least one item
auth: { keys: { files: [a.pem] } } => 1:25: error: auth.keys.files[0] names a.pem: there is no such file
auth: { keys: { jwks: "https://u@a/b" } }
  1:23: error: auth.keys.jwks must be an http:// or https:// URL without user and fragment
auth: { keys: { jwks: "https://a:99999/b" } }
  1:23: error: auth.keys.jwks must be an http:// or https:// URL without user and fragment
auth: { algorithms: [HS256], keys: { secret: "-----BEGIN PUBLIC KEY-----MIIBIjANBgk" } }
  1:46: error: auth.keys.secret is PEM, not a secret; name public keys in auth.keys.files
auth: { algorithms: [none], keys: { jwks: "https://a/b" } }
  1:22: error: auth.algorithms[0] must be one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519, HS256, HS384, HS512
auth: { algorithms: [], keys: { jwks: "https://a/b" } }
  1:21: error: auth.algorithms must have at least one item
auth: { algorithms: [HS256], keys: { jwks: "https://a/b" } }
  1:22: error: auth.algorithms[0] HS256 needs keys.secret
auth: { keys: { secret: ${long} } } => 1:1: error: auth.algorithms[0] RS256 does not work with keys.secret
auth: { algorithms: [HS256, RS256], keys: { secret: ${long} } }
  1:29: error: auth.algorithms[1] RS256 does not work with keys.secret
auth: { algorithms: [HS256], keys: { secret: hunter2 } }
  1:46: error: auth.keys.secret must have at least 32 bytes for HS256 (RFC 7518 section 3.2)
auth: { keys: { jwks: "http://shop.example/jwks" } }
  1:23: warning: auth.keys.jwks is fetched without TLS: an attacker on the network can replace the keys, and so sign tokens
auth: { keys: { jwks: "http://127.0.0.1:1/jwks" } } => -
auth: { keys: { jwks: "http://[::1]:1/jwks" } } => -
auth: { algorithms: [HS256], keys: { secret: ${long} } } => -
auth: { forward: { subject: X-User }, ${twoIssuers} }
  1:9: error: auth.forward.issuer is required if there are several issuers: two issuers may use one subject for different users
auth: { forward: { subject: X-User, issuer: X-Issuer }, ${twoIssuers} } => -
auth: { forward: { scopes: X-Scopes }, ${twoIssuers} } => -
auth: { issuers: [{ ${a} }, { issuer: "https://b", ${asked} }] } => -
auth: { issuers: [] } => 1:18: error: auth.issuers must have at least one item
auth: { issuers: [{ issuer: "https://a" }] }
  1:19: error: auth.issuers[0].keys is required unless introspection is set
auth: { ${a}, issuers: [{ ${a} }] }
  1:17: error: auth.issuer must not be set together with auth.issuers: move it into an entry
  1:36: error: auth.keys must not be set together with auth.issuers: move it into an entry
auth: { issuers: [{ ${a} }, { ${a} }] }
  1:85: error: auth.issuers[1].issuer is the same as in an earlier entry
auth: { issuers: [{ ${a}, name: issuer-2 }, { issuer: "https://b", keys: { discover: true } }] }
  1:91: error: auth.issuers[1].name is the same as in an earlier entry
auth: { issuers: [{ ${a}, name: "A b" }] }
  1:79: error: auth.issuers[0].name must be up to 31 small letters, digits and -
auth: { issuers: [{ issuer: "https://a", ${asked} }, { issuer: "https://b", ${asked} }] }
  1:151: error: auth.issuers[1].introspection is already in issuer-1: opaque tokens name no issuer, so only one entry may have introspection
auth: { issuers: [{ ${a}, algorithms: [HS256] }] }
  1:86: error: auth.issuers[0].algorithms[0] HS256 needs keys.secret
auth: { keys: { discover: true } }
  1:27: error: auth.keys.discover needs auth.issuer to be an https:// URL without query and fragment (RFC 8414 section 2)
auth: { issuers: [{ issuer: shop, keys: { discover: true } }] }
  1:53: error: auth.issuers[0].keys.discover needs auth.issuers[0].issuer to be an https:// URL without query and fragment (RFC 8414 section 2)
auth: { issuer: "http://id.example", keys: { discover: true } }
  1:17: warning: auth.issuer is asked for its keys without TLS: an attacker on the network can replace the keys, and so sign tokens
auth: { introspection: { url: "http://id.example", clientId: x, clientSecret: y } }
  1:31: warning: auth.introspection.url is asked without TLS: an attacker on the network can forge the answers, and read tokens and clientSecret
auth: { issuers: [{ issuer: "https://a", keys: { files: [gone.pem] } }] }
  1:58: error: auth.issuers[0].keys.files[0] names gone.pem: there is no such file
`);

  it.concurrent.for(table)('%s', async ([text, problems], test) => {
    expect(await problemLines(`${text}\n`, { test })).toEqual(problems.map((one) => `c.yaml:${one}`));
  });
});

describe('files that are no configuration', () => {
  const table: readonly (readonly [string, string | Uint8Array, readonly string[]])[] = [
    ['empty', '', ['c.yaml:1:1: error: the file is empty']],
    ['only a comment', '# nothing\n', ['c.yaml:1:1: error: the file is empty']],
    ['null', 'null\n', ['c.yaml:1:1: error: the file must be a map of keys and values']],
    ['a list', '- a\n', ['c.yaml:1:1: error: the file must be a map of keys and values']],
    ['a key twice', 'mode: enforce\nmode: observe\n', ['c.yaml:2:1: error: this key occurs twice']],
    [
      'two documents',
      'mode: enforce\n---\nmode: observe\n',
      ['c.yaml:2:1: error: only one document is allowed in this file'],
    ],
    [
      'an unknown tag',
      'mode: !hunter2 x\n',
      ['c.yaml:1:7: error: unknown tag; put quotes around a value that begins with !'],
    ],
    [
      'a malformed alias',
      'mode: *\n',
      ['c.yaml:1:7: error: a malformed alias; put quotes around a value that begins with *'],
    ],
    [
      'nesting that is too deep',
      `a: ${'['.repeat(20_000)}`,
      [expect.stringMatching(/^c\.yaml:1:\d+: error: this is nested too deeply$/)],
    ],
    ['a list as key', '[a]: b\n', ['c.yaml:1:1: error: a key must be plain text']],
    [
      'not UTF-8',
      Uint8Array.of(0x61, 0xff),
      ['c.yaml:1:1: error: the configuration cannot be read: it is not UTF-8'],
    ],
    [
      'too large',
      `#${'x'.repeat(1024 * 1024)}`,
      ['c.yaml:1:1: error: the configuration cannot be read: it is larger than 1048576 bytes'],
    ],
    [
      'an alias',
      'mode: &a enforce\nlog: { level: *a }\n',
      [
        'c.yaml:1:1: error: auth is required',
        'c.yaml:2:15: error: log.level must not be an alias; write the value out',
      ],
    ],
  ];

  it.concurrent.for(table)('%s', async ([_name, text, problems], test) => {
    expect(await problemLines(text, { test })).toEqual(problems);
  });
});

it('finds ten mistakes at once, in the order of the file', async () => {
  const text = `mode: observed
listen:
  prot: 80
  keepAliveTimeout: 75
upstream: { url: shop, connections: 0 }
trustedProxies: [10.0.0.0/99]
auth: { algorithms: [none] }
urlResolver: { ttl: 5 }
limits:
  requestBody: lots
`;
  const lines = await problemLines(text);
  expect(lines.map((line) => line.split(' ').slice(0, 3).join(' '))).toEqual([
    'c.yaml:1:7: error: mode',
    'c.yaml:3:3: error: listen.prot',
    'c.yaml:4:21: error: listen.keepAliveTimeout',
    'c.yaml:5:18: error: upstream.url',
    'c.yaml:5:37: error: upstream.connections',
    'c.yaml:6:18: error: trustedProxies[0]',
    'c.yaml:7:1: error: auth.keys',
    'c.yaml:7:22: error: auth.algorithms[0]',
    'c.yaml:8:21: error: urlResolver.ttl',
    'c.yaml:10:16: error: limits.requestBody',
  ]);
});

it('never repeats a value, which may be a secret', async () => {
  const secret = 'hunter2-canary';
  const text = `auth: { algorithms: ["${secret}"], keys: { secret: "${secret}" }, clockTolerance: "${secret}" }
store: { url: "redis://:${secret}@h:x", timeout: "${secret}" }
upstream: { url: "http://u:${secret}@h" }
admin: { host: "${secret} 1", token: "${secret} 1", port: "\${PORT}" }
cors: { origins: ["${secret}"] }
log: { level: "\${LEVEL}" }
`;
  const lines = await problemLines(text, { env: { PORT: secret, LEVEL: secret } });
  expect(lines.length).toBeGreaterThan(7);
  expect(lines.join('\n')).not.toContain('hunter2');
});
