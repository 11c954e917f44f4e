import { expect, test } from 'vitest';
import type { RefreshTokenContext } from '../../src/refresh-tokens/context.ts';
import { readsAnswer, verdictOf } from '../../src/refresh-tokens/issue.ts';

test.each([
  [199, 'unknown'],
  [200, 'done'],
  [299, 'done'],
  [300, 'failed'],
  [399, 'failed'],
  [400, 'refused'],
  [408, 'failed'],
  [499, 'refused'],
  [500, 'failed'],
])('an answer %i of the shop: %s', (status, verdict) => {
  expect(verdictOf({ kind: 'answered', status, fields: [], body: null })).toBe(verdict);
});

test('what has not left was refused, what broke off is unknown', () => {
  expect(verdictOf({ kind: 'unsent', fault: 'not-sent' })).toBe('refused');
  expect(verdictOf({ kind: 'unknown', fault: 'reset' })).toBe('unknown');
});

const context = { answerBytes: 9, answerWithinMs: 7 } as RefreshTokenContext;
const reads = (accept: readonly string[], isObserved = false) =>
  readsAnswer(context, { fields: accept.flatMap((value) => ['Accept', value]) }, isObserved);

test.each([
  [[], null],
  [['text/html, application/json;q=0.5'], 'application/json;q=0.5'],
  [['text/html'], 'application/json, application/vnd.api+json'],
])('of Accept %j the shop sees %j', (accept, seen) => {
  expect(reads(accept).requestFields).toMatchObject({
    Accept: seen,
    'Accept-Encoding': 'identity',
    Range: null,
  });
});

test('a success is withheld until it is read; in observe mode nothing is withheld', () => {
  const { withholds, bufferLimit, answerWithinMs } = reads([]);
  expect([199, 200, 299, 300].map((status) => withholds?.(status))).toEqual([false, true, true, false]);
  expect([bufferLimit, answerWithinMs, reads([], true).withholds]).toEqual([9, 7, undefined]);
});
