import { conditionTexts } from '../../access/claim-conditions.ts';
import { type ProtectedResource, resourceId } from '../../access/protected-list.ts';
import { createRowCover, type RowCover } from '../../access/protected-list-cover.ts';
import { differencesOf, type ListDifference, type RouteChange } from '../../access/protected-list-review.ts';
import { badConfiguration, type CommandIo, processIo, textTable } from '../command-io.ts';
import { readList } from '../load-configuration.ts';

/**
 * Prints how the second list differs from the first, and marks what it protects less. Exit code 0 for lists that protect the
 * same, 1 when they differ, 78 for a list with problems.
 */
export async function runProtectedDiff(
  first: string,
  second: string,
  io: CommandIo = processIo,
): Promise<number> {
  const a = await readList(first, io);
  const b = await readList(second, io);
  if (a === undefined || b === undefined) return badConfiguration;
  const cover = createRowCover(b.rows);
  const all = [...differencesOf(a, b, () => cover)];
  for (const text of textTable(all.map((one) => lineOf(one, cover)))) io.out(text);
  const kinds = (['removed', 'added', 'changed'] as const).map(
    (kind) => `${all.filter((one) => one.kind === kind).length} ${kind}`,
  );
  io.out(`${kinds.join(', ')}; ${all.filter(({ isLooser }) => isLooser).length || 'nothing'} looser`);
  return all.length === 0 ? 0 : 1;
}

function lineOf(one: ListDifference, cover: RowCover): string[] {
  const { file, line } = one.row.source;
  const where = [resourceId(one.row), `${file}:${line}`];
  if (one.kind === 'removed') return ['-', ...where, removedText(one.row, one.isLooser, cover)];
  if (one.kind === 'added') return ['+', ...where, one.row.observe ? 'observed only' : ''];
  return ['~', ...where, changeText(one)];
}

function removedText(row: ProtectedResource, isLooser: boolean, cover: RowCover): string {
  const other = cover.rowsOf(row).find(({ row: { observe } }) => !observe);
  if (other === undefined) return isLooser ? 'LOOSER: open now' : 'it was observed only';
  const by = `${resourceId(other.row)} in line ${other.row.source.line}`;
  if (!isLooser) return `still met by ${by}`;
  return cover.isCovered(row) ? `LOOSER: ${by} asks for less` : 'LOOSER: open now';
}

function changeText({ before, row: after, what, isLooser }: RouteChange): string {
  const asked = ({ asks }: typeof before) => asks.flatMap(conditionTexts).join(' and ') || 'none';
  const texts = what.map((part) => {
    if (part === 'scopes')
      return `scopes ${before.scopes.join(' ') || 'none'} -> ${after.scopes.join(' ') || 'none'}`;
    if (part === 'require') return `conditions ${asked(before)} -> ${asked(after)}`;
    if (part === 'tokenIn') return `token in ${locationsText(before)} -> ${locationsText(after)}`;
    if (part === 'observe') return after.observe ? 'only observed now' : 'enforced now';
    return after.credentials === 'shop' ? 'the shop checks credentials now' : 'only tokens count now';
  });
  return `${isLooser ? 'LOOSER: ' : ''}${texts.join(', ')}`;
}

function locationsText({ tokenIn = ['header'] }: ProtectedResource): string {
  return tokenIn.join(' ');
}
