import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { quote } from 'shell-quote';
import { compileProtectedList } from '../access/packed-list.ts';
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
import { explainPasted, explainToken, readFieldLine, unreadableText } from './explain/explain-pasted.ts';
import { tokenToInspect } from './explain/explain-request.ts';
import { explanationText, inspectionText } from './explain/explanation-text.ts';
import { readPastedToken } from './explain/pasted-request.ts';
import { loadConfiguration } from './load-configuration.ts';
import { withTokenInspector } from './token.ts';

interface ExplainChoice extends CommonChoice {
  /** Further fields of the request, each `Name: value`. */
  readonly header?: readonly string[];
}

/** Octets of the largest HAR file or pasted text. HAR files of browsers often exceed ten megabytes. */
const maxInput = 64 * 1024 * 1024;

/**
 * Prints what would happen to a request. `words`: a method and a URL, or a pasted text, or `-` for standard input. A pasted
 * text is a line of a log, a curl command, a HAR entry, the name of a HAR file, a request id, or an access token. Exit codes:
 * 0 explained; 1 unknown request id, or HAR file too large; 2 the text is no request; 78 a configuration with problems.
 */
export async function runExplain(
  words: readonly string[],
  options: ExplainChoice,
  io: CommandIo = processIo,
): Promise<number> {
  const isPiped = words.length === 1 && words[0] === '-';
  // The shell has removed the quotes of a command that is given as several words.
  const asText = words.length > 1 && words[0] === 'curl' ? quote(words) : words.join(' ');
  const given = isPiped ? await readInput(io, maxInput) : asText;
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
  const found = await readNamed(given, config, io);
  if ('fault' in found) {
    io.err(found.fault);
    return 1;
  }
  const print = (result: object, lines: readonly string[]) => {
    io.out(options.json ? JSON.stringify(result, null, 2) : lines.join('\n'));
    return 0;
  };
  const token = readPastedToken(found.text);
  if (token !== undefined) {
    const inspection = await withTokenInspector(config, (inspect) => inspect(token));
    return print(inspection, inspectionText(inspection));
  }
  const fields = header.flatMap((field) => field ?? []);
  const list = compileProtectedList(loaded.list, config.request);
  const answer = explainPasted(found.text, { fields }, config, list);
  if (answer.unreadable !== undefined) {
    io.err(unreadableText(answer.unreadable).join('\n'));
    return badUsage;
  }
  // The keys are loaded only for a token.
  const explained =
    tokenToInspect(answer.asked, answer.explained, config) === undefined
      ? answer.explained
      : await withTokenInspector(config, (inspect) => explainToken(answer, config, inspect));
  return print(explained, explanationText(explained, explained.notes));
}

const requestId = /^(?:x-request-id: *)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** The text to explain: the log record if `given` is a request id, the content of a HAR file, else `given` itself. */
async function readNamed(
  given: string,
  config: Config,
  io: CommandIo,
): Promise<{ readonly text: string } | { readonly fault: string }> {
  const name = given.trim();
  const id = requestId.exec(name)?.[1];
  if (id !== undefined) {
    const line = config.admin === false ? undefined : await findDecision(config.admin, id);
    if (line !== undefined) return { text: line };
    const cure = `search the log: grep ${id} FILE | shopward explain -`;
    return {
      fault: `the admin port cannot be asked, or has no such request among its last decisions; ${cure}`,
    };
  }
  if (!/\.har$/i.test(name) || /[\n{]/.test(name)) return { text: given };
  const file = resolve(io.cwd, name);
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) return { text: given };
  if (found.size > maxInput) return { fault: `${name} is longer than 64 MiB` };
  return { text: await readFile(file, 'utf8') };
}
