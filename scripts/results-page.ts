/** docs/results.md: the latest result of each kind of run. */
import { type PromiseResult, type Reason, type Result, readReasons, readResults } from './results.ts';

const usualMachine = '2 cores of a shared machine';

export function resultsPage(): string {
  const results = readResults();
  const reasons = readReasons();
  const promises = results.flatMap((result) => result.promises ?? []);
  const met = promises.filter(({ isMet }) => isMet).length;
  const lines = [
    '# Results',
    '',
    'The latest result of each measurement. [method.md](method.md) says how each is measured and how to repeat it.',
    `Unless stated otherwise, all ran on ${usualMachine}.`,
    `${met} promises are met, ${promises.length - met} are **missed**. This page is generated from \`results/\`: do not edit it.`,
    '',
    ...results.filter((result) => !isPlain(result)).flatMap((result) => [...section(result, reasons), '']),
    '## Runs that met every promise',
    ...table(['run', 'promise: measured'], results.filter(isPlain).map(plainRow)),
  ];
  return `${lines.join('\n').trimEnd()}\n`;
}

/** A run with only promises, all of them met. */
function isPlain({ promises = [], figures = [] }: Result): boolean {
  return figures.length === 0 && promises.every(({ isMet }) => isMet);
}

function plainRow({ command, date, commit, promises = [] }: Result): string[] {
  const said = promises.map(({ promise, measured }) => `${promise.replace(/^.+?: /, '')}: ${measured}`);
  return [`\`${command}\`, ${date}, ${commit}`, said.join('<br>')];
}

function section(result: Result, reasons: readonly Reason[]): string[] {
  const { title, command, date, commit, machine, promises = [], figures = [] } = result;
  const run = [`\`${command}\``, date, `commit ${commit}`, ...(machine === usualMachine ? [] : [machine])];
  return [
    `## ${title}`,
    '',
    `${run.join(', ')}.`,
    ...table(['case', 'promise: measured', ''], promiseRows(promises, reasons)),
    ...table(['figure', 'measured'], figures),
  ];
}

/**
 * One row for the promises of a case that were met, and one row for the missed ones that share a reason; a reason is
 * written once.
 */
function promiseRows(promises: readonly PromiseResult[], reasons: readonly Reason[]): string[][] {
  const rows = new Map<string, { readonly name: string; readonly reason: string; readonly said: string[] }>();
  for (const { promise, measured, isMet } of promises.toSorted((one, other) => +one.isMet - +other.isMet)) {
    const [, name = '', text = promise] = /^(.+?): (.+)$/.exec(promise) ?? [];
    const reason = isMet ? '' : reasonOf(promise, reasons);
    const key = `${name}\n${reason}`;
    const row = rows.get(key) ?? { name, reason, said: [] };
    rows.set(key, row);
    row.said.push(`${text}: ${measured}`);
  }
  const firstOf = new Map<string, string>();
  return [...rows.values()].map(({ name, reason, said }) => {
    const first = firstOf.get(reason);
    firstOf.set(reason, first ?? name);
    const missed = `**missed**: ${first === undefined || first === name ? reason : `as ${first}`}`;
    return [name, said.join('<br>'), reason === '' ? 'met' : missed];
  });
}

function reasonOf(promise: string, reasons: readonly Reason[]): string {
  const found = reasons.find(({ promises }) => promises.some((one) => promise.startsWith(one)));
  return found?.reason ?? 'not yet explained';
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]) => `|${cells.join('|')}|`;
  return ['', line(head), line(head.map(() => '---')), ...rows.map(line)];
}
