import { resourceId } from '../../access/protected-list.ts';
import { differencesOf, type ListDifference } from '../../access/protected-list-review.ts';
import { badConfiguration, type CommandIo, processIo, textTable } from '../command-io.ts';
import { readList } from '../load-configuration.ts';

/**
 * Prints how the second list differs from the first, and marks what the second list protects less. Exit code 0 for lists
 * that protect the same, 1 when they differ, 78 for a list with problems.
 */
export async function runProtectedDiff(
  first: string,
  second: string,
  io: CommandIo = processIo,
): Promise<number> {
  const a = await readList(first, io);
  const b = await readList(second, io);
  if (a === undefined || b === undefined) return badConfiguration;
  const all = [...differencesOf(a, b)];
  for (const text of textTable(all.map(lineOf))) io.out(text);
  const kinds = (['removed', 'added', 'changed'] as const).map(
    (kind) => `${all.filter((one) => one.kind === kind).length} ${kind}`,
  );
  io.out(`${kinds.join(', ')}; ${all.filter(({ isLooser }) => isLooser).length || 'nothing'} looser`);
  return all.length === 0 ? 0 : 1;
}

const signs = { removed: '-', added: '+', changed: '~' } as const;

/** In the same words as the log line of an edited list. */
function lineOf(one: ListDifference): string[] {
  const { file, line } = one.row.source;
  const text = [one.isLooser ? 'LOOSER' : '', one.what.join(', ')].filter((part) => part !== '').join(': ');
  return [signs[one.kind], resourceId(one.row), `${file}:${line}`, text];
}
