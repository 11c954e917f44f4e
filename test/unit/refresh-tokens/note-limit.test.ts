import { expect, test } from 'vitest';
import { NoteLimit } from '../../../src/refresh-tokens/note-limit.ts';
import type { SubjectDigest } from '../../../src/refresh-tokens/token-values.ts';

test('two notes for each subject, three in all, and the same again after a day', () => {
  let nowMs = 5;
  const limit = new NoteLimit(2, 3, () => nowMs);
  const admitted = () => ['a', 'a', 'a', 'b', 'b', 'c'].map((by) => limit.admit(by as SubjectDigest));
  expect(admitted()).toEqual([true, true, false, true, false, false]);
  nowMs += 86_399_999;
  expect(limit.admit('c' as SubjectDigest)).toBe(false);
  nowMs += 1;
  expect(admitted()).toEqual([true, true, false, true, false, false]);
});

test('by default 256 notes for each subject', () => {
  const limit = new NoteLimit();
  const admitted = Array.from({ length: 300 }, () => limit.admit('a' as SubjectDigest));
  expect(admitted.filter(Boolean)).toHaveLength(256);
});
