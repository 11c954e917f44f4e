import { expect, it } from 'vitest';
import { applyMutation, findMutations } from './mutations.ts';

const changed = (source: string) => findMutations(source).map((mutation) => applyMutation(source, mutation));

it.each([
  ['a === b;', ['a !== b;']],
  ['a < b;', ['a <= b;', 'a >= b;']],
  ['a && b;', ['a || b;']],
  ['a -= b;', ['a += b;']],
  ['!a;', ['a;']],
  ['if (a) b;', ['if (true) b;', 'if (false) b;']],
  ['a ? b : c;', ['!(a) ? b : c;']],
  ['x = true;', ['x = false;']],
  ['x = 8;', ['x = (8 + 1);']],
  ["x = ['a', 'b', 'c'];", ["x = ['b', 'c'];", "x = ['a', 'c'];", "x = ['a', 'b', ];"]],
  ['this.end(a);', [';']],
  ['await a.b();', [';', 'a.b();']],
  ['function f() { return a; }', ['function f() { return; }']],
])('%s becomes %j', (source, mutants) => {
  expect(changed(source)).toEqual(mutants);
});

it('changes no type, and reports the line', () => {
  const source = "type A = 'a' | 'b';\nlet a: 8 | A = b as 9;\nlet c: boolean =\n  d < e;\n";
  const found = findMutations(source);
  expect(found.map(({ line, before, after }) => [line, before, after])).toEqual([
    [4, '<', '<='],
    [4, '<', '>='],
  ]);
});

it('leaves other code unchanged', () => {
  expect(
    changed(
      "import a from 'a';\nclass B extends A { constructor() { super(); } }\nfunction f() { return undefined; }",
    ),
  ).toEqual([]);
});
