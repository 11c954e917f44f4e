import { describe, expect, test } from 'vitest';
import { isSafe, methods } from '../../../src/http/canonical-request.ts';
import { buildFieldKinds, isIdentityField, isTrustableField, kindOf } from '../../../src/http/field-kinds.ts';
import { hopByHopNames } from '../../../src/http/field-list.ts';

/** A second, independent copy of the lists in src: a name must be removed in both. */
const words = (text: string) => text.trim().split(/\s+/);
const always = words(`
  aspfiltersessionid proxy x-accel-internal x-forwarded-method x-forwarded-path x-forwarded-prefix x-forwarded-uri
  x-astro-path x-invoke-path x-matched-path x-original-method x-original-path x-original-uri x-original-url x-override-url x-proxy-url
  x-request-uri x-rewrite-uri x-rewrite-url x-script-name x-url
`);
const unlessTrusted = words(`
  ali-cdn-real-ip cdn-src-ip cf-connecting-ip cf-connecting-ipv6 cf-pseudo-ipv4 cf-visitor client-ip
  client-cert client-cert-chain cloudfront-forwarded-proto cloudfront-viewer-address fastly-client-ip fly-client-ip forwarded
  forwarded-for forwarded-host forwarded-proto front-end-https incap-client-ip iv-creds iv-groups iv-user
  remote-addr remote-email remote-groups remote-name remote-user
  true-client-ip true-client-port x-anonymous-consumer x-appengine-user-ip x-arr-clientcert x-arr-ssl
  x-azure-clientip x-azure-socketip x-client-dn x-client-host x-client-ip x-client-verify x-cluster-client-address x-cluster-client-ip x-forwarded x-host x-host-override x-http-host x-http-host-override x-https x-middleware-rewrite x-nginx-proxy x-now-route-matches x-originating-ip x-port x-proto x-protocol x-proxy-host x-proxyuser-ip
  x-real-host x-real-ip x-real-port x-real-proto x-remote-addr x-remote-ip x-remote-user x-scheme
  x-secure x-sendfile-type x-server-name x-ssl x-ssl-cert x-true-client-ip x-true-ip x-url-scheme x-vhost
`);
const hopByHop = words(`
  connection http2-settings keep-alive proxy-authenticate proxy-authentication-info proxy-authorization
  proxy-connection te trailer transfer-encoding upgrade
`);
/** These frame, route or authorise a request, are conditions, or override the method: no configuration can trust them. */
const neverTrusted = words(`
  authorization content-encoding content-length content-type cookie expect host if-match if-modified-since
  if-none-match if-unmodified-since sec-websocket-key x-http-method x-http-method-override x-http-verb x-method-override
`);
const spellings = (name: string) => [
  name,
  name.toUpperCase(),
  name.replace(/(?:^|-)[a-z]/g, (start) => start.toUpperCase()),
];

test('the hop-by-hop and dropped names are exactly those of this file', () => {
  expect([...hopByHop].toSorted()).toEqual([...hopByHopNames].toSorted());
  const dropped = [...buildFieldKinds([])].flatMap(([name, kind]) =>
    kind === 'dropped' && name === name.toLowerCase() ? [name] : [],
  );
  const ownKind = ['connection', 'transfer-encoding', 'upgrade'];
  const expected = [...always, ...unlessTrusted, ...hopByHop.filter((name) => !ownKind.includes(name))];
  expect(dropped.toSorted()).toEqual(expected.toSorted());
});

describe('a request field that an upstream may misread or trust', () => {
  const kinds = buildFieldKinds([]);
  test.each([...always, ...unlessTrusted])('%s is dropped in lower, upper and mixed case', (name) => {
    expect(spellings(name).map((one) => kindOf(kinds, one))).toEqual(['dropped', 'dropped', 'dropped']);
  });

  test.each(hopByHop)('%s is not forwarded, and cannot be trusted', (name) => {
    expect(kindOf(kinds, name)).not.toBe('end-to-end');
    expect(isTrustableField(name)).toBe(false);
  });

  test.each([...always, ...neverTrusted])('%s cannot be trusted', (name) => {
    expect(spellings(name).map(isTrustableField)).toEqual([false, false, false]);
    expect(() => buildFieldKinds([name])).toThrow(`cannot be a trusted field: ${name}`);
  });

  test.each(unlessTrusted)('%s can be trusted', (name) => {
    expect(kindOf(buildFieldKinds([name.toUpperCase()]), name)).toBe('trusted');
  });
});

test.each(words('X-Auth-Subject x-shop-user Auth-Issuer X-Remote-User Remote-User X-1'))(
  '%s can be a field of the identity, and is then dropped from every request',
  (name) => {
    expect(spellings(name.toLowerCase()).map(isIdentityField)).toEqual([true, true, true]);
    const kinds = buildFieldKinds([], [name]);
    for (const one of [...spellings(name.toLowerCase()), name]) expect(kindOf(kinds, one)).toBe('dropped');
  },
);

test.each([
  ...words(
    'host content-length content-type content-x transfer-encoding connection upgrade te range date via',
  ),
  ...words('authorization cookie proxy-authorization proxy expect from if-match if-none-match if-x accept'),
  ...words('accept-language origin referer user-agent x-forwarded-for x-forwarded-user x-original-url store'),
  ...words('x-rewrite-url x-request-id forwarded x-http-method-override x-real-ip sec-fetch-site a_b a.b'),
  ...words('sec-websocket-protocol access-control-x x-accel-redirect x-sendfile traceparent x-csrf-token'),
  ...words('x-agent-authorization x-anonymous-customer-unique-id __proto__'),
  '',
])('%s cannot be a field of the identity', (name) => {
  expect(isIdentityField(name)).toBe(false);
  expect(() => buildFieldKinds([], [name])).toThrow(`cannot be a field of the identity: ${name}`);
});

test.each([
  ['accept', 'end-to-end'],
  ['x-shop', 'end-to-end'],
  ['x1', 'end-to-end'],
  ['az09-', 'end-to-end'],
  ['authorization', 'single'],
  ['if-modified-since', 'single'],
  ['if-unmodified-since', 'single'],
  ['x-http-method', 'method-override'],
  ['x-http-method-override', 'method-override'],
  ['x-method-override', 'method-override'],
  ['x-forwarded-anything', 'dropped'],
  ['x-original-anything', 'dropped'],
  ['sec-websocket-key', 'web-socket'],
  ...words('host connection upgrade content-length content-type transfer-encoding').map((name) => [
    name,
    name,
  ]),
  ...words('expect x-forwarded-for x-forwarded-proto x-request-id').map((name) => [name, name]),
  // PHP and CGI change these into other names.
  ...['a_b', 'a.b', 'a`', 'a{', 'a/', 'a:', 'a,', ''].map((name) => [name, 'dropped']),
])('%j: %s', (name, kind) => {
  expect(kindOf(buildFieldKinds([]), name)).toBe(kind);
});

test('a field that trusted proxies may always set keeps its kind if trustedFields names it', () => {
  const kinds = buildFieldKinds(['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Request-Id']);
  for (const name of ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-request-id'])
    expect(kindOf(kinds, name)).toBe(name);
});

test('only GET, HEAD and OPTIONS are safe', () => {
  expect(methods.filter(isSafe)).toEqual(['GET', 'HEAD', 'OPTIONS']);
});
