/**
 * The layer rule: main -> commands -> app -> pipeline -> features -> ground. Features never import one another; files
 * named here as pure import neither node nor a client nor a logger. Exits 1 and names every import that points up.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ground = ['request', 'rejections', 'redis'];
const features = ['protection', 'entity-tags', 'url-resolver', 'refresh-tokens', 'forwarding'];

/** Folder (or file directly in src) -> what it may import besides itself. */
const mayImport: Record<string, readonly string[]> = {
  rejections: [],
  request: ['rejections'],
  redis: [],
  config: ['rejections', 'request', 'redis/redis-url', 'entity-tags/times'],
  ...Object.fromEntries(
    features.map((name) => [name, [...ground, 'forwarding/passage', 'forwarding/engine', 'config/problem']]),
  ),
  server: [...ground, 'forwarding/passage'],
  admin: [...ground, ...features, 'config', 'telemetry'],
  telemetry: ['rejections', 'request'],
  'pipeline.ts': [...ground, ...features, 'server', 'telemetry'],
  'app.ts': [...ground, ...features, 'server', 'admin', 'config', 'telemetry', 'pipeline.ts'],
  commands: [...ground, ...features, 'config', 'app.ts', 'admin', 'server', 'telemetry'],
  'main.ts': ['commands'],
};

const imports = /^\s*(?:import|export)\b[^'"]*?from\s*'(\.[^']+)'/gm;
const complaints: string[] = [];

for (const file of globSync('src/**/*.ts')) {
  const own = path.relative('src', file);
  const room = own.split(path.sep)[0] as string;
  const allowed = mayImport[room];
  if (!allowed) {
    complaints.push(`${file}: ${room} has no row in scripts/check-layers.ts`);
    continue;
  }
  for (const [, target = ''] of readFileSync(file, 'utf8').matchAll(imports)) {
    const seen = path.relative('src', path.resolve(path.dirname(file), target));
    const isAllowed = [room, ...allowed].some(
      (prefix) =>
        seen === prefix ||
        seen.startsWith(`${prefix}/`) ||
        seen.startsWith(`${prefix}.`) ||
        seen.startsWith(`${prefix}-`),
    );
    if (!isAllowed) complaints.push(`${file}: ${room} must not import ${seen}`);
  }
}

for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exit(1);
console.log('layers: every import points down');
