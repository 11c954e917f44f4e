/**
 * The rule for regular expressions: each one in src takes linear time for any text. recheck proves this for every literal
 * and every construction in the syntax tree, or finds a text that takes quadratic time. Exits 1 and names each expression
 * that is not safe, with such a text. Replace a slow expression by a loop (src/http/field-list.ts), or bound its
 * repetitions. Exceptions, for expressions that never see text from outside, are listed here with their reason.
 */
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { type AnyNode, type CallExpression, type NewExpression, parse } from 'acorn';
import { check } from 'recheck';

/** `file: construction` -> why it may be built at run time. */
const allowedConstructions: Readonly<Record<string, string>> = {
  "src/url-resolver/envelope.ts: new RegExp(special, 'g')": 'the same literal as in the line above',
};

/** Longest time for one expression; most take about 100 ms. An expression that takes longer counts as not safe. */
const timeoutMs = 120_000;

interface Pattern {
  readonly source: string;
  readonly flags: string;
}

const locations = new Map<string, { readonly pattern: Pattern; readonly at: string[] }>();
const complaints: string[] = [];
const unused = new Set(Object.keys(allowedConstructions));

for (const file of globSync('src/**/*.{ts,js,mjs}')) {
  // Types are replaced by spaces, so that positions stay the same.
  const code = stripTypeScriptTypes(readFileSync(file, 'utf8'));
  const location = (node: AnyNode) => `${file}:${code.slice(0, node.start).split('\n').length}`;
  for (const node of nodesOf(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }))) {
    const pattern = patternOf(node);
    if (pattern !== undefined) {
      const key = `/${pattern.source}/${pattern.flags}`;
      const known = locations.get(key) ?? { pattern, at: [] };
      known.at.push(location(node));
      locations.set(key, known);
    } else if (buildsPattern(node)) {
      const construction = `${file}: ${code.slice(node.start, node.end)}`;
      if (!unused.delete(construction) && !(construction in allowedConstructions)) {
        complaints.push(`${location(node)}: ${construction} is not a literal, and not listed`);
      }
    }
  }
}

for (const [text, { pattern, at }] of locations) {
  const found = await findSlowPart(pattern);
  if (found.status === 'safe') continue;
  const why =
    found.status === 'vulnerable' ? `${found.complexity.summary}: ${found.attack.pattern}` : 'not decided';
  complaints.push(`${at.join(', ')}: ${text} is not linear (${why})`);
}
for (const licence of unused)
  complaints.push(`scripts/check-patterns.ts: nothing needs the exception for ${licence}`);

for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exit(1);
console.log(`patterns: ${locations.size} regular expressions, each linear for any text`);

/**
 * An automaton decides most expressions, with the same result each time. Expressions with bounded repetitions or
 * look-aheads are fuzzed, and a busy machine cuts that short: a finding must be confirmed with other seeds.
 */
async function findSlowPart({ source, flags }: Pattern): ReturnType<typeof check> {
  let found = await check(source, flags, { timeout: timeoutMs });
  for (const randomSeed of [1, 2, 3, 4, 5, 6, 7, 8]) {
    if (found.status === 'safe' || (found.status === 'vulnerable' && found.checker === 'automaton')) break;
    found = await check(source, flags, { timeout: timeoutMs, randomSeed });
  }
  return found;
}

function* nodesOf(value: unknown): Generator<AnyNode> {
  if (typeof value !== 'object' || value === null) return;
  if ('type' in value) yield value as AnyNode;
  for (const part of Object.values(value)) yield* nodesOf(part);
}

/** A literal, or a construction whose arguments are all literals. */
function patternOf(node: AnyNode): Pattern | undefined {
  if (node.type === 'Literal' && node.regex) return { source: node.regex.pattern, flags: node.regex.flags };
  const call = regExpCallOf(node);
  if (call === undefined) return undefined;
  const [source, flags = ''] = call.arguments.map((argument) =>
    argument.type === 'Literal' && typeof argument.value === 'string' ? argument.value : undefined,
  );
  return source === undefined || flags === undefined ? undefined : { source, flags };
}

/** `RegExp(…)`, and the methods of String that make a pattern of a text argument. */
function buildsPattern(node: AnyNode): boolean {
  if (regExpCallOf(node) !== undefined) return true;
  if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return false;
  const { property } = node.callee;
  const isMatching =
    property.type === 'Identifier' && ['match', 'matchAll', 'search'].includes(property.name);
  const [first] = node.arguments;
  return isMatching && (first?.type === 'TemplateLiteral' || (first?.type === 'Literal' && !first.regex));
}

function regExpCallOf(node: AnyNode): CallExpression | NewExpression | undefined {
  if (node.type !== 'NewExpression' && node.type !== 'CallExpression') return undefined;
  return node.callee.type === 'Identifier' && node.callee.name === 'RegExp' ? node : undefined;
}
