/**
 * Finds unused code in src: exports that no other file of src imports, options that nothing in src sets, and members of
 * classes that nothing reads. The comment above code that only tests use must say so (`Exported for its tests.`, `Only
 * tests set it.`), and must be true. Options and members are compared by name only. A docstring directly before another one
 * is an error, too. Exits 1 and names each finding.
 *
 * knip 6 works with this version of TypeScript, but finds exports only: options and members would still need this script.
 */
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { type AnyNode, parse } from 'acorn';

/** Files -> the library that sets their options. */
const setFromOutside: Readonly<Record<string, string>> = {
  'src/cli/init.ts': 'commander',
  'src/cli/token.ts': 'commander',
  'src/cli/verify.ts': 'commander',
};

/** Members of classes -> the code outside src that reads them. */
const readFromOutside: Readonly<Record<string, string>> = {
  'src/upstream/connection.ts: secureContext': '`tls.connect`',
};

interface Source {
  readonly file: string;
  readonly text: string;
  /** `file name` for each imported name, `file *` for an import of all names. */
  readonly imports: ReadonlySet<string>;
  readonly nodes: readonly AnyNode[];
}

const clauses =
  /\b(?:import|export)\s+(?:type\s+)?(\{[^}]*\}|\*(?:\s+as\s+\w+)?)\s+from\s+'(\.\.?\/[^']+)'|\bimport\(\s*'(\.\.?\/[^']+)'/g;

function readSource(file: string): Source {
  const text = readFileSync(file, 'utf8');
  const imports = new Set<string>();
  for (const [, clause = '*', from, called] of text.matchAll(clauses)) {
    const target = path.join(path.dirname(file), from ?? called ?? '');
    const names = clause.startsWith('*') ? ['*'] : (clause.match(/\w+(?=\s*(?:,|\}|\sas\s))/g) ?? []);
    for (const name of names) imports.add(`${target} ${name}`);
  }
  const code = stripTypeScriptTypes(text);
  return {
    file,
    text,
    imports,
    nodes: nodesOf(parse(code, { ecmaVersion: 'latest', sourceType: 'module' })),
  };
}

function nodesOf(program: AnyNode): AnyNode[] {
  const nodes = [program];
  for (const node of nodes)
    for (const part of Object.values(node).flat())
      if (typeof part === 'object' && part !== null && 'type' in part) nodes.push(part);
  return nodes;
}

const sources = globSync('src/**/*.ts', { exclude: ['**/*.d.ts'] })
  .sort()
  .map(readSource);
const tests = globSync('{test,bench,demo,scripts}/**/*.ts').map(readSource);
const complaints: string[] = [];

/** Code that src does not use must be used by tests, and the comment above it must say so. */
function check(location: string, comment: string, mark: string, isUsed: boolean, isTested: boolean): void {
  const isMarked = comment.replace(/\s+(\* )?/g, ' ').includes(mark);
  if (isUsed && isMarked) complaints.push(`${location}: "${mark}" is false, src uses it`);
  if (!isUsed && !isTested) complaints.push(`${location}: nothing uses it`);
  if (!isUsed && isTested && !isMarked) complaints.push(`${location}: its comment does not say "${mark}"`);
}

for (const { file, text } of [...sources, ...tests])
  for (const { index } of text.matchAll(/\*\/\s+\/\*\*/g))
    complaints.push(`${file}:${text.slice(0, index).split('\n').length}: another docstring follows this one`);

const comment = String.raw`(\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n *)?`;
const exported = new RegExp(
  `^${comment}export (?:abstract |async )*(?:const|let|function\\*?|class|interface|type) (\\w+)`,
  'gm',
);

for (const { file, text } of sources) {
  for (const [, above = '', name = ''] of text.matchAll(exported)) {
    const word = new RegExp(`\\b${name}\\b`);
    const imports = (other: Source) =>
      other.imports.has(`${file} ${name}`) || (other.imports.has(`${file} *`) && word.test(other.text));
    check(`${file}: ${name}`, above, 'Exported for its tests.', sources.some(imports), tests.some(imports));
  }
}

/** Names that are set: keys of object literals, assigned properties, fields and methods of classes. */
function namesSet({ nodes }: Source): Set<string> {
  const patterns = new Set<AnyNode>(
    nodes.flatMap((node) => (node.type === 'ObjectPattern' ? node.properties : [])),
  );
  return new Set(
    nodes.flatMap((node) => {
      if (node.type === 'Property') return patterns.has(node) || node.computed ? [] : nameOf(node.key);
      if (node.type === 'PropertyDefinition' || node.type === 'MethodDefinition') return nameOf(node.key);
      const target = node.type === 'AssignmentExpression' ? node.left : node;
      return target !== node && target.type === 'MemberExpression' ? nameOf(target.property) : [];
    }),
  );
}

/**
 * Names that are read: properties that are not only assigned, keys of patterns, and texts, because a variable may contain a
 * name.
 */
function namesRead({ nodes }: Source): string[] {
  const assigned = new Set<AnyNode>(
    nodes.flatMap((node) => (node.type === 'AssignmentExpression' && node.operator === '=' ? node.left : [])),
  );
  return nodes.flatMap((node) => {
    if (node.type === 'ObjectPattern')
      return node.properties.flatMap((one) => (one.type === 'Property' ? nameOf(one.key) : []));
    if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : [];
    return node.type === 'MemberExpression' && !assigned.has(node) ? nameOf(node.property) : [];
  });
}

function nameOf(node: AnyNode): string[] {
  return node.type === 'Identifier' || node.type === 'PrivateIdentifier' ? [node.name] : [];
}

const settings = /^(?:export )?interface (\w*(?:Options|Settings|Choice))\b[^{\n]*\{\n([\s\S]*?)^\}/gm;
const option = new RegExp(`^ *${comment}(?:readonly )?(\\w+)\\?[:(<]`, 'gm');
const setIn = new Map([...sources, ...tests].map((source) => [source, namesSet(source)]));

for (const { file, text } of sources) {
  if (Object.hasOwn(setFromOutside, file)) continue;
  for (const [, type = '', body = ''] of text.matchAll(settings)) {
    for (const [, above = '', name = ''] of body.matchAll(option)) {
      const sets = (other: Source) => other.file !== file && setIn.get(other)?.has(name) === true;
      check(`${file}: ${type}.${name}`, above, 'Only tests set it.', sources.some(sets), tests.some(sets));
    }
  }
}

const read = new Set(sources.flatMap(namesRead));

for (const { file, nodes } of sources) {
  for (const node of nodes) {
    if (node.type !== 'PropertyDefinition' && node.type !== 'MethodDefinition') continue;
    const name = node.computed ? undefined : nameOf(node.key)[0];
    const isRead = name === undefined || name === 'constructor' || read.has(name);
    if (!isRead && !Object.hasOwn(readFromOutside, `${file}: ${name}`))
      complaints.push(`${file}: ${name}: nothing reads this member`);
  }
}

for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exit(1);
console.log(`unused: nothing in ${sources.length} files, except code marked as used by tests`);
