/**
 * The layer rule: main -> commands -> app -> pipeline -> features -> ground. Features never import one another; the
 * decisions named as pure import neither node nor a client nor a logger. Exits 1 and names every import that breaks it.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ground = ['request', 'rejections', 'redis', 'config/problem', 'event-loop'];
const features = ['protection', 'entity-tags', 'url-resolver', 'refresh-tokens', 'forwarding'];
/** What features and the forwarder agree on. */
const forwardingPorts = ['forwarding/passage', 'forwarding/engine'];

/** Room of src (a folder, or a file of its own) -> what it may import besides itself. */
const mayImport: Record<string, readonly string[]> = {
  'event-loop': [],
  request: ['rejections', 'event-loop'],
  rejections: ['request/field-list', 'request/canonical-request', 'event-loop'],
  redis: [],
  telemetry: ['rejections', 'request'],
  config: ['rejections', 'request', 'redis/redis-url', 'entity-tags/times'],
  ...Object.fromEntries(features.map((feature) => [feature, [...ground, ...forwardingPorts]])),
  server: [...ground, 'telemetry', 'forwarding/forwarder', 'forwarding/websocket'],
  'pipeline.ts': [...ground, ...features, 'server'],
  admin: [...ground, ...features, 'telemetry'],
  app: [...ground, ...features, 'admin', 'config', 'telemetry', 'server', 'pipeline.ts'],
  'app.ts': [...ground, ...features, 'admin', 'config', 'telemetry', 'server', 'pipeline.ts', 'app'],
  workers: [...ground, ...features, 'admin', 'config', 'telemetry', 'app', 'app.ts'],
  commands: [...ground, ...features, 'config', 'telemetry', 'app', 'app.ts', 'workers'],
  'main.ts': ['commands'],
};

/** Decisions: values in, values out. */
const pure = [
  'rejections/{table,rejection}.ts',
  'request/{canonicalise-request,request-target,request-fields,framing,host,method-override,path-*,field-list}.ts',
  'protection/{protected-list*,protected-resource,bearer-credentials,challenge,token-claims,subject}.ts',
  'entity-tags/{claim-protocol,entity-tag,precondition,write-outcome,times}.ts',
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
      (place) => seen === place || seen === `${place}.ts` || seen.startsWith(`${place}/`),
    );
    if (!isAllowed) complaints.push(`${file}: ${room} must not import ${seen}`);
  }
}

for (const file of pure.flatMap((pattern) => globSync(`src/${pattern}`))) {
  for (const [, target = ''] of importsOf(file)) {
    if (target.startsWith('node:') || ['pino', 'ioredis', 'undici', 'http-proxy-3'].includes(target)) {
      complaints.push(`${file}: a pure decision must not import ${target}`);
    }
  }
}

for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exit(1);
console.log('layers: every import points down, and decisions are pure');
