import type { PackedList } from '../access/packed-list.ts';
import { checkList, checkListInThread, type ListCheckInput } from '../admin/list-check.ts';
import type { Problem } from '../lib/problem.ts';

/** The list that was checked with the configuration: its file may have changed since. */
export interface StartList {
  /** Empty in a worker. */
  readonly text: string;
  /** Default: the text is compiled. */
  readonly packed?: PackedList | undefined;
}

/** A longer text is compiled in a thread, whose memory is given back. */
const shortList = 100_000;

/** Compiles the list of a start, and calls `take` unless it has errors. Resolves to its problems. */
export async function compileStartList(
  question: Omit<ListCheckInput, 'inForce'>,
  take: (packed: PackedList) => void,
): Promise<readonly Problem[]> {
  const input = { ...question, inForce: undefined };
  const here = () => checkList(input, take);
  const isShort = question.text.length < shortList;
  const { problems } = isShort ? here() : await checkListInThread(input, take).catch(here);
  return problems;
}
