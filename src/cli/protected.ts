import { type Command, Option } from 'commander';
import { configFile, declareVerb, helpAfter, json, listFile } from './declare-verb.ts';
import { runProtectedDiff } from './protected/difference.ts';
import { runProtectedImport, runProtectedList } from './protected/list.ts';

const basePath = new Option('--base-path <path>', "in place of the document's servers; / for none");

/** `protected list|diff|import`. */
export function declareProtected(program: Command): void {
  const verb = program
    .command('protected')
    .description('list, import and compare protected resources')
    .addHelpText('after', helpAfter('protected'));
  declareVerb(verb, 'protected list', 'print the rows (default)', (options) => runProtectedList(options))
    .addOption(configFile)
    .addOption(listFile)
    .option('--group <text>', 'only groups whose name holds this text')
    .addOption(json);
  declareVerb(verb, 'protected diff', 'print how the second list differs from the first', (a, b, options) =>
    runProtectedDiff(a, b, options),
  )
    .argument('<a>', 'a list file')
    .argument('<b>', 'another one')
    .addOption(json);
  declareVerb(
    verb,
    'protected import',
    'print a list of the operations that need a token by an OpenAPI 3 document',
    (document, options) => runProtectedImport(document, options),
  )
    .argument('<openapi>', 'JSON or YAML')
    .option('--out <file>', 'write the list into a file')
    .option('--force', 'replace that file')
    .addOption(basePath);
}
