import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';

const require = createRequire(import.meta.url);

/** The only thing that we take from the inside of a package: no documented interface of it promises anything. */
const taken = {
  file: 'src/upstream/llhttp/llhttp.ts',
  module: 'undici/lib/llhttp/llhttp_simd-wasm.js',
  version: '8.12.4',
  sha256: '18403ee56fab07f89a845028bad358bb3ebcda213f8e2ec0989a991e9c33da69',
};

const whatToDo = `
undici changed, and with it perhaps the parser that reads every answer of the shop. Before this test is made to pass:
1. See what llhttp the new undici ships (its CHANGELOG or deps/), and read llhttp's own notes since the old one.
2. Does ${taken.module} still export the bytes of a module with the imports and exports of ${taken.file}?
3. npx vitest run test/upstream test/attacks test/differential, and npm run fuzz -- --minutes 10.
4. Put the new version and hash in here. If the file has gone: find where undici keeps it now, or take llhttp's own build.`;

it('the llhttp inside undici is the one that everything here was tried with', () => {
  const { version } = require('undici/package.json') as { version: string };
  const wasm = require(taken.module) as Buffer;
  const sha256 = createHash('sha256').update(wasm).digest('hex');
  expect({ version, sha256 }, whatToDo).toEqual({ version: taken.version, sha256: taken.sha256 });
});

it('the pinned version is exact, and nothing else of undici is used by the proxy', () => {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(dependencies.undici, whatToDo).toBe(taken.version);
  const users = globSync('src/**/*.ts').filter((file) =>
    /(?:from|import\()\s*'undici/.test(readFileSync(file, 'utf8')),
  );
  expect(users).toEqual([taken.file]);
});

it('nothing else of the inside of a package is imported', () => {
  const inside = globSync('src/**/*.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'((?:@[^'/]+\/)?[^'./][^']*)'/g)]
      .map(([, target = '']) => target)
      .filter((target) => !target.startsWith('node:') && /\/(?:lib|dist|src|build)\//.test(target)),
  );
  expect(inside).toEqual([taken.module]);
});
