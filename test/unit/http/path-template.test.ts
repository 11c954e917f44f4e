import { describe, expect, test } from 'vitest';
import { isTemplateProblem, type PathTemplate, parsePathTemplate } from '../../../src/http/path-template.ts';

const literal = (text: string) => ({ literal: text });
const name = (text: string) => ({ name: text });

test.each<[string, PathTemplate]>([
  ['/', { text: '/', segments: [], rest: false }],
  ['/**', { text: '/**', segments: [], rest: true }],
  ['/carts', { text: '/carts', segments: [literal('carts')], rest: false }],
  ['/carts/**', { text: '/carts/**', segments: [literal('carts')], rest: true }],
  ['/carts/{id}', { text: '/carts/{id}', segments: [literal('carts'), name('id')], rest: false }],
  ['/{a-b_1}/%63/**', { text: '/{a-b_1}/c/**', segments: [name('a-b_1'), literal('c')], rest: true }],
  ['/a%3ab', { text: '/a%3Ab', segments: [literal('a%3Ab')], rest: false }],
])('%s is read as a template', (text, template) => {
  expect(parsePathTemplate(text)).toEqual(template);
});

describe('a template', () => {
  const problemOf = (text: string) => {
    const parsed = parsePathTemplate(text);
    return isTemplateProblem(parsed) ? parsed : undefined;
  };

  test.each([
    ['carts', 0],
    ['//a', 1],
    ['/a//b', 3],
    ['/a/bc/*', 6],
    ['/{a}/{a}', 5],
    ['/ab/{', 4],
  ])('%s: offset of the problem', (text, offset) => {
    expect(problemOf(text)).toHaveProperty('offset', offset);
  });

  test('has at most 64 segments, where ** is one', () => {
    expect(problemOf('/a'.repeat(64))).toBeUndefined();
    expect(problemOf(`${'/a'.repeat(63)}/**`)).toBeUndefined();
    const problem = { problem: 'no request has more than 64 segments', offset: 0 };
    expect([problemOf('/a'.repeat(65)), problemOf(`${'/a'.repeat(64)}/**`)]).toEqual([problem, problem]);
  });

  test('has its invalid segment quoted up to 80 characters', () => {
    const quoted = (length: number) => problemOf(`/${'a'.repeat(length - 1)}*`)?.problem.split('"')[1];
    expect(quoted(80)).toBe(`${'a'.repeat(79)}*`);
    expect(quoted(81)).toBe(`${'a'.repeat(80)}…`);
  });

  test.each([
    ...'/{1a} /{} /a{b} /{a}b /a* /*** /:a /<a> /a< /... /a%2 /a%zz /a//b /a/ /a/**/b /a;b /a%3bb'.split(' '),
    ...'/a. /a%20 /.. /%2E%2e /ü /a?b /a#b /a\\b /a%5cb /a%2fb /a%00 /a%252e /a%ff'.split(' '),
    ...['/{a b}', '/a b', '/a\u00a0'],
  ])('%j is invalid', (text) => {
    expect(problemOf(text)).toBeDefined();
  });

  test.each(['/a:b', '/a=b', '/a,b', '/~', '/.a', '/a%20b'])('%j is valid', (text) => {
    expect(problemOf(text)).toBeUndefined();
  });
});
