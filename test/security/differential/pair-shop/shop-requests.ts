import fc from 'fast-check';
import { pathOf, type ShopRoute, shopRoutes } from './shop-routes.ts';

/** A request as a client sends it, octets as latin-1. */
export interface ClientRequest {
  readonly method: string;
  readonly target: string;
  readonly fields: readonly string[];
  readonly body: string;
  /** With a valid access token. */
  readonly isSignedIn: boolean;
}

/** A refresh token that was exchanged before any of these requests. */
export const usedToken = 'q8Zt5V0cN2rLx7YfKdWm3JhTs9GbUe4oPaXiRv6yE1n';

type Segments = readonly string[];
/** Changes the segments at a position that depends on `at`. */
type Mutation = (segments: Segments, at: number, chunk: string) => Segments;

const versions = [
  ...['v1', 'v0', 'v0.42', 'v12.7', 'V1', '1', '1.0', '0', '0.0', '1.2.3', 'api2', 'v%30', 'v1;x', 'v1.'],
  ...['v', 'v1.x', '%761', 'v01', 'v1%2e0'],
];
const prefixes = [
  ...['index.php', 'INDEX.PHP', 'index.php;x', 'index%2ephp', '/index.php', 'index.php/', 'index.php//'],
  ...[...'index.php/index.php index.phpv0 index.phpv1.0 index.php/v0 v0/index.php v0/v0'.split(' '), 'v1/v0'],
];
const mild = ['mine', '1', 'x', '17', 'carts', 'stores', 'items', ';x=1', 'v1', 'a%20b', 'x.json', '~', ':'];
const odd = [
  ...['', ' ', ...'%20 . .. %2e %2e%2e ... ; ;x=1'.split(' '), '\\', ...'%5c %2f %00 %252f *'.split(' ')],
  ...['mine', '1', 'x', '0', '%25', '?', '~', 'carts', 'stores', '%C5%BF', '%ff', '\xff', '|', '{x}', ':'],
];

const within =
  (change: (segment: string, chunk: string) => string): Mutation =>
  (segments, at, chunk) =>
    segments.with(at % segments.length, change(segments[at % segments.length] ?? '', chunk));
const escapeOf = (letter: string) => `%${letter.charCodeAt(0).toString(16)}`;

const mutationKinds: Readonly<Record<string, Mutation>> = {
  'a version in front': (segments, at) => [versions[at % versions.length] ?? '', ...segments],
  'a prefix': (segments, at) => [prefixes[at % prefixes.length] ?? '', ...segments],
  'a prefix, glued': (segments, at) => [
    `${['index.php', 'index.phpv0/', 'INDEX.php', 'index.php;'][at % 4]}${segments[0]}`,
    ...segments.slice(1),
  ],
  'an item form': (segments, at) => [...segments, ['x', 'mine', '1', ''][at % 4] ?? ''],
  'two more after': (segments, at, chunk) => [...segments, 'x', at % 2 === 0 ? 'y' : chunk],
  'a suffix': (segments, at) =>
    segments.with(-1, segments.at(-1) + (['.json', '.xml', '.php', '.', '%2ejson', '.json;x'][at % 6] ?? '')),
  'an empty or odd segment': (segments, at, chunk) =>
    segments.toSpliced(at % (segments.length + 1), 0, at % 2 === 0 ? '' : chunk),
  'another id': within((_, chunk) => chunk),
  'another case': within((segment) => segment.toUpperCase()),
  'a capital letter': within((segment) => segment.slice(0, 1).toUpperCase() + segment.slice(1)),
  'an escaped letter': within((segment) => segment.replace(/[a-z]/, escapeOf)),
  'all letters escaped': within((segment) => segment.replace(/[a-z]/g, escapeOf)),
  'escaped twice': within((segment) => segment.replace(/[a-z]/, (one) => escapeOf(one).replace('%', '%25'))),
  'a long s': within((segment) => segment.replace('s', '%C5%BF')),
  'something after a segment': within((segment, chunk) => segment + chunk),
  'something before a segment': within((segment, chunk) => chunk + segment),
  'params after a segment': within((segment) => `${segment};a=b`),
  'an alias of itself': (segments) => [segments[0] ?? '', 'x', ...segments],
  'a pair of something else in front': (segments, at) => [
    ['stores', 'x', 'guest-carts', '', 'url-resolver', 'access-tokens'][at % 6] ?? '',
    '1',
    ...segments,
  ],
  'a pair in the middle': (segments, at, chunk) => segments.toSpliced(2 * (at % 3), 0, 'y', chunk),
  'slashes in front': (segments, at) => [...Array<string>((at % 3) + 1).fill(''), ...segments],
  'slashes after': (segments, at) => [...segments, ...Array<string>((at % 3) + 1).fill('')],
  'a backslash in front': (segments) => [`\\${segments[0]}`, ...segments.slice(1)],
  'a backslash after': (segments) => segments.with(-1, `${segments.at(-1)}\\`),
  'a dot segment': (segments, at) =>
    segments.toSpliced(at % (segments.length + 1), 0, ...(at % 2 === 0 ? ['.'] : ['x', '..'])),
};

const mutations = fc.array(
  fc.tuple(
    fc.constantFrom(...Object.keys(mutationKinds)),
    fc.nat(30),
    fc.constantFrom(...mild, ...mild, ...odd),
  ),
  { maxLength: 3 },
);

