/**
 * The shape rule of src: each folder stays below its size limit, no function has more than 60 lines, no imports form a
 * circle, and no file has a single importer and no test. Exceptions are listed below with their reason; an unneeded
 * exception is an error, too. Exits 1 and names every breach.
 */
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { type Node, parse } from 'acorn';

/** Lines of each folder of src, files directly in src included. A limit may only fall. */
const folderLimits: Readonly<Record<string, number>> = {
  access: 5019,
  admin: 1878,
  app: 2300,
  authorize: 172,
  cli: 4250,
  cluster: 827,
  config: 2309,
  'entity-tags': 2987,
  http: 2072,
  lib: 1083,
  main: 32,
  proxy: 462,
  'rate-limits': 280,
  redis: 1986,
  'refresh-tokens': 2625,
  rollout: 914,
  routes: 989,
  server: 1740,
  telemetry: 1237,
  upstream: 3327,
  'url-resolver': 1978,
};
/** A folder that is smaller than its limit by more lines needs a lower limit. */
const folderSlack = 100;

const mostLines = 60;

/** `file: function` -> why it may be longer. */
const longFunctions: Readonly<Record<string, string>> = {};

/** Files -> why they may import each other. */
const circles: Readonly<Record<string, string>> = {};

/** A pattern of files -> why each of them has a single importer. */
const singleImporters: readonly (readonly [pattern: RegExp, why: string])[] = [
  [/^src\/config\/sections\//, 'a section of the configuration and of its reference'],
  [
    /^src\/upstream\/(forwarded-exchange|response-relay)\.ts$/,
    'parts of the client of the upstream, which the suites test over sockets',
  ],
  [/^src\/cli\/verify\/[a-z]+-checks\.ts$/, 'checks of one area; their tests use sockets'],
  [/^src\/cli\/keep-compiled\.ts$/, 'the cache of the built program, which test/end-to-end/deploy runs'],
  [/^src\/authorize\/question\.ts$/, 'the pure reader of a question; its tests use sockets'],
  [
    /^src\/access\/protected-list-conditions\.ts$/,
    'one key of rows; the reader of the list is large already',
  ],
  [/^src\/(telemetry\/otlp|admin\/doc-pages)\.ts$/, 'the only module that uses a certain library'],
  [
    /^src\/app\/(access|entity-tags|public-port|refresh-tokens|store)\.ts$/,
    'each wires one part for the composition root',
  ],
  [/^src\/cluster\/primary\.ts$/, 'a process of its own, which `serve` loads only if there are workers'],
  [/^src\/[a-z-]+\/refusal-rows\.ts$/, 'refusals of one feature, for the table of all refusals'],
  [/^src\/routes\/path-routes\.ts$/, 'rows and their forms; the importing table has the rules'],
  [/^src\/config\/rules\.ts$/, 'rules between sections; the loader only calls them'],
  [/^src\/redis\/claims\.ts$/, 'the protocol of a claim (docs/decisions/store-calls.md)'],
  [
    /^src\/entity-tags\/(read|unleased-write)\.ts$/,
    'one of the kinds of requests that the filter distinguishes',
  ],
  [/^src\/refresh-tokens\/replay\.ts$/, 'the answer to a used token; the importer has the refresh itself'],
  [/^src\/admin\/admission\.ts$/, 'who may use the admin port; its tests use sockets'],
  [/^src\/rollout\/lua\.ts$/, 'the scripts that run in Redis; the importer calls them'],
];

interface Source {
  readonly file: string;
  readonly text: string;
  /** Imported files of the repository, for types or for values. */
  readonly imports: ReadonlySet<string>;
}

const importText = /\b(?:from|import)\s*\(?\s*'(\.\.?\/[^']+\.[jt]s)'/g;

function readSource(file: string): Source {
  const text = readFileSync(file, 'utf8');
  const targets = text.matchAll(importText).map(([, target = '']) => path.join(path.dirname(file), target));
  return { file, text, imports: new Set(targets) };
}

