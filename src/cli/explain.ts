import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { compileProtectedList } from '../access/protected-list.ts';
import type { Config } from '../config/schema.ts';
import { findDecision } from './admin-verbs.ts';
import {
  badConfiguration,
  badUsage,
  type CommandIo,
  type CommonChoice,
  processIo,
  readInput,
} from './command-io.ts';
import { collect, configFile, declareVerb, json } from './declare-verb.ts';
import { explainPasted, explainToken, readFieldLine, unreadableText } from './explain/explain-pasted.ts';
import { tokenToInspect } from './explain/explain-request.ts';
import { explanationText } from './explain/explanation-text.ts';
import { readPastedToken, tokenHint } from './explain/pasted-request.ts';
import { loadConfiguration } from './load-configuration.ts';
import { readLines } from './log-lines.ts';
import { inspectionText, withTokenInspector } from './token.ts';

interface ExplainChoice extends CommonChoice {
  /** Further fields of the request, each `Name: value`. */
  readonly header?: readonly string[];
  /** Log files of shopward, in which a request id is looked up. */
  readonly log?: readonly string[];
}

/** Octets of the largest HAR file or pasted text; browsers write files of some ten megabytes. */
const maxInput = 64 * 1024 * 1024;

/**
 * Prints what would happen to a request. `words` are a method and a URL, or whatever was pasted: a line or a record of a
 * log, a curl command, a call of fetch, a HAR entry, the name of a HAR file, a request id, an access token; `-` reads
 * standard input. Exit code 0, whatever would happen; 1 for an unknown request id, 2 for a text that is not a request, 78
 * for a configuration with problems. Exported for its tests.
 */
export async function runExplain(
  words: readonly string[],
  options: ExplainChoice,
  io: CommandIo = processIo,
): Promise<number> {
  const given = words.length === 1 && words[0] === '-' ? await readInput(io, maxInput) : words.join(' ');
  const header = (options.header ?? []).map((line) => readFieldLine(line));
  if (!/\s/.test(given.trim()) && /^[A-Z]*$/.test(given.trim())) {
    io.err('give a request, such as: shopward explain GET /carts/1');
    return badUsage;
  }
  if (header.includes(undefined)) {
    io.err('--header takes a whole field, such as: --header "Content-Type: application/json"');
    return badUsage;
  }
  const loaded = await loadConfiguration(options.config, io);
  if (loaded === undefined) return badConfiguration;
  const { config } = loaded;
  const found = await readNamed(given, options.log ?? [], config, io);
  if ('fault' in found) {
    io.err(found.fault);
    return 1;
  }
  const token = readPastedToken(found.text);
  if (token !== undefined) return explainTokenAlone(token, config, options.json === true, io);
  const fields = header.flatMap((field) => field ?? []);
  const list = compileProtectedList(loaded.list, config.request);
  const answer = explainPasted(found.text, { fields }, config, list);
  if (answer.unreadable !== undefined) {
    io.err(unreadableText(answer.unreadable).join('\n'));
    return badUsage;
  }
  const explained = await inspectIfNeeded(answer, config);
  if (options.json) io.out(JSON.stringify(explained, null, 2));
  else io.out(explanationText(explained, explained.notes).join('\n'));
  return 0;
}

async function inspectIfNeeded(answer: ReturnType<typeof explainPasted>, config: Config) {
  if (tokenToInspect(answer.asked, answer.explained, config) === undefined) return answer.explained;
  return withTokenInspector(config, (inspect) => explainToken(answer, config, inspect));
}

async function explainTokenAlone(
  token: string,
  config: Config,
  asJson: boolean,
  io: CommandIo,
): Promise<number> {
  const inspection = await withTokenInspector(config, (inspect) => inspect(token));
  io.out(asJson ? JSON.stringify(inspection, null, 2) : inspectionText(inspection).join('\n'));
  return 0;
}

const requestId = /^(?:x-request-id: *)?["'`]?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})["'`]?$/i;

/** The request id of a text that has it alone, in quotes, as its field, or in the head of a response. */
function readRequestId(text: string): string | undefined {
  const lines = text.startsWith('HTTP/') ? text.split(/\r?\n/, 200) : [text];
  return lines.flatMap((line) => requestId.exec(line.trim())?.[1] ?? [])[0];
}

/** The text to explain: the log record if `given` is a request id, the content of a HAR file, else `given` itself. */
async function readNamed(
  given: string,
  logs: readonly string[],
  config: Config,
  io: CommandIo,
): Promise<{ readonly text: string } | { readonly fault: string }> {
  const text = given.trim();
  const id = readRequestId(text);
  const name = id ?? text;
  if (id !== undefined || (logs.length > 0 && !/[\s/]/.test(name))) {
    for (const log of logs) {
      const line = await findRecord(resolve(io.cwd, log), name);
      if (line !== undefined) return { text: line };
    }
    const line = config.admin === false ? undefined : await findDecision(config.admin, name);
    if (line !== undefined) return { text: line };
    const places =
      logs.length > 0
        ? `no record of this request is in ${logs.join(', ')}, nor among the last decisions of the admin port`
        : 'this request is not among the last decisions of the admin port, or that cannot be asked; --log FILE looks for it in a log';
    return { fault: `${places}; ${tokenHint}` };
  }
  if (!/\.har$/i.test(name) || /[\n{]/.test(name)) return { text: given };
  const file = resolve(io.cwd, name);
  const size = await stat(file).then(
    (found) => found.size,
    () => -1,
  );
  if (size > maxInput) return { fault: `${name} is longer than 64 MiB` };
  return size === -1 ? { text: given } : { text: await readFile(file, 'utf8') };
}

/** The last line of a log with this request id, of what of the log can be read; undefined: there is none. */
async function findRecord(file: string, id: string): Promise<string | undefined> {
  const wanted = `"requestId":"${id}"`;
  let found: string | undefined;
  try {
    for await (const lines of readLines(createReadStream(file))) {
      found = lines.findLast((line) => line.includes(wanted)) ?? found;
    }
  } catch {
    // A compressed log that is still written to has no end: what was read before counts.
  }
  return found;
}

export function declareExplain(program: Command): void {
  declareVerb(
    program,
    'explain',
    'print what would happen to a request, or why one was refused',
    (words, options) => runExplain(words, options),
  )
    .argument(
      '<request...>',
      'METHOD and URL, or whatever was pasted; a request id, a HAR file, or - for standard input',
    )
    .option('-H, --header <field>', 'a field of the request, "Name: value"; may be repeated', collect)
    .option(
      '--log <file>',
      'a log of shopward, also compressed, in which a request id is looked up; may be repeated',
      collect,
    )
    .addOption(configFile)
    .addOption(json);
}
