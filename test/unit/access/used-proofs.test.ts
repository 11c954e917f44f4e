import { expect, it } from 'vitest';
import { createUsedProofs } from '../../../src/access/used-proofs.ts';

it('a client stores at most its share of proofs; a proof is forgotten after keptMs', () => {
  let now = 0;
  const useProof = createUsedProofs({ keptMs: 1000, sharePercent: 50, nowMs: () => now });
  const useMany = (client: string, from: number) => {
    const uses = Array.from({ length: 125_001 }, (_, i) => useProof(`${from + i}`, client));
    return uses.filter((use) => use === 'first').length;
  };
  expect(useMany('a', 0)).toBe(125_000);
  expect([useProof('0', 'a'), useProof('0', 'b')]).toEqual(['used', 'used']);
  expect(useMany('b', 200_000)).toBe(125_000);
  expect(useProof('x', 'c')).toBe('full');
  now = 999;
  expect([useProof('0', 'a'), useProof('x', 'c')]).toEqual(['used', 'full']);
  now = 1000;
  expect([useProof('0', 'a'), useProof('x', 'c')]).toEqual(['first', 'first']);
  expect(useMany('a', 400_000)).toBe(124_999);
});

it('a new proof removes at most 16 old ones', () => {
  let [now, asked] = [0, 0];
  const nowMs = () => {
    asked += 1;
    return now;
  };
  const useProof = createUsedProofs({ keptMs: 1000, sharePercent: 100, nowMs });
  for (let i = 0; i < 1_000; i += 1) useProof(`${i}`, 'a');
  now = 1000;
  asked = 0;
  expect(useProof('x', 'a')).toBe('first');
  // Once for each old proof, and once for the new one.
  expect(asked).toBe(17);
});
