import type { Command } from 'commander';
import { compileProtectedList } from '../access/protected-list.ts';
import { trimOws } from '../http/field-list.ts';
import { badConfiguration, badUsage, type CommandIo, type CommonChoice, processIo } from './command-io.ts';
import { collect, configFile, declareVerb, json } from './declare-verb.ts';
import { explainRequest } from './explain/explanation.ts';
import { explanationText } from './explain/explanation-text.ts';
import { readPastedRequest } from './explain/pasted-request.ts';
import { loadConfiguration } from './load-configuration.ts';

/**
 * Prints, offline, what would happen to a request. `words` are a method and a URL, or whatever was pasted from a log;
 * `header`: further fields of the request, each `Name: value`.
 * Exit code 0, whatever would happen; 2 for what is no request, 78 for a configuration with problems.
 */
export async function runExplain(
  words: readonly string[],
  options: CommonChoice & { readonly header?: readonly string[] },
  io: CommandIo = processIo,
): Promise<number> {
  const pasted = readPastedRequest(words.join(' '));
  const fields = (options.header ?? []).map((line) => readHeader(line));
  if (words.length < 2 && /^[A-Z]*$/.test(words.join(''))) {
    io.err('a request is needed, such as: shopward explain GET /carts/1');
    return badUsage;
  }
  if (fields.includes(undefined)) {
    io.err('--header takes a whole field, such as: --header "Content-Type: application/json"');
    return badUsage;
  }
  const loaded = await loadConfiguration(options.config, io);
  if (loaded === undefined) return badConfiguration;
  const { target, host } = pasted;
  const notes = [...pasted.notes];
  if (pasted.method === undefined) notes.push('no method: GET is explained');
  const method = pasted.method ?? 'GET';
  const asked = { method, target, host, fields: fields.flatMap((field) => field ?? []) };
  const list = compileProtectedList(loaded.list, loaded.config.request);
  const explanation = explainRequest(asked, loaded.config, list);
  if (options.json) io.out(JSON.stringify({ ...explanation, notes }, null, 2));
  else io.out(explanationText(explanation, notes).join('\n'));
  return 0;
}

/** Name and value of `Name: value`; undefined: it is no field line. */
function readHeader(line: string): string[] | undefined {
  const [, name, value] = /^([^\s:]+):(.*)$/.exec(line) ?? [];
  return name === undefined || value === undefined ? undefined : [name, trimOws(value)];
}

export function declareExplain(program: Command): void {
  declareVerb(program, 'explain', 'print what would happen to a request, offline', (words, options) =>
    runExplain(words, options),
  )
    .argument('<request...>', 'METHOD and URL, or whatever was pasted from a log')
    .option('-H, --header <field>', 'a field of the request, "Name: value"; may be repeated', collect)
    .addOption(configFile)
    .addOption(json);
}
