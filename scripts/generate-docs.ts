/**
 * Writes the generated files: the configuration reference and the JSON Schemas for editors (from the schema), the command
 * line (from the verbs), and the results (from results/). With --check it writes nothing; if a file is out of date, it
 * exits 1 and names the first line that differs.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readArguments } from './arguments.ts';

const root = path.join(import.meta.dirname, '..');

const { check: isCheck } = readArguments<{ readonly check?: true }>({
  name: 'npm run docs --',
  about: 'Writes the files that are generated from the schema, the verbs and results/.',
  options: [['--check', 'write nothing, and exit with 1 if a file is out of date']],
});

// Imported after the arguments are read, because `--help` does not need it.
const { editorSchema, protectedListSchema } = await import('./editor-schema.ts');
const { chartSchema } = await import('./chart-schema.ts');
const { commandReference } = await import('./command-reference.ts');
const { configReference } = await import('./config-reference.ts');
const { resultsPage } = await import('./results-page.ts');

const generated: Readonly<Record<string, () => string>> = {
  'docs/configuration.md': configReference,
  'docs/command-line.md': commandReference,
  'docs/results.md': resultsPage,
  'config/shopward.schema.json': () => json(editorSchema()),
  'config/protected-resources.schema.json': () => json(protectedListSchema),
  'deploy/helm/shopward/values.schema.json': () => json(chartSchema()),
};

for (const [name, make] of Object.entries(generated)) {
  const file = path.join(root, name);
  const text = make();
  if (!isCheck) {
    writeFileSync(file, text);
    continue;
  }
  const line = firstDifference(readOrEmpty(file), text);
  if (line === undefined) continue;
  console.error(`${name}:${line}: is out of date; run npm run docs`);
  process.exitCode = 1;
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function firstDifference(is: string, should: string): number | undefined {
  if (is === should) return undefined;
  const [before, after] = [is.split('\n'), should.split('\n')];
  const index = after.findIndex((line, at) => line !== before[at]);
  return (index < 0 ? after.length : index) + 1;
}
