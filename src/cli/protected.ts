import { type Command, Option } from 'commander';
import { declareVerb, helpAfter } from './declare-verb.ts';
import { runProtectedDiff } from './protected/difference.ts';
import { runProtectedImport } from './protected/import.ts';

const basePath = new Option('--base-path <path>', "in place of the document's servers; / for none");

/** `protected diff|import`. */
export function declareProtected(program: Command): void {
  const verb = program
    .command('protected')
    .description('import and compare protected resources')
    .addHelpText('after', helpAfter('protected'));
  declareVerb(verb, 'protected diff', 'print how the second list differs from the first', (a, b) =>
    runProtectedDiff(a, b),
  )
    .argument('<a>', 'a list file')
    .argument('<b>', 'another one');
  declareVerb(
    verb,
    'protected import',
    'print a list of the operations that need a token by an OpenAPI 3 document',
    (document, options) => runProtectedImport(document, options),
  )
    .argument('<openapi>', 'JSON or YAML')
    .addOption(basePath);
}
