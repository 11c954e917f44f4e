import {
  type Document,
  isAlias,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLError,
} from 'yaml';
import { conflictProblem, findConflictMark } from '../lib/conflict-mark.ts';
import type { Problem } from '../lib/problem.ts';

/** The YAML of a list, parsed but not yet checked. */
export interface ListSource {
  readonly file: string;
  readonly root: Node | null;
  /** What is wrong with the YAML itself. */
  readonly problems: readonly Problem[];
  problemAt(offset: number, text: string, severity?: Problem['severity']): Problem;
}

/** UTF-16 code units; 10 MB of rows take the parser some seconds. */
export const maxListLength = 10_000_000;

/** Parses YAML 1.2: one document, each key once; what the parser only warns of is an error. Never throws. */
export function parseListSource(text: string, file: string): ListSource {
  const lines = new LineCounter();
  const problemAt: ListSource['problemAt'] = (offset, problem, severity = 'error') => {
    const { line, col } = lines.linePos(Math.min(offset, text.length));
    return { file, line: Math.max(1, line), column: Math.max(1, col), severity, text: problem };
  };
  if (text.length > maxListLength) {
    return { file, root: null, problems: [problemAt(0, 'the list is longer than 10 MB')], problemAt };
  }
  const conflict = findConflictMark(text);
  if (conflict !== undefined) {
    // For the lines: what else the parser says of such a file means nothing.
    parse(text, lines);
    return { file, root: null, problems: [problemAt(conflict, conflictProblem)], problemAt };
  }
  const document = parse(text, lines);
  if (document === undefined) {
    return { file, root: null, problems: [problemAt(0, 'this is nested too deeply')], problemAt };
  }
  const faults: YAMLError[] = [...document.errors, ...document.warnings].filter(isWorthSaying);
  const problems = faults.map(({ code, pos }) =>
    problemAt(pos[0], faultTexts[code] ?? 'this is not valid YAML'),
  );
  return { file, root: document.contents, problems, problemAt };
}

/** Offset of a node, or of `otherwise` when it is absent. */
export function offsetOf(node: unknown, otherwise = 0): number {
  return (node as Node | null)?.range?.[0] ?? otherwise;
}

/** The text of a scalar that YAML takes for text, or why it is none. */
export function textOf(node: unknown): { readonly text: string } | { readonly problem: string } {
  if (isAlias(node)) return { problem: 'aliases are not allowed: write the text out' };
  if (!isScalar(node))
    return { problem: 'a text is needed here; put quotes around what holds { } [ ] or ": "' };
  if (typeof node.value !== 'string' && node.anchor !== undefined)
    return { problem: 'anchors are not allowed; put quotes around a text that begins with &' };
  if (typeof node.value !== 'string') {
    return { problem: 'a text is needed here; put quotes around numbers, true, false and null' };
  }
  // `GET /a #b` is the row `GET /a` to YAML; a path cannot hold `#`, so a comment must look like one.
  if (node.comment && /^\S/.test(node.comment) && node.type === 'PLAIN') {
    return { problem: 'the text ends before "#": a comment is written "# …", and a path has no "#"' };
  }
  // An anchor is of no use without an alias; after `- ` it is more likely a text that begins with &.
  if (node.anchor !== undefined)
    return { problem: 'anchors are not allowed; put quotes around a text that begins with &' };
  return { text: node.value };
}

function parse(text: string, lineCounter: LineCounter): Document.Parsed | undefined {
  try {
    return parseDocument(text, {
      version: '1.2',
      lineCounter,
      prettyErrors: false,
      stringKeys: false,
      uniqueKeys: true,
      strict: true,
      merge: false,
      // Not 'silent', which would also hide a second document.
      logLevel: 'error',
    });
  } catch (cause) {
    // The parser exhausts the stack on nesting of many hundred levels.
    if (cause instanceof RangeError) return undefined;
    throw cause;
  }
}

/** One fault of the syntax makes many more out of what follows it; the first of each kind says enough. */
function isWorthSaying({ code }: YAMLError, index: number, all: readonly YAMLError[]): boolean {
  return code === 'DUPLICATE_KEY' || all.findIndex((other) => other.code === code) === index;
}

const faultTexts: Readonly<Record<string, string>> = {
  BAD_ALIAS: 'aliases are not allowed; put quotes around a text that begins with *',
  BAD_INDENT: 'the indentation does not fit what stands above',
  BLOCK_AS_IMPLICIT_KEY: 'a key must stand on one line; a dash or a line break may be missing',
  DUPLICATE_KEY: 'this key stands twice',
  IMPOSSIBLE: 'this is nested too deeply',
  MISSING_CHAR: 'a quote, bracket, comma or colon is missing',
  MULTILINE_IMPLICIT_KEY: 'a key must stand on one line; a colon may be missing',
  MULTIPLE_DOCS: 'only one document is allowed in this file',
  TAB_AS_INDENT: 'tabs must not be used as indentation',
  TAG_RESOLVE_FAILED: 'tags are not allowed; put quotes around a text that begins with !',
  UNEXPECTED_TOKEN: 'this does not belong here; put quotes around a row that stands inside { }',
};
