import { isAlias, isScalar, type Node, type YAMLError } from 'yaml';
import type { Problem } from '../lib/problem.ts';
import { parseYaml, syntaxTexts } from '../lib/yaml-source.ts';

export interface ListSource {
  readonly file: string;
  readonly root: Node | null;
  readonly problems: readonly Problem[];
  problemAt(offset: number, text: string, severity?: Problem['severity']): Problem;
}

/** In UTF-16 code units. The parser takes some seconds for 10 MB of rows. */
export const maxListLength = 10_000_000;

/**
 * Parses the YAML of a list, or of the frame of one. Warnings of the parser are errors. `lineOf`: maps a line of the text to
 * a line of the list.
 */
export function parseListSource(text: string, file: string, lineOf: (line: number) => number): ListSource {
  const { document, fault: problem, ...source } = parseYaml(text, file, false);
  const inList = (one: Problem) => ({ ...one, line: lineOf(one.line) });
  const fault = problem && inList(problem);
  const problemAt: ListSource['problemAt'] = (offset, text, severity) =>
    inList(source.problemAt(offset, text, severity));
  if (document === undefined) return { file, root: null, problems: fault ? [fault] : [], problemAt };
  const faults: YAMLError[] = [...document.errors, ...document.warnings].filter(isWorthSaying);
  const problems = faults.map(({ code, pos }) =>
    problemAt(pos[0], faultTexts[code] ?? 'this is not valid YAML'),
  );
  return { file, root: document.contents, problems, problemAt };
}

/** The text of a scalar, or why YAML does not read it as text. */
export function textOf(node: unknown): { readonly text: string } | { readonly problem: string } {
  if (isAlias(node)) return { problem: 'aliases are not allowed: write the text out' };
  if (!isScalar(node))
    return { problem: 'a text is needed here; put quotes around a value with { } [ ] or ": "' };
  // An anchor is useless without an alias, so this is more likely a text that begins with &.
  if (node.anchor !== undefined)
    return { problem: 'anchors are not allowed; put quotes around a text that begins with &' };
  if (typeof node.value !== 'string') {
    return { problem: 'a text is needed here; put quotes around numbers, true, false and null' };
  }
  // YAML reads `GET /a #b` as the row `GET /a`. A path cannot contain `#`, so require the usual form of a comment.
  if (node.comment && /^\S/.test(node.comment) && node.type === 'PLAIN') {
    return { problem: 'the text ends before "#": a comment is written "# …", and a path has no "#"' };
  }
  return { text: node.value };
}

/** One syntax error causes many others after it, so report only the first of each kind. */
function isWorthSaying({ code }: YAMLError, index: number, all: readonly YAMLError[]): boolean {
  return code === 'DUPLICATE_KEY' || all.findIndex((other) => other.code === code) === index;
}

const faultTexts: Readonly<Record<string, string>> = {
  ...syntaxTexts,
  BAD_ALIAS: 'aliases are not allowed; put quotes around a text that begins with *',
  BLOCK_AS_IMPLICIT_KEY: 'a key must stand on one line; a dash or a line break may be missing',
  IMPOSSIBLE: 'this is nested too deeply',
  MISSING_CHAR: 'a quote, bracket, comma or colon is missing',
  TAG_RESOLVE_FAILED: 'tags are not allowed; put quotes around a text that begins with !',
  UNEXPECTED_TOKEN: 'this does not belong here; put quotes around a row that stands inside { }',
};
