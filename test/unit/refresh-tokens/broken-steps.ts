import * as steps from '../../../src/refresh-tokens/protocol.ts';
import type { TokenSteps } from '../../../src/refresh-tokens/token-store.ts';

type TokenRecord = Parameters<TokenSteps['claim']>[0];
type Change = (record: TokenRecord) => Partial<TokenRecord>;

/** Steps broken on purpose: they work on a changed copy of the record. */
export const claimFrom = (change: Change): Partial<TokenSteps> => ({
  claim: (record, ...rest) => steps.claim({ ...record, ...change(record) }, ...rest),
});
export const recordFrom = (change: Change): Partial<TokenSteps> => ({
  recordIssued: (record, ...rest) => steps.recordIssued({ ...record, ...change(record) }, ...rest),
});
export const anybodyReleases: Partial<TokenSteps> = { release: (record) => ({ ...record, claim: null }) };
export const keptIsUsed: Partial<TokenSteps> = {
  recordIssued: (record, issued, now) => {
    const next = steps.recordIssued(record, issued, now);
    return record.claim === null ? next : { ...next, usedAtMs: now };
  },
};
