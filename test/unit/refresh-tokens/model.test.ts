import { describe, expect, test } from 'vitest';
import * as steps from '../../../src/refresh-tokens/protocol.ts';
import { anybodyReleases, claimFrom, keptIsUsed } from './broken-steps.ts';
import { type ModelOptions, runModel } from './model.ts';

const seeds = 25;

test(`${seeds} random runs of two replicas on a slow and failing store: no promise is broken`, async () => {
  let forwarded = 0;
  for (let seed = 1; seed <= seeds; seed += 1) {
    forwarded += await runModel({ seed }).catch((broken: Error) => {
      throw new Error(`seed ${seed}: ${broken.message}`);
    });
  }
  // Runs that forward no refresh would prove nothing.
  expect(forwarded).toBeGreaterThan(seeds * 5);
});

/** One broken rule at a time, and the violation that the model must find. */
const broken: Readonly<Record<string, [Partial<ModelOptions>, RegExp]>> = {
  'a claim does not exclude others': [
    { steps: { ...steps, ...claimFrom(() => ({ claim: null })) } },
    /twice at a time/,
  ],
  'a claim lasts for half of its time': [
    { steps: { ...steps, claim: (record, op, claimMs, now) => steps.claim(record, op, claimMs / 2, now) } },
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
  'any operation releases a claim': [{ steps: { ...steps, ...anybodyReleases } }, /twice at a time/],
  'a used token is granted again': [
    { steps: { ...steps, ...claimFrom(() => ({ usedAtMs: null })) } },
    /refreshed again/,
  ],
  'a token that the shop keeps counts as used': [{ steps: { ...steps, ...keptIsUsed } }, /was called used/],
  'a client that should wait hears that its token is revoked': [
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
  'a client that has waited counts as a replay': [
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
  'a token that is recorded late gets a new generation': [
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

describe('the model notices that', () => {
  test.each(Object.entries(broken))('%s', async (_, [options, expected]) => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 400 && ![...seen].some((text) => expected.test(text)); seed += 1) {
      await runModel({ seed, ...options }).catch((fault: Error) => seen.add(fault.message));
    }
    expect([...seen].filter((text) => expected.test(text))).not.toEqual([]);
  });
});
