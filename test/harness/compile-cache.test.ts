import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { placeCompileCache } from './compile-cache.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'shopward-compiled-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const fill = (place: string, entries: number) => {
  mkdirSync(place, { recursive: true });
  for (let i = 0; i < entries; i += 1) writeFileSync(path.join(place, String(i)), '');
};

it('is kept for the next run with the same packages, and no other one is', () => {
  fill(path.join(folder, 'v26-of-old'), 3);
  const first = placeCompileCache(folder, { lock: Buffer.from('lock') });
  fill(path.join(first, 'v26'), 3);
  expect(placeCompileCache(folder, { lock: Buffer.from('lock') })).toBe(first);
  expect(existsSync(path.join(first, 'v26/2'))).toBe(true);
  expect(existsSync(path.join(folder, 'v26-of-old'))).toBe(false);
  const second = placeCompileCache(folder, { lock: Buffer.from('another lock') });
  expect(second).not.toBe(first);
  expect(existsSync(first)).toBe(false);
});

it('begins anew when it has grown too long', () => {
  const kept = placeCompileCache(folder);
  // With the folder that they are in, eleven.
  fill(path.join(kept, 'v26'), 10);
  expect(placeCompileCache(folder, { mostEntries: 11 })).toBe(kept);
  expect(existsSync(path.join(kept, 'v26/9'))).toBe(true);
  expect(placeCompileCache(folder, { mostEntries: 10 })).toBe(kept);
  expect(existsSync(path.join(kept, 'v26'))).toBe(false);
});