const queries = [
  ...Array<string>(24).fill(''),
  ...[
    ...'? ?include=items ?a=b&c ?include= ?_methods=DELETE ?_method=DELETE ?_method=PATCH'.split(' '),
    '?%5fmethod=GET',
  ],
  ...[
    ...'?_method[]=PATCH ?a=1&_method=patch ?.method=PATCH ?/carts/1 ?a=/../carts'.split(' '),
    '?;_method=PATCH',
  ],
];
const methods = ['GET', 'POST', 'PATCH', 'DELETE', 'HEAD', 'PUT', 'OPTIONS', 'QUERY', 'get', 'TRACE'];
const form = 'Content-Type: application/x-www-form-urlencoded';
const jsonApi = 'Content-Type: application/vnd.api+json';
const json = '{"data":{"type":"carts","attributes":{}}}';
const multipart = (name: string, value: string) =>
  `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n--b--\r\n`;

/** Fields and a body that may change a POST into another method. */
const overrides = fc
  .tuple(fc.constantFrom('PATCH', 'DELETE', 'GET', 'patch', 'Delete', 'POST'), fc.nat(11))
  .map(([method, kind]): readonly [readonly string[], string] => {
    const spellings: (readonly [readonly string[], string])[] = [
      [[`X-HTTP-Method-Override: ${method}`, jsonApi], json],
      [[`x-http-method-override:${method}`], ''],
      [[`X-HTTP-Method: ${method}`, jsonApi], json],
      [[`X_HTTP_METHOD_OVERRIDE: ${method}`, jsonApi], json],
      [[`X-HTTP-Method_Override: ${method}`, jsonApi], json],
      [[form], `_method=${method}`],
      [[form], `a=b&%5Fmethod=${method}`],
      [['Content-Type: Application/X-WWW-Form-Urlencoded;charset=x'], `_method=${method}`],
      [['Content-Type: multipart/form-data; boundary=b'], multipart('_method', method)],
      [['Content-Type: text/plain', 'Content-Type: application/x-www-form-urlencoded'], `_method=${method}`],
      [['Content-Type: application/x-www-form-urlencoded, text/plain'], `_method=${method}`],
      [[`X-HTTP-Method-Override: ${method}`, `X-HTTP-Method-Override: ${method}`], ''],
    ];
    return spellings[kind] ?? [[], ''];
  });
const bodies: fc.Arbitrary<readonly [readonly string[], string]> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<readonly [readonly string[], string]>([[jsonApi], json]) },
  { weight: 2, arbitrary: fc.constant<readonly [readonly string[], string]>([[], '']) },
  { weight: 2, arbitrary: overrides },
);
/** Plain exchanges of the used token. */
export const exchangeBodies: readonly Pick<ClientRequest, 'fields' | 'body'>[] = [
  {
    fields: [jsonApi],
    body: `{"data":{"type":"refresh-tokens","attributes":{"refreshToken":"${usedToken}"}}}`,
  },
  {
    fields: ['Content-Type: application/json'],
    body: `{"refresh_token":"${usedToken}","grant_type":"refresh_token"}`,
  },
  { fields: [form], body: `grant_type=refresh_token&refresh_token=${usedToken}` },
  { fields: ['Content-Type: multipart/form-data; boundary=b'], body: multipart('refresh_token', usedToken) },
];

const tokenRoutes = shopRoutes.filter(
  ({ method, type }) => method === 'POST' && (type === 'refresh-tokens' || type === 'token'),
);
const cartRoutes = shopRoutes.filter(({ parents, type }) => parents.length === 0 && type === 'carts');

const pathsOf = (routes: readonly ShopRoute[]) =>
  fc
    .tuple(
      fc.constantFrom(...routes),
      fc.array(fc.constantFrom('1', '17', 'DE--21', 'mine', 'a%20b', 'x.y'), { minLength: 3, maxLength: 3 }),
      fc.boolean(),
      mutations,
      fc.constantFrom(...queries),
      fc.constantFrom(...Array<string>(20).fill(''), 'http://shop.example', '/', '\\', '//', '/.'),
    )
    .map(([route, ids, hasId, steps, query, front]) => {
      const segments = steps.reduce<Segments>(
        (now, [kind, at, chunk]) => mutationKinds[kind]?.(now, at, chunk) ?? now,
        pathOf(route, ids, hasId),
      );
      return { route, target: `${front}/${segments.join('/')}${query}` };
    });

const signedIn = fc.boolean();
const anyMethod = fc.oneof(
  { weight: 6, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom(...methods) },
);

const requestsOf = (routes: readonly ShopRoute[]) =>
  fc
    .tuple(pathsOf(routes), anyMethod, bodies, signedIn)
    .map(([{ route, target }, other, [fields, body], isSignedIn]): ClientRequest => {
      const method = other ?? route.method;
      const isBare = method === 'GET' || method === 'HEAD';
      return isBare
        ? { method, target, fields: [], body: '', isSignedIn }
        : { method, target, fields, body, isSignedIn };
    });

const exchanges = fc
  .tuple(pathsOf(tokenRoutes), fc.constantFrom(...exchangeBodies), anyMethod, signedIn)
  .map(([{ target }, exchange, method = 'POST', isSignedIn]) => ({
    method,
    target,
    ...exchange,
    isSignedIn,
  }));

/**
 * Requests for routes of the shop: up to three mutations of the path, and a method, query, fields and body that may select
 * another action. Never with `If-Match`.
 */
export const shopRequests: fc.Arbitrary<ClientRequest> = fc.oneof(
  { weight: 6, arbitrary: requestsOf(shopRoutes) },
  { weight: 2, arbitrary: requestsOf(cartRoutes) },
  { weight: 2, arbitrary: exchanges },
);