/** Name and length of each function that is too long. Functions inside count towards it. */
function longFunctionsOf({ file, text }: Source): (readonly [location: string, lines: number])[] {
  const found: (readonly [string, number])[] = [];
  const options = { ecmaVersion: 'latest', sourceType: 'module', locations: true } as const;
  const visit = (node: Node, name: string): void => {
    const { type, loc } = node;
    const lines = loc ? loc.end.line - loc.start.line + 1 : 0;
    if (/Function/.test(type) && lines > mostLines) found.push([`${file}: ${nameOf(node, name)}`, lines]);
    for (const child of Object.values(node).flat()) if (isNode(child)) visit(child, nameOf(node, name));
  };
  // Types are replaced by spaces, so that line numbers stay the same.
  visit(parse(stripTypeScriptTypes(text), options), 'the file');
  return found;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** The name of a function, method or variable, else of the node around it. */
function nameOf(node: Node, owner: string): string {
  const { id, key } = node as { id?: { name?: string } | null; key?: { name?: string } };
  return id?.name ?? key?.name ?? owner;
}

/** Each circle once, with its files in alphabetical order (strongly connected components, by Tarjan). */
function circlesOf(graph: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (file: string): number => {
    order.set(file, order.size);
    let low = order.get(file) ?? 0;
    stack.push(file);
    for (const next of graph.get(file) ?? []) {
      if (!graph.has(next)) continue;
      if (!order.has(next)) low = Math.min(low, visit(next));
      else if (stack.includes(next)) low = Math.min(low, order.get(next) ?? low);
    }
    lowest.set(file, low);
    if (low === order.get(file)) {
      const circle = stack.splice(stack.indexOf(file));
      if (circle.length > 1) found.push(circle.sort());
    }
    return low;
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return found;
}

function folderSizes(sources: readonly Source[]): Map<string, number> {
  const sizes = new Map<string, number>();
  for (const { file, text } of sources) {
    const folder = file.split('/')[1]?.replace(/\.ts$/, '') ?? '';
    sizes.set(folder, (sizes.get(folder) ?? 0) + text.split('\n').length - 1);
  }
  return sizes;
}

const sources = globSync('src/**/*.ts').map((file) => readSource(file));
const others = globSync('{test,bench,demo,scripts}/**/*.ts').map((file) => readSource(file));
const sizes = folderSizes(sources);
const complaints: string[] = [];
const used = new Set<string>();
const allow = (allowances: Readonly<Record<string, string>>, key: string, complaint: string) => {
  if (Object.hasOwn(allowances, key)) used.add(key);
  else complaints.push(complaint);
};

for (const source of sources) {
  for (const [location, lines] of longFunctionsOf(source)) {
    allow(longFunctions, location, `${location} has ${lines} lines; ${mostLines} are the most`);
  }
}
for (const circle of circlesOf(new Map(sources.map(({ file, imports }) => [file, imports])))) {
  allow(circles, circle.join(' '), `a circle: ${circle.join(' -> ')}`);
}
for (const { file } of sources) {
  const importers = sources.filter(({ imports }) => imports.has(file));
  if (importers.length !== 1 || others.some(({ imports }) => imports.has(file))) continue;
  const licence = singleImporters.find(([pattern]) => pattern.test(file));
  if (licence !== undefined) used.add(String(licence[0]));
  else complaints.push(`${file} has one importer, ${importers[0]?.file}, and no test`);
}
for (const key of [
  ...Object.keys(longFunctions),
  ...Object.keys(circles),
  ...singleImporters.map(([one]) => String(one)),
]) {
  if (!used.has(key)) complaints.push(`the exception for ${key} is not needed any more`);
}

for (const folder of Object.keys({ ...folderLimits, ...Object.fromEntries(sizes) }).sort()) {
  const [size = 0, limit = 0] = [sizes.get(folder), folderLimits[folder]];
  console.log(`${folder.padEnd(16)}${String(size).padStart(6)} lines, limit ${limit}`);
  if (size > limit) complaints.push(`src/${folder} has ${size} lines; its limit is ${limit}`);
  if (size < limit - folderSlack)
    complaints.push(`src/${folder} has ${size} lines: lower its limit of ${limit}`);
}

for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exit(1);
console.log(`shape: ${sources.length} files without circles, long functions and needless splits`);
