/** docs/results.md: the latest result of each kind of run. */
import { type PromiseResult, type Reason, type Result, readReasons, readResults } from './results.ts';

export function resultsPage(): string {
  const results = readResults();
  const reasons = readReasons();
  const promises = results.flatMap((result) => result.promises ?? []);
  const met = promises.filter(({ isMet }) => isMet).length;
  const lines = [
    '# Results',
    '',
    'The latest result of each measurement. [method.md](method.md) says how each is measured and how to repeat it.',
    `${met} promises are met, ${promises.length - met} are **missed**. This page is generated from \`results/\`: do not edit it.`,
    '',
    ...results.flatMap((result) => [...section(result, reasons), '']),
  ];
  return `${lines.join('\n').trimEnd()}\n`;
}

function section(result: Result, reasons: readonly Reason[]): string[] {
  const { title, command, date, commit, machine, promises = [], figures = [] } = result;
  const missed = promises.filter(({ isMet }) => !isMet);
  const met = promises.filter(({ isMet }) => isMet);
  return [
    `## ${title}`,
    '',
    `\`${command}\`, ${date}, commit ${commit}, ${machine}.`,
    ...table(
      ['promise', 'measured', ''],
      [...missedRows(missed, reasons), ...met.map(({ promise, measured }) => [promise, measured, 'met'])],
    ),
    ...table(['figure', 'measured'], figures),
  ];
}

/** A reason is written once, at the first promise that it explains. */
function missedRows(missed: readonly PromiseResult[], reasons: readonly Reason[]): string[][] {
  let last: Reason | undefined;
  return missed.map(({ promise, measured }) => {
    const found = reasons.find(({ promises }) => promises.some((one) => promise.startsWith(one)));
    const why =
      found !== undefined && found === last ? ', as above' : `: ${found?.reason ?? 'not yet explained'}`;
    last = found;
    return [promise, measured, `**missed**${why}`];
  });
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]) => `|${cells.join('|')}|`;
  return ['', line(head), line(head.map(() => '---')), ...rows.map(line)];
}
