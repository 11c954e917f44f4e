import { execFile } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runVerify, type VerifyChoice } from '../../../src/cli/verify.ts';
import { makeFolder } from '../config/config-folder.ts';
import { findMain } from '../../harness/built-shopward.ts';
import { freePort } from '../../harness/free-port.ts';
import { bareEnvironment, type RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { runHere } from './command-line-here.ts';
import { runCommand } from './command-run.ts';
import { openVerifyStage } from './verify-stage.ts';

const root = path.join(import.meta.dirname, '../../..');
const page = readFileSync(path.join(root, 'docs/command-line.md'), 'utf8');

const openApi = `openapi: 3.0.0
info: { title: Shop API, version: "202512" }
paths:
  /carts: { get: &secured { tags: [carts], security: [{ B: [] }] }, post: *secured }
  /carts/{cartId}: { get: *secured, patch: *secured, delete: *secured }
  /quote-requests: { get: { tags: [quote-requests], security: [{ B: [] }] } }
  /stores: { get: { tags: [stores] } }
components:
  securitySchemes: { B: { type: http, scheme: bearer } }
`;

/** Commands on the page that need neither a running proxy nor a broken file, with the output that the page shows. */
const shown = [
  ...page.matchAll(
    /^ {4}\$ (shopward (?:explain|protected|init) .*)\n((?: {4}(?!\$ ).*\n|\n(?= {4}(?!\$ )))+)/gm,
  ),
].map(([, command = '', output = '']) => [command, output.replace(/^ {4}/gm, '').trimEnd()] as const);

it('the page shows at least five such commands', () => {
  expect(shown.length).toBeGreaterThanOrEqual(5);
});

it.each(shown)('%s', async (command, output) => {
  const cwd = makeFolder({ 'openapi.yml': openApi });
  // init needs a folder without the files that it writes.
  if (!command.startsWith('shopward init'))
    cpSync(path.join(root, 'config'), path.join(cwd, 'config'), { recursive: true });
  const { stdout } = await runHere(await wordsOf(command), { cwd, env });
  expect(stdout.trimEnd()).toMatch(patternOf(output));
});

const env = { JWKS_URL: 'https://shop.example/jwks.json' };

/** Splits a command into words as a shell does. */
async function wordsOf(command: string): Promise<string[]> {
  const script = `shopward() { printf '%s\\0' "$@"; }\n${command}`;
  return (await runShell(script)).split('\0').slice(0, -1);
}

/** A shell function that runs the command in a separate process. */
const asProcess = (args = '') => `shopward() { "${process.execPath}" "${findMain()}" "$@" ${args}; }`;

/** Standard output of a script. */
async function runShell(script: string, cwd = root): Promise<string> {
  const options = { cwd, env: { ...bareEnvironment, ...env } };
  return (await promisify(execFile)('/bin/sh', ['-c', script], options)).stdout;
}

/** A line `...` matches any lines. */
function patternOf(output: string): RegExp {
  const pattern = output
    .split('\n')
    .map((line) => (line.trim() === '...' ? '[\\s\\S]*' : line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')))
    .join('\n')
    .replace(/\n\[\\s\\S\]\*(?=\n|$)/g, '[\\s\\S]*');
  return new RegExp(`^${pattern}$`);
}

/** Lines below a command on the page, or below the first one that starts with it, up to the next `$` or block end. */
function shownBelow(command: string): string[] {
  const whole = page.indexOf(`    $ ${command}\n`);
  const start = whole === -1 ? page.indexOf(`    $ ${command}`) : whole;
  expect(start, command).not.toBe(-1);
  const lines = page.slice(start).split('\n').slice(1);
  const end = lines.findIndex((line) => line.startsWith('    $ ') || /^\S/.test(line));
  return lines.slice(0, end).map((line) => line.slice(4));
}

it('shopward check prints the problems that the page shows', async () => {
  const cwd = makeFolder({
    'b.yaml': `auth: { keys: { files: [key.pem] } }\nprotectedResources: broken.yaml\n${'\n'.repeat(5)}modee: observe\n`,
    'broken.yaml': 'groups:\n  A:\n    - GET /a\n    - GETT /b\ncomplete: true\n',
    'key.pem': '',
  });
  const output = await runShell(`${asProcess()}\nshopward check --config b.yaml; echo "exit $?"`, cwd);
  const named = output
    .trimEnd()
    .split('\n')
    .filter((line) => !line.includes('key.pem'));
  for (const line of shownBelow('shopward check').filter((one) => one !== '' && !one.startsWith('checked')))
    expect(named).toContain(line);
});

it('purge, tokens and health print what the page shows', async () => {
  const one = await startShopwardHere({
    upstream: 'http://127.0.0.1:9',
    config: { admin: { port: await freePort() } },
  });
  onTestFinished(() => one.stop());
  const commands = [...page.matchAll(/^ {4}\$ (shopward (?:purge|tokens|health)\b.*)$/gm)];
  expect(commands.length).toBeGreaterThanOrEqual(3);
  for (const [, command = ''] of commands) {
    const printed = await printedBy(command, one);
    expect(printed.trimEnd(), command).toMatch(patternOf(shownBelow(command).join('\n').trimEnd()));
  }
});

/** Both streams. A script that prints the exit code runs in a real process. */
async function printedBy(command: string, { folder, configFile }: RunningShopward): Promise<string> {
  if (command.includes('; ')) {
    return runShell(`${asProcess(`--config "${configFile}"`)}\n{ ${command}; } 2>&1`, folder);
  }
  const words = [...(await wordsOf(command)), '--config', configFile];
  const { stdout, stderr } = await runHere(words, { cwd: folder, env });
  return stdout + stderr;
}

describe('shopward verify', () => {
  const stage = openVerifyStage();
  /** Hides the address, the cart, its tag and the column widths. */
  const blurred = (line: string) =>
    line
      .replace(/http:\/\/127\.0\.0\.1:\d+/g, 'URL')
      .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'CART')
      .replace(/"[0-9a-f]{32}\.[0-9a-f]{1,24}"/g, '"TAG"')
      .replace(/ {2,}/g, '  ');

  async function expectShown(command: string, url: string, options: VerifyChoice): Promise<void> {
    const given = { config: stage.shopward.configFile, ...options };
    const { out } = await runCommand((io) => runVerify(url, given, io));
    const printed = out.map(blurred);
    for (const line of shownBelow(command).map(blurred))
      if (line.trim() !== '' && line.trim() !== '...') expect(printed).toContain(line);
  }

  it('of the demo', () =>
    expectShown('SHOPWARD_TOKEN=... shopward verify', stage.shopward.url, {
      token: stage.shopward.issueToken(),
    }));

  it('of a shop that can be reached around the proxy', () =>
    expectShown('shopward verify http://shop.internal:9000', stage.shop.url, {}));
});
