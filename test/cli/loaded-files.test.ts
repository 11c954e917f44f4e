import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';

const root = path.join(import.meta.dirname, '../..');

/** Prints each file of src that is loaded. */
const hooks = `import { registerHooks } from 'node:module';
registerHooks({ load(url, context, next) {
  if (url.startsWith('${pathToFileURL(path.join(root, 'src'))}/')) process.stderr.write(url + '\\n');
  return next(url, context);
} });`;

function filesLoadedBy(...args: string[]): string[] {
  const preload = `data:text/javascript,${encodeURIComponent(hooks)}`;
  const { stderr } = spawnSync(process.execPath, ['--import', preload, 'src/main.ts', ...args], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, JWKS_URL: 'https://shop.example/keys' },
  });
  const files = stderr.split('\n').filter((line) => line.startsWith('file:'));
  return files.map((url) => path.relative(path.join(root, 'src'), new URL(url).pathname));
}

it('a health check loads the configuration and nothing of the proxy', () => {
  const files = filesLoadedBy('health', '--config', 'config/shopward.yaml');
  expect(files).toContain('cli/admin-verbs.ts');
  expect(files).toContain('config/load.ts');
  const needless = /^(?:app|proxy|server|cluster|access|url-resolver|refresh-tokens|telemetry|upstream)\b/;
  expect(files.filter((file) => needless.test(file))).toEqual([]);
  expect(files.filter((file) => /^cli\/(?:explain|verify|protected|serve|check|tokens)/.test(file))).toEqual(
    [],
  );
});

it('a verb that is called loads no other one', () => {
  const files = filesLoadedBy('version');
  expect(files).toContain('cli/command-io.ts');
  expect(files.filter((file) => file.startsWith('config/'))).toEqual([]);
});
