import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runCheck } from '../../src/cli/check.ts';
import { findMain } from '../harness/built-shopward.ts';
import { bareEnvironment } from '../harness/shopward.ts';
import { runCommand } from '../unit/cli/command-run.ts';
import { mutate, mutation } from '../unit/cli/mutations.ts';
import { makeFolder } from '../unit/config/config-folder.ts';

const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const valid: Readonly<Record<string, string>> = {
  'shopward.yaml': `listen: { host: 127.0.0.1, port: 0 }
admin: { port: 0 }
upstream: { url: "http://127.0.0.1:9" }
auth: { keys: { files: [key.pem] } }
urlResolver: { source: urls.csv, locales: [en] }
`,
  'protected-resources.yaml':
    'groups:\n  Carts:\n    - { match: "PATCH /carts/{id}", scopes: [buyer] }\ncomplete: true\n',
  'key.pem': publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  'urls.csv': 'url,entityType,entityId\n/en/a,abstract-products,1\n',
};

/** Runs `serve`, and stops it once it listens. */
async function serve(cwd: string) {
  const child = spawn(process.execPath, [findMain(), 'serve', '--config', 'shopward.yaml'], {
    cwd,
    env: bareEnvironment,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (text) => {
    said += text;
    if (said.includes(' is listening on ')) child.kill('SIGTERM');
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, said };
}

it('serve with a mutated file listens, or exits with 78, line and column (75: port in use), without a stack trace', async () => {
  const cwd = makeFolder(valid);
  const first = await serve(cwd);
  expect(first.code, first.said).toBe(0);
  const codes = [first.code];
  const asked = fc.record({
    name: fc.constantFrom(...Object.keys(valid)),
    all: fc.array(mutation, { minLength: 1, maxLength: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(asked, async ({ name, all }) => {
      writeFileSync(path.join(cwd, name), mutate(valid[name] ?? '', all));
      const checked = await runCommand((io) => runCheck({ config: 'shopward.yaml', offline: true }, io), {
        cwd,
      });
      const { code, said } = await serve(cwd);
      codes.push(code);
      // 75: a mutated port is in use.
      expect(checked.code === 0 ? [0, 75] : [78], said).toContain(code);
      expect(said).not.toMatch(/^ +at /m);
      if (code === 78) expect(said).toMatch(/^\S+:\d+:\d+: error: \S/m);
      writeFileSync(path.join(cwd, name), valid[name] ?? '');
    }),
    { numRuns: 8 },
  );
  for (const code of [0, 78]) expect(codes).toContain(code);
});
