import { isAlias, isScalar, type Scalar, type YAMLError } from 'yaml';
import type { Problem } from '../lib/problem.ts';
import { offsetOf, parseYaml, syntaxTexts } from '../lib/yaml-source.ts';

export type ListSource = ReturnType<typeof parseListSource>;

/** Reports a mistake at a node, or at an offset. */
export type Complain = (at: unknown, text: string) => unknown;

/** Reports mistakes of a key at the key itself if its value has no position. */
export function within(key: unknown, complain: Complain): Complain {
  return (at, text) => complain(typeof at === 'number' ? at : offsetOf(at, offsetOf(key)), text);
}

/** In UTF-16 code units. The parser takes some seconds for 10 MB of rows. */
export const maxListLength = 10_000_000;

/**
 * Parses the YAML of a list, or of the frame of one. Warnings of the parser are errors. `lineOf`: maps a line of the text to
 * a line of the list.
 */
export function parseListSource(text: string, file: string, lineOf: (line: number) => number) {
  const { document, fault, ...source } = parseYaml(text, file, false);
  const inList = (one: Problem) => ({ ...one, line: lineOf(one.line) });
  const problemAt = (offset: number, text: string) => inList(source.problemAt(offset, text));
  if (document === undefined) return { file, root: null, problems: [inList(fault)], problemAt };
  const faults: YAMLError[] = [...document.errors, ...document.warnings].filter(isWorthSaying);
  const problems = faults.map(({ code, pos }) =>
    problemAt(pos[0], faultTexts[code] ?? 'this is not valid YAML'),
  );
  return { file, root: document.contents, problems, problemAt };
}

/** The text of a scalar; undefined: YAML does not read it as text, which is reported. */
export function textOf(node: unknown, complain: Complain): string | undefined {
  const problem = textProblem(node);
  if (problem === undefined) return (node as Scalar<string>).value;
  complain(node, problem);
  return undefined;
}

function textProblem(node: unknown): string | undefined {
  if (isAlias(node)) return 'aliases are not allowed: write the text out';
  if (!isScalar(node)) return 'a text is needed here; put quotes around a value with { } [ ] or ": "';
  // An anchor is useless without an alias, so this is more likely a text that begins with &.
  if (node.anchor !== undefined)
    return 'anchors are not allowed; put quotes around a text that begins with &';
  if (typeof node.value !== 'string')
    return 'a text is needed here; put quotes around numbers, true, false and null';
  // YAML reads `GET /a #b` as the row `GET /a`. A path cannot contain `#`, so require the usual form of a comment.
  if (node.comment && /^\S/.test(node.comment) && node.type === 'PLAIN')
    return 'the text ends before "#": a comment is written "# …", and a path has no "#"';
  return undefined;
}

/** Report the first error of each kind, since one causes others, and every repeated key. */
function isWorthSaying({ code }: YAMLError, index: number, all: readonly YAMLError[]): boolean {
  return code === 'DUPLICATE_KEY' || all.findIndex((other) => other.code === code) === index;
}

const faultTexts: Readonly<Record<string, string>> = {
  ...syntaxTexts,
  BAD_ALIAS: 'aliases are not allowed; put quotes around a text that begins with *',
  BLOCK_AS_IMPLICIT_KEY: 'a key must be on one line; a dash or a line break may be missing',
  IMPOSSIBLE: 'this is nested too deeply',
  MISSING_CHAR: 'a quote, bracket, comma or colon is missing',
  TAG_RESOLVE_FAILED: 'tags are not allowed; put quotes around a text that begins with !',
  UNEXPECTED_TOKEN: 'this does not belong here; put quotes around a row inside { }',
};
