import fc from 'fast-check';
import { contractCalls } from './demo/contract-calls.ts';

/** The parts of a request that vary. */
export interface SampleRequest {
  readonly method: string;
  /** As sent on the wire, in latin-1. */
  readonly target: string;
  /** A form POST counts as every method of its path. */
  readonly isForm: boolean;
}

const words = [...new Set(contractCalls.flatMap(({ row }) => row.split(/[ /]/).slice(1)))].filter((word) =>
  /^[a-z]/.test(word),
);
const paths = contractCalls.map(({ path }) => path);

const word = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...words) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      'stores',
      'abstract-products',
      'index.php',
      'INDEX.PHP',
      'v1',
      '1',
      'mine',
      'x',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', '', ...'. .. ... ; %20 %2e ..;x %252e a%2fb %00 %ff'.split(' ')),
  },
);

/** Each changes a path; `at` is the relative position, between 0 and 1. */
const changes: readonly ((path: string, at: number) => string)[] = [
  (path, at) => escapeAt(path, at, (hex) => hex),
  (path, at) => escapeAt(path, at, (hex) => hex.toUpperCase()),
  (path, at) => path.slice(0, indexIn(path, at)) + path.slice(indexIn(path, at)).toUpperCase(),
  (path, at) => insert(path, at, '/'),
  (path, at) => atSlash(path, at, '//'),
  (path, at) => atSlash(path, at, '/x/y/'),
  (path, at) => atSlash(path, at, '/carts/x/'),
  (path, at) => atSlash(path, at, ';a=b/'),
  (path, at) => atSlash(path, at, './'),
  (path, at) => atSlash(path, at, '%20/'),
  (path, at) => atSlash(path, at, '/./'),
  (path, at) => atSlash(path, at, '/%2e%2e/'),
  (path, at) => atSlash(path, at, '%2f'),
  (path, at) => atSlash(path, at, '\\'),
  (path, at) => atSlash(path, at, '/index.php/'),
  (path, at) => insert(path, at, '%25'),
  (path, at) => insert(path, at, '%c3%a9'),
  (path, at) => insert(path, at, '%'),
  (path, at) => insert(path, at, ';'),
  (path, at) => insert(path, at, '?'),
  (path, at) => insert(path, at, '#'),
  (path, at) => insert(path, at, '\xe9'),
  (path, at) => insert(path, at, '\t'),
  (path) => withLastPairTwice(path),
  (path) => `${path}/`,
  (path) => `${path};x=/y`,
  (path) => `${path}.`,
  (path) => `/index.php${path}`,
  (path) => `/index.php${path.slice(1)}`,
  (path) => `http://shop.example${path}`,
  (path) => path.slice(0, Math.max(1, path.lastIndexOf('/'))),
];

const changed = fc
  .tuple(
    fc.constantFrom(...paths),
    fc.array(fc.tuple(fc.constantFrom(...changes), fc.double({ min: 0, max: 0.999, noNaN: true })), {
      maxLength: 3,
    }),
  )
  .map(([path, steps]) => steps.reduce((before, [change, at]) => change(before, at), path));
const composed = fc.array(word, { minLength: 1, maxLength: 9 }).map((parts) => `/${parts.join('/')}`);
const query = fc.constantFrom('', '', '', '?', '?include=items', '??/../x', '?a=%2F..%2f&b=%zz', '?/orders');

export const sampleRequest: fc.Arbitrary<SampleRequest> = fc.record({
  method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'POST', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS'),
  target: fc
    .tuple(fc.oneof({ weight: 3, arbitrary: changed }, { weight: 2, arbitrary: composed }), query)
    .map((parts) => parts.join('')),
  isForm: fc.boolean(),
});

/** `/carts/1/items` becomes `/carts/1/items/x/items`: the demo shop acts on the last pair. */
function withLastPairTwice(path: string): string {
  const parts = path.split('/');
  const hasId = parts.length % 2 === 1;
  return `${path}/${hasId ? '' : 'x/'}${parts.slice(hasId ? -2 : -1).join('/')}`;
}

function indexIn(path: string, at: number): number {
  return 1 + Math.floor(at * (path.length - 1));
}

function insert(path: string, at: number, text: string): string {
  return path.slice(0, indexIn(path, at)) + text + path.slice(indexIn(path, at));
}

function atSlash(path: string, at: number, text: string): string {
  const slash = path.lastIndexOf('/', indexIn(path, at));
  return slash < 0 ? path + text : path.slice(0, slash) + text + path.slice(slash + 1);
}

function escapeAt(path: string, at: number, spell: (hex: string) => string): string {
  const i = indexIn(path, at);
  const letter = path[i];
  if (letter === undefined || letter === '%') return path;
  return `${path.slice(0, i)}%${spell(letter.charCodeAt(0).toString(16).padStart(2, '0'))}${path.slice(i + 1)}`;
}
