import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { findMain } from '../../harness/built-shopward.ts';
import { eventually } from '../../harness/eventually.ts';
import { freePort, isOpen } from '../../harness/free-port.ts';
import { bareEnvironment } from '../../harness/shopward.ts';

/** Follows the page: writes its files, runs its commands in one shell, and compares their output with the page. */
const root = path.join(import.meta.dirname, '../../..');
const folder = mkdtempSync(path.join(tmpdir(), 'shopward-quick-start-'));
const modules = path.join(folder, 'node_modules');
let shell: ChildProcess | undefined;
/** Ends the process group: the shell and every process that the page started. */
afterAll(() => {
  if (shell?.pid !== undefined) process.kill(-shell.pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** Replaces `npm install`: links packages of this checkout and writes a command that runs its build. */
function install(names: readonly string[]): void {
  mkdirSync(path.join(modules, '@fastify'), { recursive: true });
  mkdirSync(path.join(modules, '.bin'));
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    version: string;
  };
  expect(names).toContain(`./shopward-${version}.tgz`);
  for (const name of names.filter((one) => !one.startsWith('.')))
    symlinkSync(path.join(root, 'node_modules', name), path.join(modules, name));
  const command = path.join(modules, '.bin/shopward');
  writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${findMain()}" "$@"\n`);
  chmodSync(command, 0o755);
}

/** `...` matches any text, within a line too. */
function patternOf(shown: string): RegExp {
  const parts = shown
    .trim()
    .split('...')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(
    `^${parts.join('[\\s\\S]*').replaceAll('\n[\\s\\S]*', '[\\s\\S]*').replaceAll('[\\s\\S]*\n', '[\\s\\S]*')}$`,
  );
}

it('every command of the quick start prints what the page shows', async () => {
  const ports = { 9000: await freePort(), 8080: await freePort(), 8081: await freePort() };
  const page = Object.entries(ports).reduce(
    (text, [named, port]) => text.replaceAll(named, String(port)),
    readFileSync(path.join(root, 'docs/quick-start.md'), 'utf8'),
  );
  const env = {
    ...bareEnvironment,
    PATH: `${path.dirname(process.execPath)}:${process.env.PATH}`,
    HOME: folder,
  };
  shell = spawn('bash', {
    cwd: folder,
    env: { ...env, PORT: String(ports[8080]), ADMIN_PORT: String(ports[8081]) },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  let output = '';
  shell.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  const run = async (command: string): Promise<string> => {
    output = '';
    shell?.stdin?.write(`${command}\nprintf '\\nDONE-%s\\n' "$?"\n`);
    await eventually(command, () => /\nDONE-\d+\n$/.test(output) || undefined);
    return output.replace(/\nDONE-\d+\n$/, '').trim();
  };

  const blocks = [...page.matchAll(/^```(\w+)(?: (file|replace)=(\S+))?\n([\s\S]*?)^```$/gm)];
  let commands = 0;
  for (const [, language, way, name = '', text = ''] of blocks) {
    if (way === 'file') writeFileSync(path.join(folder, name), text);
    else if (way === 'replace') {
      const file = path.join(folder, name);
      const before = readFileSync(file, 'utf8');
      expect(before).toContain('entityTags: false\n');
      // The page uses the default admin port, which another process of this machine may have.
      const admin = `admin: { port: ${ports[8081]} }\n`;
      writeFileSync(
        file,
        before.replace('\nentityTags: false\n', () => `\n${text}${admin}`),
      );
    }
    if (language !== 'console') continue;
    for (const [, command = '', shown = ''] of text.matchAll(/^\$ (.*)\n((?:(?!\$ ).*\n)*)/gm)) {
      commands += 1;
      if (command.startsWith('npm install ')) {
        install(command.split(' ').slice(2));
        continue;
      }
      const isServer = command.endsWith('&');
      const serves = command.startsWith('node shop.js') ? ports[9000] : ports[8080];
      const printed = await run(command);
      if (isServer) await eventually(command, () => isOpen(serves));
      else expect(printed, command).toMatch(patternOf(shown));
    }
  }
  expect(commands).toBeGreaterThanOrEqual(18);
}, 180_000);
