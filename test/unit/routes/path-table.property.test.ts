import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Method, methods } from '../../../src/http/canonical-request.ts';
import { buildPathTable, type PathTableRequest } from '../../../src/routes/path-table.ts';
import { modelMatch } from './path-table-model.ts';

const literal = fc.constantFrom(...'carts items Reports a x.y a%20b x%E2%84%85 index.php v1'.split(' '));
const part = fc.oneof(literal, fc.constant('{p}'));

const template = fc
  .tuple(fc.array(part, { maxLength: 4 }), fc.constantFrom('', '', '', '/**'))
  .map(([parts, rest]) => {
    const named = parts.map((one, i) => (one === '{p}' ? `{p${i}}` : one));
    const path = named.map((one) => `/${one}`).join('') + rest;
    return path === '' ? '/' : path;
  });

const row = fc.record({ method: fc.constantFrom<Method | 'ANY'>(...methods, 'ANY', 'GET', 'GET'), template });

const some = (weight: number, words: string) => ({ weight, arbitrary: fc.constantFrom(...words.split(' ')) });
const segment = fc.oneof(
  some(6, 'carts items reports Reports a x.y a%20b'),
  some(2, 'CARTS carts;x=1 items. A%20 items%3B a%20%2E. x.y;'),
  some(1, 'cart%C5%BF %C4%B1tems %C4%B0TEM%C5%BF;x %EF%BD%83arts %C4%B1ndex.phpa'),
  { weight: 3, arbitrary: fc.constantFrom('', '', ';', '...', '%20', ';v=1') },
  some(2, 'index.php INDEX.PHP index.php;x index.phpcarts index.phpA.'),
  some(2, 'api v1 v1carts api. v1index.php'),
  some(2, 'V0 1.0;x index.phpv2 7. v1.2.3 v1x v.1'),
  some(2, 'carts.json ITEMS.XML;x a.json. .json x.y.json 1.xml'),
  some(3, '1 2 b cartsx xcarts __proto__'),
);

const rules = fc.record({
  ignoredPrefixes: fc.constantFrom(...[[], ['/index.php'], ['/index.php', '/api/v1'], ['/api', '/api/v1']]),
  versionSegments: fc.boolean(),
  itemForms: fc.boolean(),
  lastPair: fc.boolean(),
  formatSuffixes: fc.constantFrom<string[]>([], ['json', 'xml'], ['json']),
});

/** Segments that follow the literals of the templates above, so that rows often match. */
const path = fc
  .array(fc.oneof({ weight: 3, arbitrary: segment.map((one) => [one]) }, pairOf('carts'), pairOf('items')), {
    minLength: 1,
    maxLength: 5,
  })
  .map((parts) => parts.flat().slice(0, 9));

function pairOf(type: string): fc.Arbitrary<string[]> {
  return segment.map((id) => [type, id]);
}

const anyRequest = fc.record({
  method: fc.constantFrom<Method>(...methods, 'GET', 'GET', 'POST'),
  segments: path,
  alternativeSegments: fc.option(fc.array(segment, { minLength: 1, maxLength: 9 }), {
    nil: undefined,
    freq: 8,
  }),
  isFormPost: fc.boolean(),
});

const request = anyRequest.map((one) => ({ ...one, isFormPost: one.isFormPost && one.method === 'POST' }));

const pairRules = {
  ignoredPrefixes: [],
  versionSegments: false,
  itemForms: false,
  lastPair: true,
  formatSuffixes: [],
};

const hidden = {
  ...{ method: 'GET' as const, alternativeSegments: undefined, isFormPost: false },
  segments: ['', 'Reports', 'CARTS', 'carts', '1', 'items'],
};

describe('the table', () => {
  it('matches the same rows as the simple model', () => {
    let met = 0;
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 6 }), rules, request, (rows, given, asked) => {
        const table = buildPathTable(
          rows.map((one, index) => ({ ...one, data: index })),
          given,
        );
        const matches = table.match(asked).map(({ data }) => data);
        met += matches.length;
        expect(matches.toSorted((a, b) => a - b)).toEqual(modelMatch(rows, given, asked));
      }),
      {
        numRuns: 1_500,
        examples: [
          // The reading as a pair must not hide the reading that the row matches as a whole.
          [[{ method: 'GET', template: '/Reports/{p1}/items/**' }], pairRules, hidden],
          [[{ method: 'GET', template: '/Reports/{p1}/items' }], pairRules, hidden],
        ],
      },
    );
    // Agreement means little if hardly any row matches.
    expect(met).toBeGreaterThan(300);
  });

  it('calls a match exact only if the path equals the template, segment by segment', () => {
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 6 }), rules, request, (rows, given, asked) => {
        const table = buildPathTable(
          rows.map((one) => ({ ...one, data: one })),
          given,
        );
        for (const { data, exact, params } of table.match(asked)) {
          expect(exact).toBe(isExact(data.template, asked.segments));
          if (exact) expect(filled(data.template, params, asked)).toBe(`/${asked.segments.join('/')}`);
        }
      }),
      { numRuns: 600 },
    );
  });
});

function isExact(text: string, segments: readonly string[]): boolean {
  if (text === '/') return segments.length === 1 && segments[0] === '';
  const parts = text.slice(1).split('/');
  const rest = parts.at(-1) === '**';
  if (rest) parts.pop();
  if (rest ? segments.length < parts.length : segments.length !== parts.length) return false;
  return parts.every((one, i) => (one.startsWith('{') ? segments[i] !== '' : segments[i] === one));
}

function filled(text: string, params: Readonly<Record<string, string>>, asked: PathTableRequest): string {
  if (text === '/') return '/';
  const parts = text.slice(1).split('/');
  const rest = parts.at(-1) === '**' ? asked.segments.slice(parts.length - 1) : [];
  const own = parts.filter((one) => one !== '**').map((one) => params[one.slice(1, -1)] ?? one);
  return `/${[...own, ...rest].join('/')}`;
}
