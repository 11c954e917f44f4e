/**
 * The rule for spread arguments: a call with more than about 120,000 arguments throws a RangeError. So no list whose length
 * an outsider decides may become arguments (`push(...list)`, `Math.max(...list)`, `apply`). Every such call in src must be
 * in the table below, with the bound of its length; an unneeded row is an error, too. Write a loop, `reduce` or `concat`
 * instead. Exits 1 and names each breach.
 */
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { type AnyNode, parse } from 'acorn';

const metricsOfOurs = 'metrics that shopward declares';
const ofCaller = 'the arguments of a call, passed on';
const ofScript =
  'keys and arguments of one script: a fixed operation with the tags of one `If-Match`, or a batch of `batchSize`';
const ofServers = 'one for each Redis server';

/** `file: what is spread` -> what bounds its length. */
const licences: Readonly<Record<string, string>> = {
  'src/app.ts: component.metrics ?? []': metricsOfOurs,
  'src/app/admin.ts: history.metrics': metricsOfOurs,
  'src/cluster/primary.ts: supervisorMetrics(count, supervisor)': metricsOfOurs,
  'src/cluster/primary.ts: list.metrics': metricsOfOurs,
  'src/cli/command-line.ts: args.slice(0, given)': ofCaller,
  'src/redis/membership.ts: args': ofCaller,
  'src/cli/verify/tag-checks.ts: await checkMember(verification, token, resource, path)':
    'the checks of one path',
  'src/entity-tags/protocol.ts: leases.map(({ until }) => until)': '`maxLeases`',
  'src/entity-tags/protocol.ts: tagged': '`maxLeases`',
  'src/redis/claims.ts: all': ofScript,
  'src/redis/connect-redis.ts: keys': ofScript,
  'src/redis/connect-redis.ts: args': ofScript,
  'src/redis/store.ts: membership.overdue()': 'at most one text',
  'src/redis/watch.ts: infos.map(countReplicas)': ofServers,
  'src/refresh-tokens/redis-store.ts: range': 'the ends of a range, and its limit',
  'src/rollout/shared-counts.ts: fields.slice(i, i + mostFields)': '`mostFields`',
  'src/url-resolver/purges.ts: end < 0 ? entries : entries.slice(0, end)': 'a page of `chunk` entries',
};

const complaints: string[] = [];
const unused = new Set(Object.keys(licences));

for (const file of globSync('src/**/*.{ts,js,mjs}').sort()) {
  // Types are replaced by spaces, so that positions stay the same.
  const code = stripTypeScriptTypes(readFileSync(file, 'utf8'));
  for (const node of nodesOf(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }))) {
    for (const list of spreadInto(node)) {
      const text = `${file}: ${code.slice(list.start, list.end).replace(/\s+/g, ' ')}`;
      if (licences[text] !== undefined) unused.delete(text);
      else complaints.push(`${file}:${code.slice(0, list.start).split('\n').length}: ${text} is not listed`);
    }
  }
}
for (const licence of unused) complaints.push(`scripts/check-spreads.ts: nothing needs the row ${licence}`);

for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exit(1);
console.log(`spreads: ${Object.keys(licences).length} lists become arguments, each bounded`);

/** Lists that become arguments of a call: `f(...list)`, `new F(...list)`, `f.apply(self, list)`. */
function spreadInto(node: AnyNode): AnyNode[] {
  if (node.type !== 'CallExpression' && node.type !== 'NewExpression') return [];
  const spread = node.arguments.flatMap((one) => (one.type === 'SpreadElement' ? one.argument : []));
  const isApply =
    node.callee.type === 'MemberExpression' &&
    node.callee.property.type === 'Identifier' &&
    node.callee.property.name === 'apply';
  const applied = isApply && node.arguments.length > 1 ? node.arguments.slice(-1) : [];
  // The code shows the length of a literal.
  return [...spread, ...applied].filter((list) => list.type !== 'ArrayExpression');
}

function* nodesOf(value: unknown): Generator<AnyNode> {
  if (typeof value !== 'object' || value === null) return;
  if ('type' in value) yield value as AnyNode;
  for (const part of Object.values(value)) yield* nodesOf(part);
}
