import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { corpusFile, type StageName, type Step, stepKeys, stepSchema } from './corpus-schema.ts';
import type { Values } from './notation.ts';

/** One variant of an attack. */
export interface CorpusCase {
  readonly topic: string;
  readonly evidence: string;
  readonly name: string;
  readonly stage: StageName;
  readonly values: Values;
  readonly steps: readonly Step[];
}

const folder = path.join(import.meta.dirname, '../corpus');

/** Reads every case of every file, variants expanded. Throws an error with the file's name if a file breaks the schema. */
export function readCorpus(): CorpusCase[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  return files.sort().flatMap((file) => {
    const read = corpusFile.safeParse(parse(readFileSync(path.join(folder, file), 'utf8')));
    if (!read.success) throw new Error(`${file}: ${read.error.message}`);
    const { topic, stage, defaults, cases } = read.data;
    return cases.flatMap((one) => {
      const { name, evidence, stage: own = stage, over = {}, rows, steps, ...step } = one;
      const variants = rows ?? product(over);
      return variants.map((variant): CorpusCase => {
        const [ownStep, values] = splitRow(variant);
        const whole = { ...defaults, ...step, ...ownStep };
        return {
          topic,
          evidence,
          stage: own,
          name: nameOf(name, variant),
          values,
          steps: (steps ?? [{}]).map((more) => stepSchema.parse({ ...whole, ...more })),
        };
      });
    });
  });
}

function product(over: Readonly<Record<string, readonly string[]>>): Record<string, string>[] {
  return Object.entries(over).reduce<Record<string, string>[]>(
    (all, [name, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  );
}

function splitRow(row: Readonly<Record<string, unknown>>): [Record<string, unknown>, Record<string, string>] {
  const entries = Object.entries(row).filter(([key]) => key !== 'as');
  const isStep = ([key]: [string, unknown]) => stepKeys.includes(key);
  const values = entries.filter((entry) => !isStep(entry)).map(([key, value]) => [key, String(value)]);
  return [Object.fromEntries(entries.filter(isStep)), Object.fromEntries(values)];
}

function nameOf(name: string, variant: Readonly<Record<string, unknown>>): string {
  const label = variant.as ?? Object.values(variant).map(describe).join(' ');
  return label === '' ? name : `${name}: ${label}`.slice(0, 160);
}

function describe(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
