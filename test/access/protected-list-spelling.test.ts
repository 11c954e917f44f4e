import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileProtectedList } from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { isRejection } from '../../src/http/rejection.ts';
import { canonicaliseTarget } from '../../src/http/request-target.ts';
import { contractRows } from './contract-rows.ts';

const file = path.join(import.meta.dirname, '../../config/protected-resources.yaml');
const { list } = parseProtectedList(readFileSync(file, 'utf8'), file);
if (!list) throw new Error('the shipped list is broken');
const compiled = compileProtectedList(list, { ignoredPrefixes: ['/index.php'] });

type Verdict = 'refused' | 'protected' | 'open';

/** What happens to a request target as it stands on the wire. */
function verdict(
  method: (typeof contractRows)[number]['method'] | 'HEAD',
  target: string,
  isFormPost = false,
): Verdict {
  const canonical = canonicaliseTarget(target, 'shop.example', []);
  if (isRejection(canonical)) return 'refused';
  return compiled.match({ method, segments: canonical.segments, isFormPost }) ? 'protected' : 'open';
}

function eachSegment(change: (segment: string) => string): (target: string) => string[] {
  return (target) => {
    const segments = target.slice(1).split('/');
    return segments.map((_, i) => `/${segments.map((one, j) => (i === j ? change(one) : one)).join('/')}`);
  };
}

function eachCharacter(change: (character: string) => string): (target: string) => string[] {
  return (target) =>
    [...target].flatMap((one, i) =>
      one === '/' ? [] : [target.slice(0, i) + change(one) + target.slice(i + 1)],
    );
}

const hex = (character: string) => character.charCodeAt(0).toString(16).padStart(2, '0');

/** Other spellings of one path that some upstream takes for the same. */
const spellings: Record<string, (target: string) => string[]> = {
  'more leading slashes': (target) => [`/${target}`, `//${target}`],
  'trailing slashes': (target) => [`${target}/`, `${target}//`, `${target}///`],
  'an empty segment': (target) => {
    const places = [...target.matchAll(/\//g)].map(({ index }) => index);
    return places.map((at) => `${target.slice(0, at)}/${target.slice(at)}`);
  },
  'empty segments everywhere': (target) => [target.replaceAll('/', '//'), target.replaceAll('/', '///')],
  'upper case': (target) => [target.toUpperCase()],
  'one letter in upper case': eachCharacter((character) => character.toUpperCase()),
  'one character escaped': eachCharacter((character) => `%${hex(character)}`),
  'one character escaped in upper case': eachCharacter(
    (character) => `%${hex(character.toUpperCase()).toUpperCase()}`,
  ),
  'all characters escaped': (target) => [target.replace(/[^/]/g, (character) => `%${hex(character)}`)],
  'path parameters': eachSegment((segment) => `${segment};a=b`),
  'an empty path parameter': eachSegment((segment) => `${segment};`),
  'an escaped path parameter': eachSegment((segment) => `${segment}%3Ba`),
  'a dot at the end': eachSegment((segment) => `${segment}.`),
  'an escaped dot at the end': eachSegment((segment) => `${segment}%2e`),
  'a space at the end': eachSegment((segment) => `${segment}%20`),
  'dots and spaces at the end': eachSegment((segment) => `${segment}.%20.;x`),
  'a query': (target) => [`${target}?`, `${target}?x=/public`, `${target}??a`],
  'the script of the shop': (target) => [
    `/index.php${target}`,
    `/Index.PHP${target}`,
    `/index.php/${target}`,
    `/%69ndex.php${target}`,
    `/index.php;x${target}`,
    `/index.php${target.slice(1)}`,
  ],
  'an alias of the resource': (target) => [
    `/x/y${target}`,
    `/carts/1/x/y${target}`,
    `${target.split('/', 2).join('/')}/x${target}`,
  ],
};

const ids = /\{\w+\}/g;
const samples = contractRows.map(({ method, template }) => ({
  method,
  target: template.replace(ids, 'DE--1.5'),
}));

describe.each(samples)('$method $target', ({ method, target }) => {
  it('is protected', () => {
    expect(verdict(method, target)).toBe('protected');
  });

  it.each(Object.entries(spellings))('is protected or refused with %s', (_, spell) => {
    const spelled = spell(target);
    expect(spelled.length).toBeGreaterThan(0);
    expect(spelled.filter((one) => verdict(method, one) === 'open')).toEqual([]);
  });

  it('is protected as a form POST and, when it is a GET, as HEAD', () => {
    expect(verdict('POST', target, true)).toBe('protected');
    if (method === 'GET') expect(verdict('HEAD', target)).toBe('protected');
  });

  it('is protected with an empty id', () => {
    const empty = target.replaceAll('DE--1.5', '');
    expect([target, empty].map((one) => verdict(method, one))).toEqual(['protected', 'protected']);
  });
});

describe('spellings of spellings', () => {
  // An upstream strips its script's name once, at the very beginning, so no alias comes before it.
  const script = 'the script of the shop';
  const alias = 'an alias of the resource';
  const names = Object.keys(spellings).filter((name) => name !== script && name !== alias);
  const link = fc.tuple(fc.constantFrom(...names), fc.nat(200));
  const chains = fc
    .tuple(
      fc.array(link, { maxLength: 1 }),
      fc.array(fc.tuple(fc.constant(alias), fc.nat(2)), { maxLength: 1 }),
      fc.array(link, { maxLength: 2 }),
      fc.array(fc.tuple(fc.constant(script), fc.nat(5)), { maxLength: 1 }),
      fc.array(link, { maxLength: 1 }),
    )
    .map((parts) => parts.flat());

  it('stay protected', () => {
    const seen: Record<Verdict, number> = { refused: 0, protected: 0, open: 0 };
    fc.assert(
      fc.property(fc.constantFrom(...samples), chains, ({ method, target }, chain) => {
        const spelled = chain.reduce((one, [name, choice]) => {
          const [route = '', ...query] = one.split('?');
          const all = spellings[name]?.(route) ?? [];
          return [all[choice % all.length] ?? route, ...query].join('?');
        }, target);
        const outcome = verdict(method, spelled);
        seen[outcome] += 1;
        assert.notEqual(outcome, 'open', spelled);
      }),
      { numRuns: 10_000 },
    );
    expect(seen.protected).toBeGreaterThan(4000);
  });
});

describe('what is not the same path', () => {
  it.each(samples)('$method $target with another name is open', ({ method, target }) => {
    const [, type = ''] = target.split('/');
    const others = [`${type}-history`, `x${type}`, `${type}.html`, `${type}1`, type.slice(1)];
    for (const other of others) expect(verdict(method, target.replaceAll(type, other))).toBe('open');
  });
});
