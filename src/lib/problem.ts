/** An error, warning or note about a file, with its position. */
export interface Problem {
  /** Name of the file as the user gave it. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 code units. */
  readonly column: number;
  /** Only an error keeps the file from taking effect. A note is about something that is often intended. */
  readonly severity: 'error' | 'warning' | 'note';
  /** One line; never the value of a setting, which may be a secret. */
  readonly text: string;
}

/** `file:line:col: error: text`, the form that editors and CI systems show as links. */
export function formatProblem({ file, line, column, severity, text }: Problem): string {
  return `${file}:${line}:${column}: ${severity}: ${text}`;
}

/** Sorts by line and column; files stay in the order in which they first appear. */
export function sortProblems(problems: readonly Problem[]): Problem[] {
  const order = new Map<string, number>();
  for (const { file } of problems) if (!order.has(file)) order.set(file, order.size);
  const rank = (problem: Problem) => order.get(problem.file) ?? 0;
  return problems.toSorted((a, b) => rank(a) - rank(b) || a.line - b.line || a.column - b.column);
}

export function hasErrors(problems: readonly Problem[]): boolean {
  return problems.some(({ severity }) => severity === 'error');
}
