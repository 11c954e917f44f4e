import assert from 'node:assert/strict';
import { expect, it } from 'vitest';
import { foldName, mayBeNamed } from '../../../src/http/form-encoding.ts';

it('a name is matched by each reading of it; a reading that still has a % matches any name', () => {
  const parts = ['', ' ', ...'s _ d S %73 %5f . + %20 [ %5B ] %00 % %2 %2B %25'.split(' ')];
  let seed = 11;
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  let named = 0;
  for (let i = 0; i < 5_000; i += 1) {
    const name = Array.from({ length: 3 + next(4) }, () => parts[next(parts.length)]).join('');
    const isNamed = readings(name).some((reading) => reading === 's_d' || reading.includes('%'));
    named += Number(isNamed);
    assert.equal(mayBeNamed(`${name}=`, foldName('s.D')), isNamed, JSON.stringify(name));
  }
  expect(named).toBeGreaterThan(100);
});

/** All readings of a name by some server. A `%` that is left may be decoded further. */
function readings(name: string): string[] {
  const decoded = name
    .replaceAll('+', ' ')
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  const [untilNull = ''] = decoded.trim().split('\0');
  const cuts = [...untilNull.matchAll(/\[/g)].map(({ index }) => untilNull.slice(0, index));
  const folded = [untilNull, ...cuts].map((cut) => cut.replace(/[ .[]/g, '_').toLowerCase());
  return [...folded, decoded.includes('%') ? '%' : ''];
}
