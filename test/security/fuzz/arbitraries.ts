import fc from 'fast-check';

const words = (text: string) => text.split(' ');

/** Parts of valid paths, of lenient spellings and of attacks. */
const honestParts = [
  ...words('orders carts customers addresses items up-selling-products stores url-resolver mine 1'),
  ...words('abstract-products product-reviews refresh-tokens shopping-lists index.php v1 ~ + @ / / /'),
  ...words('/orders /carts/ /customers/ /items/ /orders/1 /carts/1 /stores/x/ /x/'),
];
const lenientParts = [
  ...words('// ; %3b ;x=1 %20 . %7e %2D %C2%A0 %EF%BC%8F /index.php/ /;/ /%20/ ORDERS %6frders'),
  ...words('%63arts Customers orders. carts;a=b orders%20 %4frders'),
];
const hostileParts = [
  ...words('.. %2e %2E %252e %25 2e %2f %2F %252f %5c \\ # ? %09 %00 %0a %7f % %3f %23 ..; /../'),
  ...words('/%2e%2e/ %25%32%65 %c0%ae %ff'),
];

const queryParts = [
  ...words('_method=DELETE %5fmethod=PATCH _method[]=x .method=PUT +_method=GET & ; = /orders ..'),
  ...words('url= include=items %00 %0d%0a [ ] _method a=1'),
];

const joined = (chunks: readonly string[], maxLength: number) =>
  fc.array(fc.constantFrom(...chunks), { maxLength }).map((parts) => parts.join(''));

const pathOf = (chunks: readonly string[], maxLength: number) =>
  joined(chunks, maxLength).map((path) => `/${path}`);

/** Latin-1 text, so that every character is an octet. */
const octets = fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString('latin1'));

/** A request target: mostly origin-form, sometimes absolute-form, hostile text or any octets. */
export const target: fc.Arbitrary<string> = fc
  .tuple(
    fc.oneof(
      { weight: 8, arbitrary: pathOf([...honestParts, ...honestParts, ...lenientParts], 7) },
      { weight: 4, arbitrary: pathOf([...honestParts, ...lenientParts, ...hostileParts], 9) },
      { weight: 1, arbitrary: pathOf(honestParts, 5).map((path) => `http://shop.example${path}`) },
      { weight: 1, arbitrary: joined(hostileParts, 5) },
      { weight: 1, arbitrary: octets.map((path) => `/orders${path}`) },
    ),
    fc.oneof(
      fc.constant(''),
      joined(queryParts, 4).map((query) => `?${query}`),
    ),
  )
  .map(([path, query]) => path + query);

export const method: fc.Arbitrary<string> = fc.constantFrom(
  ...'GET GET GET HEAD POST POST PATCH DELETE PUT OPTIONS TRACE get QUERY'.split(' '),
);

const fieldNames = [
  ...words('Connection Content-Length Transfer-Encoding Content-Type Expect Upgrade Host TE Trailer'),
  ...words('X-HTTP-Method-Override X-Original-URL X-Forwarded-For X-Forwarded-Host X_User'),
  ...words('Authorization If-Match If-None-Match Proxy-Authorization Keep-Alive Accept Cookie X-A'),
  ...words('x-b Store'),
];
const fieldValues = [
  ...words('close keep-alive chunked identity 0 4 5 content-length host x-a authorization'),
  ...words('application/json application/x-www-form-urlencoded 100-continue h2c websocket'),
  ...words('shop.example evil.example /orders DELETE 1.2.3.4 * "x" W/"x" , \t ; \x0b \xff'),
  'multipart/form-data; boundary=b',
  'Bearer a.b.c',
  ', ',
  ' ',
  '',
];
const fieldLine = fc
  .tuple(
    fc.oneof(fc.constantFrom(...fieldNames), octets),
    joined(fieldValues, 3),
    fc.constantFrom(':', ': ', ' :', ':\t'),
  )
  .map(([name, value, colon]) => `${name}${colon}${value}`);
/** Field lines, valid and malformed. */
export const fieldLines: fc.Arbitrary<string[]> = fc.array(fieldLine, { maxLength: 5 });

const bodies = [
  ...[
    '',
    'abcd',
    '_method=DELETE',
    '0\r\n\r\n',
    '4\r\nabcd\r\n0\r\n\r\n',
    '4;x\r\nabcd\r\n0\r\nA: b\r\n\r\n',
    '{}',
  ],
  ...[
    'GET /orders HTTP/1.1\r\nHost: s\r\n\r\n',
    '24\r\nGET /orders HTTP/1.1\r\nHost: shop\r\n\r\n\r\n0\r\n\r\n',
    '5\nhello',
  ],
];

const formTypes = [
  ...words('application/x-www-form-urlencoded APPLICATION/X-WWW-FORM-URLENCODED;charset=utf-8 text/plain'),
  ...words('application/x-www-form-urlencoded,text/plain multipart/form-data;boundary=b application/json'),
  ...[
    '',
    ' ',
    ';',
    'application/x-www-form-urlencoded ; x',
    'application/json;application/x-www-form-urlencoded',
  ],
];
const overrideNames = words(
  'X-A X-A X-A X-HTTP-Method-Override X_HTTP_Method_Override X-HTTP-Method _method',
);

/** The octets of a request, or of two: plain ones, POSTs that ask for another method, and any fields and bodies. */
export const requestOctets: fc.Arbitrary<string> = fc.oneof(
  fc.tuple(method, target).map(([verb, path]) => octetsOf(verb, path, 'HTTP/1.1', [], '')),
  // POSTs that a shop may execute as another method.
  fc
    .tuple(target, fc.constantFrom(...formTypes), joined(queryParts, 3), fc.constantFrom(...overrideNames))
    .map(([path, type, body, name]) => {
      const fields = [`Content-Type: ${type}`, `Content-Length: ${body.length}`, `${name}: DELETE`];
      return octetsOf('POST', path, 'HTTP/1.1', fields, body);
    }),
  fc
    .tuple(
      method,
      target,
      fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0'),
      fieldLines,
      fc.constantFrom(...bodies),
    )
    .map((parts) => octetsOf(...parts)),
);

function octetsOf(verb: string, path: string, version: string, fields: string[], body: string): string {
  return [`${verb} ${path} ${version}`, 'Host: shop.example', ...fields, '', body].join('\r\n');
}

/** Cuts, inserts, repeats and replaces octets. */
export const mutations: fc.Arbitrary<readonly Mutation[]> = fc.array(
  fc.record({
    at: fc.nat(400),
    kind: fc.constantFrom('cut' as const, 'insert' as const, 'repeat' as const, 'replace' as const),
    text: fc.constantFrom(
      '\r',
      '\n',
      '\r\n',
      ' ',
      '\t',
      '\0',
      ...': / % ; ,'.split(' '),
      '\x80',
      '0',
      'A',
      '\x7f',
    ),
  }),
  { maxLength: 2 },
);
export interface Mutation {
  readonly at: number;
  readonly kind: 'cut' | 'insert' | 'repeat' | 'replace';
  readonly text: string;
}

export function mutate(text: string, steps: readonly Mutation[]): string {
  return steps.reduce((now, { at, kind, text: chunk }) => {
    const index = now.length === 0 ? 0 : at % now.length;
    const before = now.slice(0, index);
    const after = now.slice(index);
    if (kind === 'cut') return before + after.slice(1);
    if (kind === 'insert') return before + chunk + after;
    if (kind === 'replace') return before + chunk + after.slice(1);
    return before + after.slice(0, 8) + after;
  }, text);
}
