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
import { explainPasted, explainToken, readFieldLine } from './explain/explain-pasted.ts';
import { tokenToInspect } from './explain/explain-request.ts';
import { explanationText } from './explain/explanation-text.ts';
import { readPastedToken, tokenHint } from './explain/pasted-request.ts';
import { loadConfiguration } from './load-configuration.ts';
import { inspectionText, withTokenInspector } from './token.ts';

interface ExplainChoice extends CommonChoice {
  /** Further fields of the request, each `Name: value`. */
  readonly header?: readonly string[];
  /** Files of our log, in which a request id is looked up. */
  readonly log?: readonly string[];
}

/** Longest HAR file or pasted text; browsers' files reach some ten megabytes. */
const maxInput = 64 * 1024 * 1024;

/**
 * Prints what would happen to a request. `words` are a method and a URL, or whatever was pasted: a line or a record of a
 * log, a curl command, a call of fetch, a HAR entry; or the name of a HAR file, the id of a request, an access token; `-`
 * reads standard input. Exit code 0, whatever would happen; 1 for an id that nobody knows, 2 for what is no request, 78
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
    io.err('a request is needed, such as: shopward explain GET /carts/1');
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

const requestId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The text itself; or what a name stands for: the record of a request's id, or a HAR file. */
async function readNamed(
  given: string,
  logs: readonly string[],
  config: Config,
  io: CommandIo,
): Promise<{ readonly text: string } | { readonly fault: string }> {
  const name = given.trim();
  if (requestId.test(name) || (logs.length > 0 && !/[\s/]/.test(name))) {
    for (const log of logs) {
      const line = await findRecord(resolve(io.cwd, log), name);
      if (line !== undefined) return { text: line };
    }
    const line = config.admin === false ? undefined : await findDecision(config.admin, name);
    if (line !== undefined) return { text: line };
    const places = logs.length > 0 ? logs.join(', ') : 'no log (--log FILE)';
    return {
      fault: `no record of this request is in ${places}, nor among the last decisions of the admin port; ${tokenHint}`,
    };
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

/** A line of our log is shorter. */
const longestLine = 65_536;

/** The last line of a log with this id, as it stands; undefined also where the file cannot be read. */
async function findRecord(file: string, id: string): Promise<string | undefined> {
  const wanted = `"requestId":"${id}"`;
  let found: string | undefined;
  let rest = '';
  const look = (line: string) => {
    if (line.includes(wanted)) found = line;
  };
  try {
    for await (const chunk of createReadStream(file, 'utf8')) {
      const lines = (rest + chunk).split('\n');
      rest = (lines.pop() ?? '').slice(-longestLine);
      for (const line of lines) look(line);
    }
  } catch {
    return undefined;
  }
  look(rest);
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
    .option('--log <file>', 'a log of shopward, in which a request id is looked up; may be repeated', collect)
    .addOption(configFile)
    .addOption(json);
}
