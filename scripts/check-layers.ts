/**
 * The layer rule: main -> cli -> app -> proxy -> features -> http -> lib. Features never import one another. The modules in
 * `pure` import neither Node, nor a client, nor a logger. Exits 1 and names every import that breaks the rule.
 *
 * dependency-cruiser 18 cannot replace this script: it needs TypeScript below 7 to read `.ts` files, and finds no module
 * here.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ground = ['lib', 'http', 'routes', 'redis'];
const features = ['access', 'entity-tags', 'rate-limits', 'url-resolver', 'refresh-tokens', 'upstream'];
/** The contracts of features with the pipeline, which runs them, and with the forwarder. */
const ports = ['proxy/filter', 'upstream/hooks', 'upstream/port'];

/** A folder of src, or a file directly in it -> what it may import besides itself. */
const mayImport: Record<string, readonly string[]> = {
  lib: [],
  // The table of all refusals consists of the rows of each feature, which are data only.
  http: ['lib', ...features.map((feature) => `${feature}/refusal-rows`)],
  routes: ['lib', 'http'],
  redis: ['lib'],
  telemetry: ['lib', 'http'],
  config: ['lib', 'http', 'routes', 'redis/redis-url', 'entity-tags/times', 'url-resolver/envelope'],
  ...Object.fromEntries(features.map((feature) => [feature, [...ground, ...ports]])),
  rollout: [...ground, 'access/protected-list', 'telemetry/decision-counts'],
  server: [...ground, 'telemetry', 'upstream/forward', 'upstream/websocket'],
  proxy: [...ground, 'access/protected-list', 'access/token-locations', 'server', 'upstream/hooks'],
  authorize: [...ground, 'proxy', 'server'],
  admin: [...ground, ...features, 'rollout/observed-rows', 'rollout/reasons', 'rollout/report', 'telemetry'],
  app: [...ground, ...features, 'rollout', 'admin', 'config', 'telemetry', 'server', 'proxy', 'authorize'],
  'app.ts': [...ground, ...features, 'rollout', 'admin', 'config', 'telemetry', 'server', 'proxy', 'app'],
  cluster: [...ground, ...features, 'rollout', 'admin', 'config', 'telemetry', 'app', 'app.ts'],
  cli: [
    ...ground,
    ...features,
    'authorize',
    'rollout',
    'proxy',
    'config',
    'telemetry',
    'app',
    'app.ts',
    'cluster',
  ],
  'main.ts': ['cli'],
};

/** Pure decisions: they get values and return values. */
const pure = [
  'http/rejection*.ts',
  '*/refusal-rows.ts',
  'http/{canonicalise-request,request-target,request-fields,field-*,form-encoding,path-*}.ts',
  'routes/*.ts',
  'access/{protected-list*,bearer-credentials,authenticate,token-claims}.ts',
  'proxy/{plan,filter}.ts',
  'entity-tags/{protocol,entity-tag,times}.ts',
];

const imports = /^\s*(?:import|export)\b[^'"]*?from\s*'([^']+)'/gm;
const importsOf = (file: string) => readFileSync(file, 'utf8').matchAll(imports);
const complaints: string[] = [];

for (const file of globSync('src/**/*.ts')) {
  const room = path.relative('src', file).split(path.sep)[0] as string;
  const allowed = mayImport[room];
  if (!allowed) complaints.push(`${file}: ${room} has no row in scripts/check-layers.ts`);
  for (const [, target = ''] of importsOf(file)) {
    if (!target.startsWith('.')) continue;
    const seen = path.relative('src', path.resolve(path.dirname(file), target));
    const isAllowed = [room, ...(allowed ?? [])].some(
      (location) => seen === location || seen === `${location}.ts` || seen.startsWith(`${location}/`),
    );
    if (!isAllowed) complaints.push(`${file}: ${room} must not import ${seen}`);
  }
}

for (const file of pure.flatMap((pattern) => globSync(`src/${pattern}`))) {
  for (const [, target = ''] of importsOf(file)) {
    const isEffect = target.startsWith('node:') && target !== 'node:buffer';
    if (isEffect || ['pino', 'ioredis'].includes(target)) {
      complaints.push(`${file}: a pure decision must not import ${target}`);
    }
  }
}

for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exit(1);
console.log('layers: every import points down, and decisions are pure');
