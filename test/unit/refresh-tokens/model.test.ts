import { describe, expect, test } from 'vitest';
import * as steps from '../../../src/refresh-tokens/protocol.ts';
import { anybodyReleases, claimFrom, keptIsUsed } from './broken-steps.ts';
import { type ModelOptions, runModel } from './model.ts';

const seeds = 25;

test(`${seeds} plays of two replicas over a store that is slow, late and away: every promise holds`, async () => {
  let forwarded = 0;
  for (let seed = 1; seed <= seeds; seed += 1) {
    forwarded += await runModel({ seed }).catch((broken: Error) => {
      throw new Error(`seed ${seed}: ${broken.message}`);
    });
  }
  // A play in which nothing is forwarded would prove nothing.
  expect(forwarded).toBeGreaterThan(seeds * 5);
});

/** One rule broken at a time, and what the play has to see. */
const broken: Readonly<Record<string, [Partial<ModelOptions>, RegExp]>> = {
  'a claim does not keep others out': [
    { steps: { ...steps, ...claimFrom(() => ({ claim: null })) } },
    /twice at a time/,
  ],
  'a claim holds for half of the refresh': [
    {
      steps: { ...steps, claim: (record, op, holdMs, now) => steps.claim(record, op, holdMs / 2, now) },
    },
    /twice at a time/,
  ],
  'a record is replaced although another has changed it': [
    {
      records: (memory) => ({
        replace: (kind, id, _, next) => memory.replace(kind, id, memory.read(kind, id).text, next),
      }),
    },
    /twice at a time|refreshed again/,
  ],
  'anybody releases a claim': [{ steps: { ...steps, ...anybodyReleases } }, /twice at a time/],
  'a used token is granted again': [
    { steps: { ...steps, ...claimFrom(() => ({ usedAtMs: null })) } },
    /refreshed again/,
  ],
  'a token that the shop keeps is used up': [{ steps: { ...steps, ...keptIsUsed } }, /was called used/],
  'who is refused for now hears that it is in vain': [
    {
      steps: {
        ...steps,
        claim: (record, ...rest) => {
          const step = steps.claim(record, ...rest);
          return step.answer.kind === 'in-exchange' ? { ...step, answer: { kind: 'revoked' } } : step;
        },
      },
    },
    /was called revoked/,
  ],
  'who has waited is taken for a thief': [
    { steps: { ...steps, ...claimFrom(() => ({ awaitedUntilMs: 0 })) } },
    /was called revoked/,
  ],
  'a claim never lapses': [
    { steps: { ...steps, claim: (record, op, _, now) => steps.claim(record, op, 1e9, now) } },
    /shut for ever/,
  ],
  'a revocation does not count': [
    { steps: { ...steps, ...claimFrom(() => ({ notes: [] })) } },
    /was revoked/,
  ],
  'a token that is recorded late is as new': [
    {
      steps: {
        ...steps,
        recordIssued: (record, issued, now) =>
          steps.recordIssued(record, { ...issued, generation: 1e18 }, now),
      },
    },
    /revoked with all/,
  ],
  'a `mine` does not count': [{ store: { generationOf: () => 0 } }, /revoked with all/],
  'the end of a family does not count': [{ store: { isFamilyEnded: () => false } }, /ended family/],
};

describe('a play notices that', () => {
  test.each(Object.entries(broken))('%s', async (_, [options, expected]) => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 400 && ![...seen].some((text) => expected.test(text)); seed += 1) {
      await runModel({ seed, ...options }).catch((fault: Error) => seen.add(fault.message));
    }
    expect([...seen].filter((text) => expected.test(text))).not.toEqual([]);
  });
});
