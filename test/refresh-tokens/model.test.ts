import { describe, expect, test } from 'vitest';
import * as steps from '../../src/refresh-tokens/protocol.ts';
import { type ModelOptions, runModel } from './model.ts';

const seeds = 60;

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
    { protocol: { ...steps, claim: (record, ...rest) => steps.claim({ ...record, claim: null }, ...rest) } },
    /twice at a time/,
  ],
  'a confirmation does not make the claim longer': [
    {
      protocol: {
        ...steps,
        confirm: (record, op, _, now) => steps.confirm(record, op, (record.claim?.untilMs ?? now) - now, now),
      },
    },
    /twice at a time/,
  ],
  'anybody releases a claim': [
    { protocol: { ...steps, release: (record) => ({ ...record, claim: null }) } },
    /twice at a time/,
  ],
  'a used token is free again': [
    {
      protocol: {
        ...steps,
        markUsed: (record, ...rest) => {
          const step = steps.markUsed(record, ...rest);
          return { ...step, record: { ...step.record, usedAtMs: null } };
        },
      },
    },
    /refreshed again/,
  ],
  'who is refused for now hears that it is in vain': [
    {
      protocol: {
        ...steps,
        claim: (record, ...rest) => {
          const step = steps.claim(record, ...rest);
          return step.answer.kind === 'in-exchange' ? { ...step, answer: { kind: 'revoked' } } : step;
        },
      },
    },
    /was called revoked/,
  ],
  'a claim never lapses': [
    { protocol: { ...steps, confirm: (record, op, _, now) => steps.confirm(record, op, 1e9, now) } },
    /shut for ever/,
  ],
  'a revocation does not count': [
    {
      protocol: {
        ...steps,
        claim: (record, ...rest) => steps.claim({ ...record, notes: new Map(), pending: new Map() }, ...rest),
        confirm: (record, ...rest) =>
          steps.confirm({ ...record, notes: new Map(), pending: new Map() }, ...rest),
      },
    },
    /was revoked/,
  ],
  'a token that is recorded late is as new': [
    {
      store: (memory) => ({
        addToSubject: (subject) => ({ generation: memory.generationOf(subject), nowMicros: 1e18 }),
      }),
    },
    /revoked with all/,
  ],
  'a `mine` does not count': [{ store: () => ({ generationOf: () => 0 }) }, /revoked with all/],
  'the end of a family does not count': [{ store: () => ({ isFamilyEnded: () => false }) }, /ended family/],
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
