import { expect, test } from 'vitest';
import { idleTimeoutSaid } from '../../../src/upstream/upstream-call.ts';

test.each([
  [undefined, undefined],
  ['timeout=5', 4_000],
  ['timeout="65"', 64_000],
  ['max=100, Timeout=5', 4_000],
  ['max=100,timeout=5', 4_000],
  ['timeout=1', 0],
  ['timeout=0', -1_000],
  ['timeout=602', 600_000],
  ['timeout=600', 599_000],
  ['timeout=999999', 600_000],
  ['max=100', undefined],
  ['timeout=x', undefined],
  ['xtimeout=5', undefined],
  ['\xa0timeout=5', undefined],
  ['', undefined],
])('Keep-Alive: %j says %j ms', (value, ms) => {
  expect(idleTimeoutSaid(value === undefined ? [] : ['keep-alive', value])).toBe(ms);
});
