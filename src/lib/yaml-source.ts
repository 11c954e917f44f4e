import { type Document, LineCounter, type Node, parseDocument } from 'yaml';
import type { Problem } from './problem.ts';

type YamlSource = {
  /** A problem at an offset of the text; an error by default. */
  problemAt(offset: number, text: string, severity?: Problem['severity']): Problem;
} & (
  | { readonly document: Document.Parsed; readonly fault?: undefined }
  | { readonly document?: undefined; readonly fault: Problem }
);

/** Parses YAML 1.2: one document, each key once. `stringKeys`: a key that is not plain text is an error. */
export function parseYaml(text: string, file: string, stringKeys: boolean): YamlSource {
  const lineCounter = new LineCounter();
  const problemAt: YamlSource['problemAt'] = (offset, problem, severity = 'error') => {
    const { line, col } = lineCounter.linePos(Math.min(offset, text.length));
    return { file, line: Math.max(1, line), column: Math.max(1, col), severity, text: problem };
  };
  try {
    return { document: parseDocument(text, { lineCounter, prettyErrors: false, stringKeys }), problemAt };
  } catch (cause) {
    // With many hundred levels of nesting the parser exhausts the stack.
    if (!(cause instanceof RangeError)) throw cause;
    return { fault: problemAt(0, 'this is nested too deeply'), problemAt };
  }
}

/** Texts for errors of the parser, whose own messages may quote a secret. */
export const syntaxTexts: Readonly<Record<string, string>> = {
  BAD_INDENT: 'the indentation does not fit the lines above',
  DUPLICATE_KEY: 'this key occurs twice',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line; a colon may be missing',
  MULTIPLE_DOCS: 'only one document is allowed in this file',
  TAB_AS_INDENT: 'a line is indented with a tab: YAML takes spaces only',
};

/** Offset of a node; `otherwise` if there is none. */
export function offsetOf(node: unknown, otherwise = 0): number {
  return (node as Node | null)?.range?.[0] ?? otherwise;
}
