import { type Document, LineCounter, type Node, parseDocument } from 'yaml';
import type { Problem } from './problem.ts';

/** A YAML text, parsed and not yet checked. */
type YamlSource = {
  /** A problem at an offset of the text; an error by default. */
  problemAt(offset: number, text: string, severity?: Problem['severity']): Problem;
} & (
  | { readonly document: Document.Parsed; readonly fault?: undefined }
  /** Nothing can be said of its content. */
  | { readonly document?: undefined; readonly fault: Problem }
);

/** Parses YAML 1.2: one document, each key once. `stringKeys`: a key that is not plain text is an error. */
export function parseYaml(text: string, file: string, stringKeys: boolean): YamlSource {
  const lineCounter = new LineCounter();
  const problemAt: YamlSource['problemAt'] = (offset, problem, severity = 'error') => {
    const { line, col } = lineCounter.linePos(Math.min(offset, text.length));
    return { file, line: Math.max(1, line), column: Math.max(1, col), severity, text: problem };
  };
  let document: Document.Parsed | undefined;
  try {
    document = parseDocument(text, { lineCounter, prettyErrors: false, stringKeys });
  } catch (cause) {
    // The parser exhausts the stack on many hundred levels of nesting.
    if (!(cause instanceof RangeError)) throw cause;
  }
  const conflict = findConflictMark(text);
  if (conflict !== undefined) return { fault: problemAt(conflict, conflictProblem), problemAt };
  const tab = document && findTab(text, document);
  if (tab !== undefined) return { fault: problemAt(tab, tabProblem), problemAt };
  return document === undefined
    ? { fault: problemAt(0, 'this is nested too deeply'), problemAt }
    : { document, problemAt };
}

const conflictProblem =
  'a mark of a merge conflict: keep one of the two versions, and take the lines with <<<<<<<, ======= and >>>>>>> out';

const mark = /^(?:<{7} |={7}\r?$|>{7} )/m;

/** Offset of git's first conflict marker in a text; undefined: there is none. Exported for its tests. */
export function findConflictMark(text: string): number | undefined {
  return text.includes('<<<<<<< ') ? mark.exec(text)?.index : undefined;
}

const tabProblem = 'this line is indented with a tab: YAML takes spaces only';

/** Offset of the first tab that indents a line, where the text is malformed from there on: other errors follow from it. */
function findTab(text: string, { errors }: Document.Parsed): number | undefined {
  const last = errors.reduce((end, { pos }) => Math.max(end, pos[1]), -1);
  const tab = /^ *\t(?=[ \t]*\S)/m.exec(text);
  return tab !== null && tab.index <= last ? tab.index + tab[0].length - 1 : undefined;
}

/** Offset of a node, or of `otherwise` when it is absent. */
export function offsetOf(node: unknown, otherwise = 0): number {
  return (node as Node | null)?.range?.[0] ?? otherwise;
}
