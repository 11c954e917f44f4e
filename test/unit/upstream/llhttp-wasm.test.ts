import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';

const sha256 = '18403ee56fab07f89a845028bad358bb3ebcda213f8e2ec0989a991e9c33da69';
const wasm = readFileSync('src/upstream/llhttp.wasm');

it('llhttp.wasm is the file that its licence and its loader name', () => {
  expect(createHash('sha256').update(wasm).digest('hex')).toBe(sha256);
  expect(readFileSync('src/upstream/llhttp.ts', 'utf8')).toContain(sha256);
  expect(readFileSync('src/upstream/llhttp.LICENSE', 'utf8')).toContain('undici 8.12.4');
});

it('llhttp.wasm is the one of undici 8.12.4', () => {
  const require = createRequire(import.meta.url);
  expect((require('undici/package.json') as { version: string }).version).toBe('8.12.4');
  expect(wasm.equals(require('undici/lib/llhttp/llhttp_simd-wasm.js') as Buffer)).toBe(true);
});

it('src imports no private file of a package', () => {
  const inside = globSync('src/**/*.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'((?:@[^'/]+\/)?[^'./][^']*)'/g)]
      .map(([, target = '']) => target)
      .filter((target) => !target.startsWith('node:') && /\/(?:lib|dist|src|build)\//.test(target)),
  );
  expect(inside).toEqual([]);
});
