import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { runHere } from '../../unit/cli/command-line-here.ts';

/**
 * Checks each command that a page tells its reader to run: everything in it exists (script, file, test, verb and options), or
 * it is in `checkedElsewhere`.
 */
const root = path.join(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...globSync('{docs,deploy}/**/*.md', { cwd: root }),
].sort();
const { scripts } = JSON.parse(read('package.json')) as { scripts: Readonly<Record<string, string>> };
const programs =
  /^(?:[A-Z_]+=\S+ )*(?:npm|npx|node|docker|kubectl|helm|shopward|curl|redis-cli|git|kill|systemctl|openssl|buildah|promtool|sed|export|pbpaste) \S/;

/** Commands that another test runs, or that need what a test lacks: a cluster, a daemon, a clone to write into. */
const checkedElsewhere: readonly RegExp[] = [
  /^npm (?:ci|pack|install \.\/shopward-\S+\.tgz\b.*|install --omit=dev)$/,
  /^npx --package=\.\/shopward-\S+\.tgz shopward --version$/,
  /^docker (?:build |compose -f deploy\/compose\.yaml up\b)/,
  /^helm install shopward deploy\/helm\/shopward /,
  /^curl -s '127\.0\.0\.1:8081\/api\/(?:decisions\/search\?outcome=refused|rows\?kind=unmet&limit=1000)'$/,
  /^openssl rand -hex 32 > deploy\/admin-token$/,
  /^kubectl (?:create secret|port-forward) /,
  /^(?:pbpaste|jq .*|select\(.*|grep .*|echo .*|curl -v|node --version)$/,
];

interface PageCommand {
  readonly at: string;
  readonly text: string;
}

/** Commands in fenced blocks (after `$ ` if output is shown), in indented blocks and in inline code. */
function commandsOf(page: string): PageCommand[] {
  const found: PageCommand[] = [];
  let language: string | undefined;
  for (const [index, line] of read(page).split('\n').entries()) {
    const fence = /^```(\w*)/.exec(line);
    if (fence !== null) language = language === undefined ? (fence[1] ?? '') : undefined;
    const at = `${page}:${index + 1}`;
    const inBlock = /^ {4}(?:\$ )?(\S.*)$/.exec(line)?.[1];
    const inFence =
      language === undefined ? undefined : (/^\$ (.*)$/.exec(line)?.[1] ?? shellLine(language, line));
    const inText =
      language === undefined ? [...line.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text) : [];
    for (const text of [inBlock, inFence, ...inText]) {
      if (text !== undefined && programs.test(text)) found.push({ at, text });
    }
  }
  return found;
}

const shellLine = (language: string, line: string) =>
  /^(?:sh|bash|shell)$/.test(language) ? line : undefined;

const partsOf = ({ text }: PageCommand) =>
  text
    .replace(/ +#.*$/, '')
    .replace(/^(?:[A-Z_]+=\S+ )+/, '')
    .split(/ && | \| (?=\w)|; /)
    .map((part) => part.replace(/ [<>].*$| &$| \\$/g, (end) => (end.startsWith(' >') ? end : '')).trim());

const helpTexts = new Map<string, Promise<string>>();

/** Why a command cannot work; undefined if everything in it exists. */
async function whyNot(part: string): Promise<string | undefined> {
  const words = part.split(/\s+/);
  const [program = '', second = '', third = ''] = words;
  if (program === 'shopward') return ofVerb(words.slice(1));
  if (program === 'npx' && second === 'shopward') return ofVerb(words.slice(2));
  // The unpacked package: the verb comes next.
  if (program === 'node' && second.endsWith('/dist/main.js')) return ofVerb(words.slice(2));
  if (program === 'node') return ofFile(second, second === 'src/main.ts' ? [] : words.slice(2));
  if (program === 'npx' && second === 'vitest') return ofTests(part);
  if (program === 'npm' && second === 'test') return undefined;
  if (program === 'npm' && second === 'start') return ofVerb(['serve', ...words.slice(2)]);
  if (program === 'npm' && second === 'run') {
    const isIdle = third === '-s';
    const name = words[isIdle ? 3 : 2] ?? '';
    if (scripts[name] === undefined) return `no script ${name}`;
    const given = words.slice(isIdle ? 4 : 3).filter((word) => word !== '--');
    if (name === 'shopward') return given.length === 0 ? undefined : ofVerb(given);
    const file = /\S+\.ts\b/.exec(scripts[name])?.[0];
    return file === undefined ? undefined : ofFile(file, given);
  }
  return 'no test checks it: run it in a test, or give the reason here';
}

function ofFile(file: string, given: readonly string[]): string | undefined {
  if (!existsSync(path.join(root, file))) return `no file ${file}`;
  const text = read(file);
  const unknown = given.filter((word) => word.startsWith('--') && !text.includes(word.slice(2)));
  return unknown.length === 0 ? undefined : `${file} has no ${unknown.join(', ')}`;
}

function ofTests(part: string): string | undefined {
  const files = part.match(/\btest\/\S+/g) ?? [];
  const missing = files.filter((file) => !existsSync(path.join(root, file)));
  if (missing.length > 0 || files.length === 0) return `no tests ${missing.join(', ')}`;
  const name = / -t '([^']+)'/.exec(part)?.[1];
  if (name === undefined) return undefined;
  const isNamed = files.some((file) => read(file).includes(name) || name.startsWith('over '));
  return isNamed ? undefined : `no test '${name}'`;
}

async function ofVerb(words: readonly string[]): Promise<string | undefined> {
  const [first = '', second = ''] = words;
  // Placeholders, output of shopward, and the word alone.
  if (/^[A-Z.]|^(?:is|version|--version|--help)$/.test(first)) return undefined;
  const hasSub = first === 'protected' && /^[a-z]+(?:-[a-z]+)*$/.test(second);
  const verb = hasSub ? [first, second] : [first];
  const key = verb.join(' ');
  if (!helpTexts.has(key)) helpTexts.set(key, help(verb));
  const text = (await helpTexts.get(key)) ?? '';
  if (!new RegExp(`Usage: shopward ${key}\\b`).test(text)) return `no verb ${key}`;
  const options = words
    .filter((word) => /^--[a-z]/.test(word))
    .map((word) => word.replace(/[=.,:;)].*$/, ''));
  const unknown = options.filter((option) => !new RegExp(`${option}\\b`).test(text));
  return unknown.length === 0 ? undefined : `${key} has no ${unknown.join(', ')}`;
}

async function help(verb: readonly string[]): Promise<string> {
  const { code, stdout } = await runHere([...verb, '--help']);
  return code === 0 ? stdout : '';
}

const quickStart = read('docs/quick-start.md');

it('every command of every page is checked, or has a reason why not', async () => {
  const commands = pages.flatMap(commandsOf);
  expect(commands.length).toBeGreaterThan(100);
  const faults: string[] = [];
  for (const command of commands) {
    // test/end-to-end/docs/quick-start.test.ts runs these and compares their output.
    if (command.at.startsWith('docs/quick-start.md') && quickStart.includes(`\n$ ${command.text}\n`))
      continue;
    for (const part of partsOf(command)) {
      if (checkedElsewhere.some((pattern) => pattern.test(part))) continue;
      const why = await whyNot(part);
      if (why !== undefined) faults.push(`${command.at}: ${part}: ${why}`);
    }
  }
  expect(faults).toEqual([]);
}, 300_000);
